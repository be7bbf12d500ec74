// `node scripts/prepare.js serve|test|bench|conformance`: makes a fresh clone ready, and costs next to nothing when it is.
// Plain JavaScript for Node 20, without a package: it runs before there are any.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, delimiter, dirname, join } from 'node:path'
import { fetchFootage, footageIsMissing } from './footage.js'
import { isMain, root, run, runMain, say, unpackDebian } from './run.js'

const NODE = join(root, 'node_modules/.bin/node')
const CACHE = join(root, '.cache')

/** What is set up, in this order: the cheap refusals first. `isDue` is asked at every start, so it must be fast. */
const STEPS = [
  { for: ['serve', 'test', 'bench'], isDue: programsAreMissing, make: installPrograms },
  { for: ['test', 'bench'], isDue: postgresIsMissing, make: installPostgres },
  { for: ['serve', 'test', 'bench'], isDue: bubblewrapIsToBeTried, make: installBubblewrap },
  { for: ['serve', 'test', 'bench', 'conformance'], isDue: packagesAreStale, make: installPackages },
  { for: ['serve', 'test', 'bench'], isDue: packagesAreApart, make: joinPackages },
  { for: ['serve', 'test', 'bench'], isDue: webIsStale, make: buildWeb },
  { for: ['test', 'bench'], isDue: footageIsMissing, make: fetchFootage },
  { for: ['test', 'bench'], isDue: nginxIsMissing, make: fetchNginx },
]

const PROGRAMS = [
  { program: 'ffmpeg', package: 'ffmpeg', for: ['serve', 'test', 'bench'] },
  { program: 'chromium', package: 'chromium', for: ['test', 'bench'] },
  { program: 'strace', package: 'strace', for: ['test'] },
  { program: 'ip', package: 'iproute2', for: ['test'] },
  { program: 'wrk', package: 'wrk', for: ['bench'] },
  { program: 'faketime', package: 'faketime', for: ['test'] },
]

async function prepare(purpose, isLocked) {
  if (!['serve', 'test', 'bench', 'conformance'].includes(purpose))
    throw new Error('Say what to prepare: `node scripts/prepare.js serve`, `test`, `bench` or `conformance`.')
  if (process.platform !== 'linux' || !['x64', 'arm64'].includes(process.arch)) {
    throw new Error(`Reelgate runs on Linux on x64 and arm64, not on ${process.platform} ${process.arch}: start it there.`)
  }
  const steps = STEPS.filter((step) => step.for.includes(purpose))
  if (isLocked) {
    for (const step of steps) if (step.isDue(purpose)) step.make(purpose)
  } else if (steps.some((step) => step.isDue(purpose))) {
    prepareAlone(purpose)
  }
  if (!isLocked && purpose !== 'conformance' && !isInstalled('bwrap')) {
    say('bubblewrap is missing, so ffmpeg runs with one wall less around it: run `apt-get install bubblewrap` as root.')
  }
}

// Two starts at once must not install over each other. The kernel frees this lock however its holder ends.
function prepareAlone(purpose) {
  mkdirSync(CACHE, { recursive: true })
  const again = [join(CACHE, 'prepare.lock'), process.execPath, import.meta.filename, purpose, '--locked']
  const ended = spawnSync('flock', again, { stdio: ['ignore', 'inherit', 'inherit'] })
  if (ended.error) throw new Error('`flock` is missing: install the package util-linux, then start again.')
  if (ended.status !== 0) process.exit(1) // it has said why
}

// --- Debian's programs ---

function missingPrograms(purpose) {
  return PROGRAMS.filter((needed) => needed.for.includes(purpose) && !isInstalled(needed.program))
}

function programsAreMissing(purpose) {
  return missingPrograms(purpose).length > 0
}

function installPrograms(purpose) {
  const packages = missingPrograms(purpose).map((needed) => needed.package)
  if (!mayInstall()) throw isMissing(packages)
  installDebian(packages)
}

function isMissing(packages) {
  const missing = `${packages.join(' and ')} ${packages.length > 1 ? 'are' : 'is'} missing`
  const remedy = isInstalled('apt-get')
    ? `run \`apt-get install ${packages.join(' ')}\` as root`
    : `install ${packages.length > 1 ? 'them' : 'it'}`
  return new Error(`${missing}: ${remedy}, then start again.`)
}

// Tests start clusters of their own. Debian's package would make one more, which begins to serve on port 5432; installed and not
// unpacked, for it is not run by root, and nobody else may be able to read our folder.
const POSTGRES = '/usr/lib/postgresql'
const NO_CLUSTER = '/etc/postgresql-common/createcluster.d/reelgate-tests.conf'

function postgresIsMissing() {
  const versions = existsSync(POSTGRES) ? readdirSync(POSTGRES) : []
  return !versions.some((version) => version >= 15 && existsSync(join(POSTGRES, version, 'bin/postgres')))
}

function installPostgres() {
  if (!mayInstall()) throw isMissing(['postgresql'])
  mkdirSync(dirname(NO_CLUSTER), { recursive: true })
  writeFileSync(NO_CLUSTER, 'create_main_cluster = false\n')
  try {
    installDebian(['postgresql'])
  } finally {
    rmSync(NO_CLUSTER)
  }
  if (postgresIsMissing())
    throw new Error('The PostgreSQL of this Debian is older than 15: use a newer Debian, then start again.')
}

// The second wall around ffmpeg is wanted, not needed. One try: a machine without a network shall not wait at every start.
const BUBBLEWRAP_TRIED = join(CACHE, 'bubblewrap-not-to-be-had')

function bubblewrapIsToBeTried() {
  return !isInstalled('bwrap') && mayInstall() && !existsSync(BUBBLEWRAP_TRIED)
}

function installBubblewrap() {
  try {
    installDebian(['bubblewrap'])
  } catch {
    writeFileSync(BUBBLEWRAP_TRIED, '')
  }
}

function mayInstall() {
  return process.getuid() === 0 && isInstalled('apt-get')
}

function installDebian(packages) {
  say(`Installing ${packages.join(' and ')} (apt-get)`)
  const env = { DEBIAN_FRONTEND: 'noninteractive' }
  try {
    run('apt-get', ['update'], { env })
  } catch {
    // An owner's other source may be out of order; whether that matters, the next line tells.
  }
  run('apt-get', ['install', '-y', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=300', ...packages], { env })
}

function isInstalled(program) {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => folder !== '' && existsSync(join(folder, program)))
}

// Unpacked only: installed, Debian's nginx would begin to serve on port 80.
const NGINX = join(CACHE, 'nginx')

function nginxIsMissing() {
  return !existsSync('/usr/sbin/nginx') && !existsSync(NGINX)
}

function fetchNginx() {
  say('Fetching the Debian package nginx')
  const work = mkdtempSync(join(CACHE, 'fetch-'))
  try {
    renameSync(unpackDebian('nginx', work), NGINX)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

// --- packages of npm ---

/** npm leaves a copy of the lockfile's entries for what it put there: a hand's `npm ci` or `npm install` counts as well. */
function packagesAreStale() {
  const record = join(root, 'node_modules/.package-lock.json')
  if (!existsSync(record)) return true
  const wanted = readJson(join(root, 'package-lock.json')).packages
  const present = readJson(record).packages
  const isSame = ([path, entry]) =>
    present[path]
      ? present[path].version === entry.version && present[path].integrity === entry.integrity
      : entry.optional === true
  return !Object.entries(wanted).every(([path, entry]) => path === '' || isSame([path, entry])) || !nodeIsPinned()
}

function installPackages() {
  say('Installing packages (npm ci)')
  // Said aloud, for NODE_ENV=production or an owner's npm settings would leave out what builds the player, or Node itself.
  const args = ['ci', '--include=dev', '--include=optional', '--ignore-scripts', '--loglevel=error']
  const { npm_execpath: npm, npm_node_execpath: npmsNode } = process.env
  if (npm && basename(npm) === 'npm-cli.js') run(npmsNode ?? process.execPath, [npm, ...args])
  else run('npm', args)
  if (!nodeIsPinned()) {
    throw new Error(
      `node_modules/.bin/node is not Node.js ${pinnedNode()} or does not run here: Reelgate needs a Linux with glibc.`,
    )
  }
}

/** A start takes half as long when packages of hundreds of files are one file each. */
const JOIN = join(root, 'scripts/joined-packages.config.js')

function packagesAreApart() {
  const joined = join(root, 'node_modules/.joined/index.json')
  const sources = [join(root, 'node_modules/.package-lock.json'), JOIN]
  return !existsSync(joined) || sources.some((source) => statSync(source).mtimeMs > statSync(joined).mtimeMs)
}

function joinPackages() {
  run(NODE, [join(root, 'node_modules/vite/bin/vite.js'), 'build', '--config', JOIN])
}

function nodeIsPinned() {
  return spawnSync(NODE, ['--version'], { encoding: 'utf8' }).stdout?.trim() === `v${pinnedNode()}`
}

function pinnedNode() {
  return readJson(join(root, 'package.json')).optionalDependencies[`node-linux-${process.arch}`]
}

// --- the browser's part ---

const WEB_STAMP = join(root, 'dist/.built-from')

function webIsStale() {
  if (!existsSync(join(root, 'web/vite.config.ts'))) return false
  if (!existsSync(WEB_STAMP) || !existsSync(join(root, 'dist/player/manifest.json'))) return true
  return readFileSync(WEB_STAMP, 'utf8') !== hashOfWeb()
}

function buildWeb() {
  say('Building the player (vite)')
  const builtFrom = hashOfWeb() // before the build: a file saved meanwhile makes the next start build again
  rmSync(WEB_STAMP, { force: true })
  const args = ['node_modules/vite/bin/vite.js', 'build', '-c', 'web/vite.config.ts', '--logLevel', 'warn']
  run(NODE, args, { env: { NODE_ENV: 'production' } })
  mkdirSync(join(root, 'dist'), { recursive: true })
  writeFileSync(WEB_STAMP, builtFrom)
}

function hashOfWeb() {
  const hash = createHash('sha256').update(readFileSync(join(root, 'package-lock.json')))
  const entries = readdirSync(join(root, 'web'), { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath ?? entry.path, entry.name))
  for (const file of files.sort()) hash.update(`\0${file.slice(root.length)}\0`).update(readFileSync(file))
  return hash.digest('hex')
}

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'))
}

if (isMain(import.meta.filename)) await runMain(() => prepare(process.argv[2], process.argv[3] === '--locked'))
