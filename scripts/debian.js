// What comes from Debian: programs installed with apt-get, and packages that are only unpacked.
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { root, run, say } from './run.js'

/** What Reelgate runs, and what its tests and benches run. `isOptional`: without it Reelgate works, less well guarded. */
const PROGRAMS = [
  { package: 'ffmpeg', isInstalled: () => isOnPath('ffmpeg'), for: ['serve', 'test', 'bench'] },
  { package: 'bubblewrap', isInstalled: () => isOnPath('bwrap'), for: ['serve', 'test', 'bench'], isOptional: true },
  { package: 'chromium', isInstalled: () => isOnPath('chromium'), for: ['test', 'bench'] },
  { package: 'strace', isInstalled: () => isOnPath('strace'), for: ['test'] },
  { package: 'iproute2', isInstalled: () => isOnPath('ip'), for: ['test'] },
  { package: 'wrk', isInstalled: () => isOnPath('wrk'), for: ['bench'] },
  { package: 'faketime', isInstalled: () => isOnPath('faketime'), for: ['test'] },
  { package: 'postgresql', isInstalled: hasPostgres, for: ['test', 'bench'] },
]

/** Made when an optional program could not be installed: a machine without a network must not wait for it at every start. */
const OPTIONAL_UNAVAILABLE = join(root, '.cache/optional-programs-unavailable')

export function hasMissingPrograms(purpose) {
  const missing = missingPrograms(purpose)
  return (
    missing.some(({ isOptional }) => !isOptional) ||
    (missing.length > 0 && isInstallAllowed() && !existsSync(OPTIONAL_UNAVAILABLE))
  )
}

/** @throws Error with the one command to run, where we must not install or a needed program cannot be installed */
export function installPrograms(purpose) {
  const missing = missingPrograms(purpose)
  const needed = missing.filter(({ isOptional }) => !isOptional)
  if (!isInstallAllowed())
    throw new Error(`Missing programs. Run this as root, then start again:\n\n  ${installCommand(purpose)}\n`)
  say(`Installing from Debian, once: ${joinNames(missing)} (REELGATE_INSTALL=off leaves that to you)`)
  try {
    aptInstall(missing)
  } catch {
    if (needed.length > 0) aptInstall(needed)
    writeFileSync(OPTIONAL_UNAVAILABLE, '')
  }
  if (missingPrograms(purpose).some(({ isOptional }) => !isOptional))
    throw new Error(
      `This Debian is too old: its ${joinNames(needed)} is not new enough. Use Debian 12 or newer, then start again.`,
    )
}

/** What to say at every start while an optional program is missing; undefined when none is. */
export function adviceOnOptionalPrograms(purpose) {
  if (missingPrograms(purpose).length === 0) return undefined
  return `bubblewrap is missing, the sandbox around ffmpeg, so uploads wait and are not encoded. Run this as root: ${installCommand(purpose)}`
}

function installCommand(purpose) {
  return `apt-get install ${joinNames(missingPrograms(purpose))}`
}

function joinNames(programs) {
  return programs.map((program) => program.package).join(' ')
}

function missingPrograms(purpose) {
  return PROGRAMS.filter((program) => program.for.includes(purpose) && !program.isInstalled())
}

function isInstallAllowed() {
  return process.env.REELGATE_INSTALL !== 'off' && process.getuid() === 0 && isOnPath('apt-get')
}

function isOnPath(program) {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => folder !== '' && existsSync(join(folder, program)))
}

function hasPostgres() {
  const folder = '/usr/lib/postgresql'
  if (!existsSync(folder)) return false
  return readdirSync(folder).some((version) => Number(version) >= 15 && existsSync(join(folder, version, 'bin/postgres')))
}

// Tests start PostgreSQL clusters of their own: without this file Debian's package makes one more, which listens on port 5432.
const NO_CLUSTER = '/etc/postgresql-common/createcluster.d/reelgate-tests.conf'

function aptInstall(programs) {
  const env = { DEBIAN_FRONTEND: 'noninteractive' }
  try {
    run('apt-get', ['update'], { env })
  } catch {
    // Another source of this machine may be broken; whether that matters, the next command shows.
  }
  mkdirSync(dirname(NO_CLUSTER), { recursive: true })
  writeFileSync(NO_CLUSTER, 'create_main_cluster = false\n')
  try {
    const names = programs.map((program) => program.package)
    run('apt-get', ['install', '-y', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=300', ...names], { env })
  } finally {
    rmSync(NO_CLUSTER)
  }
}

/** Unpacks a Debian package into a folder below `work` without installing it. @returns that folder */
export function unpackDebian(name, work) {
  download(name, work)
  const deb = readdirSync(work).find((file) => file.endsWith('.deb'))
  const unpacked = join(work, 'unpacked')
  run('dpkg-deb', ['-x', join(work, deb), unpacked])
  return unpacked
}

// A fresh machine or container has no package lists; asking for them first would cost seconds everywhere else.
function download(name, folder) {
  try {
    run('apt-get', ['download', name], { cwd: folder })
  } catch {
    run('apt-get', ['update'])
    run('apt-get', ['download', name], { cwd: folder })
  }
}
