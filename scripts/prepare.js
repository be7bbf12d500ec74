// `node scripts/prepare.js serve|test|bench|conformance`: prepares a fresh clone, and is fast if everything is up to date.
// Plain JavaScript for Node 20, without packages: it runs before they are installed.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { build, isBuildStale } from './build.js'
import { adviceOnOptionalPrograms, hasMissingPrograms, installPrograms, unpackDebian } from './debian.js'
import { fetchFootage, isFootageMissing } from './footage.js'
import { isMain, NODE, root, run, runMain, say } from './run.js'

const CACHE = join(root, '.cache')
const NGINX = join(CACHE, 'nginx')
const WORDPRESS = join(CACHE, 'wordpress')
const PGBOUNCER = join(CACHE, 'pgbouncer')
const HAPROXY = join(CACHE, 'haproxy')

/** The stages of the setup, in order; the steps of one run concurrently. `isStale` runs at every start, so it must be fast. */
const STAGES = [
  [{ for: ['serve', 'test', 'bench'], isStale: hasMissingPrograms, make: installPrograms }],
  [{ for: ['serve', 'test', 'bench', 'conformance'], isStale: hasStalePackages, make: installPackages }],
  [
    { for: ['serve', 'test', 'bench'], isStale: isBuildStale, make: build },
    { for: ['test', 'bench'], isStale: isUnfetched, make: fetchFiles },
  ],
]

async function prepare(purpose, isLocked) {
  const stages = STAGES.map((steps) => steps.filter((step) => step.for.includes(purpose)))
  if (stages.flat().length === 0)
    throw new Error('Expected a purpose: `node scripts/prepare.js serve`, `test`, `bench` or `conformance`.')
  if (process.platform !== 'linux' || !['x64', 'arm64'].includes(process.arch))
    throw new Error(`Reelgate runs on Linux on x64 and arm64, not on ${process.platform} ${process.arch}: start it there.`)
  if (isLocked) {
    for (const steps of stages) await Promise.all(steps.filter((step) => step.isStale(purpose)).map((step) => step.make(purpose)))
    return
  }
  if (stages.flat().some((step) => step.isStale(purpose))) prepareLocked(purpose)
  const advice = purpose !== 'conformance' && adviceOnOptionalPrograms(purpose)
  if (advice) say(advice)
}

// Concurrent starts must not install over each other. The kernel releases this lock however its holder ends.
function prepareLocked(purpose) {
  mkdirSync(CACHE, { recursive: true })
  const command = [join(CACHE, 'prepare.lock'), process.execPath, import.meta.filename, purpose, '--locked']
  const result = spawnSync('flock', command, { stdio: ['ignore', 'inherit', 'inherit'] })
  if (result.error) throw new Error('`flock` is missing: install the package util-linux, then start again.')
  if (result.status !== 0) process.exit(1) // it has printed the reason
}

// --- npm packages ---

/** A built server runs without the development packages. */
function needsDevelopment(purpose) {
  return purpose !== 'serve' || isBuildStale()
}

/** Compares the lockfile with npm's record of installed packages, so that `npm ci` or `npm install` by hand count, too. */
export function hasStalePackages(purpose) {
  const record = join(root, 'node_modules/.package-lock.json')
  if (!existsSync(record)) return true
  const isNeeded = needsDevelopment(purpose) ? () => true : ([, entry]) => !entry.dev
  const installed = readJson(record).packages
  const isInstalled = ([path, entry]) =>
    installed[path]
      ? installed[path].version === entry.version && installed[path].integrity === entry.integrity
      : entry.optional === true
  const [, ...locked] = Object.entries(readJson(join(root, 'package-lock.json')).packages)
  return !locked.filter(isNeeded).every(isInstalled) || !isNodePinned()
}

async function installPackages(purpose) {
  say('Installing packages (npm ci)')
  // Explicit: NODE_ENV=production or npm settings of the machine could omit the packages that build the server, or Node itself.
  const omitOrInclude = needsDevelopment(purpose) ? '--include=dev' : '--omit=dev'
  const args = ['ci', omitOrInclude, '--include=optional', '--ignore-scripts', '--loglevel=error']
  const { npm_execpath: npm, npm_node_execpath: npmNode } = process.env
  if (npm && basename(npm) === 'npm-cli.js') await run(npmNode ?? process.execPath, [npm, ...args])
  else await run('npm', args)
  if (!isNodePinned())
    throw new Error(
      `node_modules/.bin/node is not Node.js ${pinnedNode()} or does not run here: Reelgate needs Linux with glibc.`,
    )
}

function isNodePinned() {
  return spawnSync(NODE, ['--version'], { encoding: 'utf8' }).stdout?.trim() === `v${pinnedNode()}`
}

function pinnedNode() {
  return readJson(join(root, 'package.json')).optionalDependencies[`node-linux-${process.arch}`]
}

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'))
}

// --- files of Debian packages, for tests and benchmarks: footage, and programs whose packages would start a server ---

function isUnfetched() {
  return isFootageMissing() || isNginxMissing() || [WORDPRESS, PGBOUNCER, HAPROXY].some(isMissingForLong)
}

/** One after the other: each may have to update apt's lists. */
async function fetchFiles() {
  await fetchFootage()
  if (isNginxMissing()) await fetchUnpacked('nginx', NGINX)
  if (isMissingForLong(WORDPRESS)) await fetchUnpacked('wordpress', WORDPRESS)
  if (isMissingForLong(PGBOUNCER)) await fetchUnpacked('pgbouncer', PGBOUNCER)
  if (isMissingForLong(HAPROXY)) await fetchUnpacked('haproxy', HAPROXY)
}

function isNginxMissing() {
  return !existsSync('/usr/sbin/nginx') && !existsSync(NGINX)
}

/** For long tests alone. */
function isMissingForLong(folder) {
  return process.env.REELGATE_LONG === '1' && !existsSync(folder)
}

async function fetchUnpacked(name, folder) {
  say(`Fetching the Debian package ${name}`)
  const work = mkdtempSync(join(CACHE, 'fetch-'))
  try {
    renameSync(await unpackDebian(name, work), folder)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

if (isMain(import.meta.filename)) await runMain(() => prepare(process.argv[2], process.argv[3] === '--locked'))
