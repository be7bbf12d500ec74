import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startSignedIn } from './console.ts'
import { ensureFilled } from './fill.ts'
import { CACHE, type Row, type Scope } from './row.ts'

// The console's pages as Lighthouse sees them, with its desktop preset.

const run = promisify(execFile)
/** No dependency: it brings 200 packages, and is installed into the cache by the first run of these rows. */
const LIGHTHOUSE = 'lighthouse@12.8.2'
const VIDEOS = 10_000
const PAGES = ['videos', 'viewers', 'activity', 'develop/keys', 'system/you']
const CHROMIUM_FLAGS = '--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking'

const prepare = async () => {
  await ensureFilled(VIDEOS)
  await getLighthouse()
}

export const LIGHTHOUSE_ROWS: readonly Row[] = (['performance', 'accessibility'] as const).map((category) => ({
  name: `lighthouse-${category}`,
  what: `the lowest ${category} of the console’s pages`,
  unit: 'points',
  aim: { oursAtLeast: 95 },
  prepare,
  measure: (scope) => measureLowest(scope, category),
}))

async function measureLowest(scope: Scope, category: string) {
  const { service, person } = await startSignedIn(scope, VIDEOS)
  const headers = join(scope.folder, 'headers.json')
  await writeFile(headers, JSON.stringify({ Cookie: person.cookie }), { mode: 0o600 })
  let lowest = 100
  for (const page of PAGES) {
    const report = join(scope.folder, 'report.json')
    const options = ['--quiet', '--preset=desktop', `--only-categories=${category}`, `--chrome-flags=${CHROMIUM_FLAGS}`]
    const output = ['--output=json', `--output-path=${report}`, `--extra-headers=${headers}`]
    await run(process.execPath, [await getLighthouse(), `${service.url}/console/${page}`, ...options, ...output], {
      env: { PATH: process.env.PATH ?? '', CHROME_PATH: '/usr/bin/chromium' },
    })
    const { categories } = JSON.parse(await readFile(report, 'utf8'))
    lowest = Math.min(lowest, Math.round(categories[category].score * 100))
  }
  return { ours: lowest }
}

/** @returns the path of its command */
async function getLighthouse(): Promise<string> {
  const folder = join(CACHE, LIGHTHOUSE)
  if (!existsSync(folder)) {
    const unfinished = await mkdtemp(join(CACHE, 'unfinished-lighthouse-'))
    await run('npm', ['install', '--ignore-scripts', '--silent', '--prefix', unfinished, LIGHTHOUSE])
    await rename(unfinished, folder)
  }
  return join(folder, 'node_modules/lighthouse/cli/index.js')
}
