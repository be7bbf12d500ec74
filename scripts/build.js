// Builds the server, the player and the console from `src/` and `web/` into `dist/` with Vite. `npm run build` always builds all.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { isMain, NODE, root, run, runMain, say } from './run.js'
import { zipWordPressPlugin } from './wordpress-plugin.js'

const SOURCES = ['src', 'web', 'integrations', 'vite.config.ts', 'package.json', 'package-lock.json']
const BUILT_FROM = join(root, 'dist/.built-from')

/** Whether `dist/` is missing or was built from other sources. Without sources it is never stale. */
export function isBuildStale() {
  if (!existsSync(join(root, 'src'))) return false
  return !existsSync(BUILT_FROM) || readFileSync(BUILT_FROM, 'utf8') !== hashSources()
}

export async function build() {
  say('Building the server, the player and the console (vite)')
  const builtFrom = hashSources() // before the build, so that a file saved meanwhile makes the next start build again
  rmSync(BUILT_FROM, { force: true })
  await Promise.all([viteBuild('vite.config.ts'), buildConsole(), buildPlayer()])
  mkdirSync(join(root, 'dist'), { recursive: true })
  writeFileSync(BUILT_FROM, builtFrom)
}

async function buildConsole() {
  await viteBuild('web/console/vite.config.ts')
  writeFileSync(join(root, 'dist/console/reelgate-wordpress.zip'), zipWordPressPlugin())
}

/** One after the other: the first build empties the folder that the scripts for other sites' pages are in, too. */
async function buildPlayer() {
  await viteBuild('web/vite.config.ts')
  for (const script of ['api', 'player', 'uploader', 'vdo']) await viteBuild('web/embed/vite.config.ts', '--mode', script)
}

function viteBuild(...options) {
  return run(NODE, ['node_modules/vite/bin/vite.js', 'build', '--logLevel', 'warn', '-c', ...options], {
    env: { NODE_ENV: 'production' },
  })
}

function hashSources() {
  const hash = createHash('sha256')
  for (const file of SOURCES.flatMap((source) => listFiles(join(root, source)))) {
    hash.update(`\0${relative(root, file)}\0`).update(readFileSync(file))
  }
  return hash.digest('hex')
}

function listFiles(path) {
  if (!statSync(path).isDirectory()) return [path]
  const entries = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return entries.map((entry) => join(entry.parentPath ?? entry.path, entry.name)).sort()
}

if (isMain(import.meta.filename)) await runMain(build)
