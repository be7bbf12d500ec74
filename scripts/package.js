// `npm run package [-- amd64|arm64|wordpress …] [-- --to DIR]`: builds Debian packages, and the WordPress plug-in as a zip, into `build/`.
// A package holds the built server, player and console, the pinned Node and the few npm packages that the build leaves outside.
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { build, isBuildStale } from './build.js'
import { hasStalePackages } from './prepare.js'
import { isMain, root, run, runMain, say } from './run.js'
import { zipWordPressPlugin } from './wordpress-plugin.js'

const ARCHITECTURES = { amd64: 'x64', arm64: 'arm64' }
const HOME = 'usr/lib/reelgate'
const TEMPLATES = join(root, 'packaging/debian')

/** The npm packages that are not part of the build (see vite.config.ts), and what the server needs of each. */
function externalFiles(cpu) {
  return [
    { package: `node-linux-${cpu}`, files: ['bin/node', 'LICENSE'], to: 'node' },
    { package: 'better-sqlite3', files: ['lib', 'prebuilds', 'package.json', 'LICENSE'], only: `linux-${cpu}` },
    { package: '@ip-location-db/geo-whois-asn-country-mmdb', files: ['geo-whois-asn-country.mmdb', 'package.json'] },
  ]
}

async function buildPackages() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { to: { type: 'string', default: join(root, 'build') }, compression: { type: 'string', default: 'xz' } },
  })
  const all = [...Object.keys(ARCHITECTURES), WORDPRESS]
  const wanted = positionals.length > 0 ? positionals : all
  const unknown = wanted.find((name) => !all.includes(name))
  if (unknown) throw new Error(`There is no package for ${unknown}: name some of ${all.join(', ')}.`)
  mkdirSync(values.to, { recursive: true })
  if (wanted.includes(WORDPRESS)) say(writeWordPressPlugin(resolve(values.to)))
  const architectures = wanted.filter((name) => name !== WORDPRESS)
  if (architectures.length > 0 && isBuildStale()) await build()
  for (const architecture of architectures) say(await buildPackage(architecture, resolve(values.to), values.compression))
}

const WORDPRESS = 'wordpress'

/** @returns its path */
function writeWordPressPlugin(to) {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const file = join(to, `reelgate-wordpress_${version}.zip`)
  writeFileSync(file, zipWordPressPlugin())
  return file
}

/** @returns the package's path */
async function buildPackage(architecture, to, compression) {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const work = mkdtempSync(join(tmpdir(), 'reelgate-package-'))
  try {
    const tree = join(work, 'tree')
    layOut(tree, await findPackages(architecture, join(work, 'npm')), ARCHITECTURES[architecture])
    writeControl(tree, { version, architecture })
    const deb = join(to, `reelgate_${version}_${architecture}.deb`)
    // In a folder of its own, so that an interrupted build leaves no half-written package under the final name.
    await run('dpkg-deb', ['--root-owner-group', `-Z${compression}`, '--build', tree, join(work, 'reelgate.deb')])
    cpSync(join(work, 'reelgate.deb'), deb)
    return deb
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** @returns this clone's own packages for this machine's processor, where they are those of the lockfile; else installs them */
async function findPackages(architecture, folder) {
  if (ARCHITECTURES[architecture] === process.arch && !hasStalePackages('build')) return join(root, 'node_modules')
  await installPackages(architecture, folder)
  return join(folder, 'node_modules')
}

/** From the lockfile, so that each file is checked against its hash, for that processor and not this machine's. */
async function installPackages(architecture, folder) {
  mkdirSync(folder)
  for (const file of ['package.json', 'package-lock.json', '.npmrc']) {
    if (existsSync(join(root, file))) cpSync(join(root, file), join(folder, file))
  }
  const args = ['ci', '--omit=dev', '--include=optional', '--ignore-scripts', '--loglevel=error', '--os=linux', '--libc=glibc']
  args.push('--prefer-offline') // what npm has cached has the hash of the lockfile, or is fetched
  await run('npm', [...args, `--cpu=${ARCHITECTURES[architecture]}`], { cwd: folder })
}

function layOut(tree, packages, cpu) {
  const home = join(tree, HOME)
  const parts = ['bin/main.js', 'dist/server', 'dist/player', 'dist/console', 'package.json']
  for (const part of parts) copy(join(root, part), join(home, part))
  for (const external of externalFiles(cpu)) {
    const target = external.to ? join(home, external.to) : join(home, 'node_modules', external.package)
    for (const file of external.files) copy(join(packages, external.package, file), join(target, file))
    if (external.only) keepOnly(join(target, 'prebuilds'), external.only)
  }
  copy(join(TEMPLATES, 'reelgate'), join(tree, 'usr/bin/reelgate'), 0o755)
  copy(join(TEMPLATES, 'reelgate.service'), join(tree, 'usr/lib/systemd/system/reelgate.service'))
  copy(join(TEMPLATES, 'default'), join(tree, 'etc/default/reelgate'))
  copy(join(root, 'LICENSE'), join(tree, 'usr/share/doc/reelgate/copyright'))
  setModes(tree)
}

function copy(from, to, mode) {
  mkdirSync(join(to, '..'), { recursive: true })
  cpSync(from, to, { recursive: true, dereference: true })
  if (mode !== undefined) chmodSync(to, mode)
}

/** Removes the native parts for other processors and C libraries. */
function keepOnly(folder, platform) {
  const others = readdirSync(folder).filter((entry) => !entry.includes(platform) || entry.includes('musl'))
  for (const entry of others) rmSync(join(folder, entry), { recursive: true })
  if (readdirSync(folder).length === 0)
    throw new Error(`${folder} has nothing for ${platform}: look at the package's new layout.`)
}

/** Readable by everyone, writable by root alone, whatever the umask of this build. */
function setModes(path) {
  const stats = statSync(path)
  chmodSync(path, stats.isDirectory() || stats.mode & 0o100 ? 0o755 : 0o644)
  if (stats.isDirectory()) for (const entry of readdirSync(path)) setModes(join(path, entry))
}

function writeControl(tree, values) {
  const control = join(tree, 'DEBIAN')
  mkdirSync(control)
  const template = readFileSync(join(TEMPLATES, 'control'), 'utf8')
  const kilobytes = String(Math.ceil(sizeBytes(tree) / 1024))
  const filled = { ...values, size: kilobytes }
  writeFileSync(
    join(control, 'control'),
    template.replaceAll(/@(\w+)@/g, (_, name) => filled[name]),
  )
  writeFileSync(join(control, 'conffiles'), '/etc/default/reelgate\n')
  for (const script of ['postinst', 'prerm', 'postrm']) copy(join(TEMPLATES, script), join(control, script), 0o755)
}

function sizeBytes(path) {
  const stats = statSync(path)
  if (!stats.isDirectory()) return stats.size
  return readdirSync(path).reduce((sum, entry) => sum + sizeBytes(join(path, entry)), 0)
}

if (isMain(import.meta.filename)) await runMain(buildPackages)
