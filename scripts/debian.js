// Programs from Debian: installed with apt-get, or only unpacked.
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { root, run, say } from './run.js'

/** The programs of Reelgate, its tests and its benchmarks. `isOptional`: Reelgate starts without it. */
const PROGRAMS = [
  { package: 'ffmpeg', isInstalled: () => isOnPath('ffmpeg'), for: ['serve', 'test', 'bench'] },
  { package: 'bubblewrap', isInstalled: () => isOnPath('bwrap'), for: ['serve', 'test', 'bench'], isOptional: true },
  { package: 'chromium', isInstalled: () => isOnPath('chromium'), for: ['test', 'bench'] },
  { package: 'chromium-headless-shell', isInstalled: () => isOnPath('chromium-headless-shell'), for: ['test', 'bench'] },
  { package: 'firefox-esr', isInstalled: () => isOnPath('firefox-esr'), for: ['test'] },
  { package: 'webkit2gtk-driver', isInstalled: () => isOnPath('WebKitWebDriver'), for: ['test'] },
  { package: 'xvfb', isInstalled: () => isOnPath('Xvfb'), for: ['test'] },
  // WebKitGTK decodes video with these.
  { package: 'gstreamer1.0-libav', isInstalled: () => hasGStreamer('libav'), for: ['test'] },
  { package: 'gstreamer1.0-plugins-good', isInstalled: () => hasGStreamer('isomp4'), for: ['test'] },
  { package: 'gstreamer1.0-plugins-bad', isInstalled: () => hasGStreamer('videoparsersbad'), for: ['test'] },
  // Speech, and what recognizes it.
  { package: 'espeak-ng', isInstalled: () => isOnPath('espeak-ng'), for: ['test'] },
  { package: 'pocketsphinx', isInstalled: () => isOnPath('pocketsphinx_continuous'), for: ['test'] },
  { package: 'pocketsphinx-en-us', isInstalled: () => existsSync('/usr/share/pocketsphinx/model/en-us'), for: ['test'] },
  { package: 'acl', isInstalled: () => isOnPath('setfacl'), for: ['test'] },
  { package: 'strace', isInstalled: () => isOnPath('strace'), for: ['test'] },
  { package: 'iproute2', isInstalled: () => isOnPath('ip'), for: ['test'] },
  // The languages of the code that the console gives to owners' sites.
  { package: 'curl', isInstalled: () => isOnPath('curl'), for: ['test'] },
  { package: 'php-cli', isInstalled: () => isOnPath('php'), for: ['test'] },
  { package: 'python3', isInstalled: () => isOnPath('python3'), for: ['test'] },
  { package: 'rsync', isInstalled: () => isOnPath('rsync'), for: ['test'] },
  { package: 'systemd', isInstalled: () => existsSync('/usr/lib/systemd/systemd'), for: ['test'] },
  // The fresh Debian of long tests.
  { package: 'mmdebstrap', isInstalled: () => isOnPath('mmdebstrap'), for: process.env.REELGATE_LONG === '1' ? ['test'] : [] },
  // WordPress, PgBouncer and HAProxy themselves are only unpacked, since their packages bring a server that starts.
  ...[
    ...['mariadb-server-core', 'php-mysql', 'libjs-underscore'],
    ...['pulseaudio', 'pulseaudio-utils', 'gstreamer1.0-pulseaudio'], // a sound device, and how WebKitGTK plays on it
    ...['libc-ares2', 'liblua5.3-0', 'libopentracing-c-wrapper0'],
  ].map((name) => ({
    package: name,
    isInstalled: () => existsSync(`/usr/share/doc/${name}`),
    for: process.env.REELGATE_LONG === '1' ? ['test'] : [],
  })),
  { package: 'wrk', isInstalled: () => isOnPath('wrk'), for: ['bench'] },
  { package: 'faketime', isInstalled: () => isOnPath('faketime'), for: ['test'] },
  { package: 'postgresql', isInstalled: hasPostgres, for: ['test', 'bench'] },
  // An S3 store, with what it keeps objects in.
  { package: 'radosgw', isInstalled: () => isOnPath('radosgw'), for: ['test'] },
  { package: 'ceph-mon', isInstalled: () => isOnPath('ceph-mon'), for: ['test'] },
  { package: 'ceph-osd', isInstalled: () => isOnPath('ceph-osd'), for: ['test'] },
  { package: 'ceph-common', isInstalled: () => isOnPath('ceph'), for: ['test'] },
]

/** Created when an optional program could not be installed: without a network each start would wait for it. */
const OPTIONAL_UNAVAILABLE = join(root, '.cache/optional-programs-unavailable')

export function hasMissingPrograms(purpose) {
  const missing = missingPrograms(purpose)
  return (
    missing.some(({ isOptional }) => !isOptional) ||
    (missing.length > 0 && isInstallAllowed() && !existsSync(OPTIONAL_UNAVAILABLE))
  )
}

/** @throws Error with the command to run, when installing is not allowed or a required program cannot be installed */
export async function installPrograms(purpose) {
  const missing = missingPrograms(purpose)
  const required = missing.filter(({ isOptional }) => !isOptional)
  if (!isInstallAllowed())
    throw new Error(`Missing programs. Run this as root, then start again:\n\n  ${installCommand(purpose)}\n`)
  say(`Installing from Debian, once: ${joinNames(missing)} (REELGATE_INSTALL=off prints the command instead)`)
  try {
    await aptInstall(missing)
  } catch {
    if (required.length > 0) await aptInstall(required)
    writeFileSync(OPTIONAL_UNAVAILABLE, '')
  }
  if (missingPrograms(purpose).some(({ isOptional }) => !isOptional))
    throw new Error(
      `This Debian is too old: its ${joinNames(required)} is not new enough. Use Debian 12 or newer, then start again.`,
    )
}

/** The advice of every start while an optional program is missing; undefined otherwise. */
export function adviceOnOptionalPrograms(purpose) {
  if (missingPrograms(purpose).length === 0) return undefined
  return `bubblewrap, the sandbox around ffmpeg, is missing, so uploads wait and are not encoded. Run this as root: ${installCommand(purpose)}`
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

function hasGStreamer(plugin) {
  return readdirSync('/usr/lib').some((folder) => existsSync(join('/usr/lib', folder, `gstreamer-1.0/libgst${plugin}.so`)))
}

function hasPostgres() {
  const folder = '/usr/lib/postgresql'
  if (!existsSync(folder)) return false
  return readdirSync(folder).some((version) => Number(version) >= 15 && existsSync(join(folder, version, 'bin/postgres')))
}

// Tests start PostgreSQL clusters of their own: without this file Debian's package creates another, which listens on port 5432.
const NO_CLUSTER = '/etc/postgresql-common/createcluster.d/reelgate-tests.conf'

async function aptInstall(programs) {
  const env = { DEBIAN_FRONTEND: 'noninteractive' }
  try {
    await run('apt-get', ['update'], { env })
  } catch {
    // One of the machine's package sources may be broken; the next command shows whether that matters.
  }
  mkdirSync(dirname(NO_CLUSTER), { recursive: true })
  writeFileSync(NO_CLUSTER, 'create_main_cluster = false\n')
  try {
    const names = programs.map((program) => program.package)
    await run('apt-get', ['install', '-y', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=300', ...names], { env })
  } finally {
    rmSync(NO_CLUSTER)
  }
}

/** Unpacks a Debian package into a folder below `work` without installing it. @returns that folder */
export async function unpackDebian(name, work) {
  await download(name, work)
  const deb = readdirSync(work).find((file) => file.endsWith('.deb'))
  const unpacked = join(work, 'unpacked')
  await run('dpkg-deb', ['-x', join(work, deb), unpacked])
  return unpacked
}

// A fresh machine or container has no package lists; updating them first would cost seconds everywhere else.
async function download(name, folder) {
  try {
    await run('apt-get', ['download', name], { cwd: folder })
  } catch {
    await run('apt-get', ['update'])
    await run('apt-get', ['download', name], { cwd: folder })
  }
}
