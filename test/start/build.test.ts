import { execFileSync, spawnSync } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startReelgate } from '../reelgate.ts'
import { sampleOf } from '../sample.ts'

// What `scripts/` makes of a clone, and what of it a server needs.

const ROOT = join(import.meta.dirname, '../..')

test('dist/ starts with only production packages, without sources', async () => {
  const installed = await newFolder()
  for (const part of ['bin', 'dist', 'package.json']) await cp(join(ROOT, part), join(installed, part), { recursive: true })
  await linkProductionPackages(installed)
  const reelgate = await startReelgate({ main: join(installed, 'bin/main.js') })
  expect((await reelgate.owner.list()).count).toBe(0)
  expect((await fetch(`${reelgate.url}/player/`)).status).toBe(200)
  expect((await fetch(`${reelgate.url}/docs/api`)).status).toBe(200)
})

test('source maps next to the build name the sources, for node --enable-source-maps', async () => {
  const map: { sources: string[] } = JSON.parse(await readFile(join(ROOT, 'dist/server/main.js.map'), 'utf8'))
  expect(map.sources).toContain('../../src/cli/command-line.ts')
})

test('the build is stale when a source or the lockfile has changed, and never without sources', async () => {
  const clone = await newFolder()
  for (const part of ['scripts', 'src', 'web', 'integrations', 'dist', 'vite.config.ts', 'package.json', 'package-lock.json'])
    await cp(join(ROOT, part), join(clone, part), { recursive: true })
  const script = "import { isBuildStale } from './scripts/build.js'; console.log(isBuildStale())"
  const isStale = () => execFileSync(process.execPath, ['--input-type=module', '-e', script], { cwd: clone, encoding: 'utf8' })
  expect(isStale()).toBe('false\n')
  const parts = [
    'src/main.ts',
    'web/player/main.ts',
    'web/console/app/main.tsx',
    'integrations/wordpress/reelgate/reelgate.php',
    'package-lock.json',
  ]
  for (const file of sampleOf('changed parts of a build', parts, 2)) {
    const before = await readFile(join(clone, file), 'utf8')
    await writeFile(join(clone, file), `${before}\n`)
    expect([file, isStale()]).toEqual([file, 'true\n'])
    await writeFile(join(clone, file), before)
  }
  expect(isStale()).toBe('false\n')
  await rm(join(clone, 'src'), { recursive: true })
  expect(isStale()).toBe('false\n')
})

test('with REELGATE_INSTALL=off nothing is installed, and the command to run is printed', async () => {
  const programs = await newFolder()
  await symlink('/usr/bin/flock', join(programs, 'flock'))
  const env = { PATH: programs, REELGATE_INSTALL: 'off' }
  const prepared = spawnSync(process.execPath, ['scripts/prepare.js', 'serve'], { cwd: ROOT, env, encoding: 'utf8' })
  expect(prepared.status).toBe(1)
  expect(prepared.stderr).toBe('Missing programs. Run this as root, then start again:\n\n  apt-get install ffmpeg bubblewrap\n\n')
})

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-build-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return folder
}

/** The packages that `npm ci --omit=dev` installs. */
async function linkProductionPackages(folder: string): Promise<void> {
  const lock: { packages: Record<string, { dev?: boolean; devOptional?: boolean }> } = JSON.parse(
    await readFile(join(ROOT, 'package-lock.json'), 'utf8'),
  )
  for (const [path, { dev, devOptional }] of Object.entries(lock.packages)) {
    const isNested = path.lastIndexOf('node_modules/') > 0
    if (path === '' || dev || devOptional || isNested) continue
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await symlink(join(ROOT, path), join(folder, path))
  }
}
