import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

// Checked before anything else is loaded: the database's binary crashes without a word under an older Node.
const [major] = process.versions.node.split('.')
if (major !== '26') {
  process.stderr.write(
    `Reelgate needs Node 26 and this is Node ${process.versions.node}. Start it with npm start or npx reelgate, which bring the right one.\n`,
  )
  process.exit(1)
}
// Whatever folder the data lie in: the database shows titles and hashes of keys to whoever may read it.
process.umask(0o077)
// Stripping the types and compiling is most of a start, so what comes of it is kept; where it cannot be written, it is not.
// This file is read before that, so it has no types to strip.
const { enableCompileCache, registerHooks } = await import('node:module')
enableCompileCache(join(import.meta.dirname, '../.cache/compile'))
// So is finding the files: of some packages the launcher joins hundreds into one (scripts/joined-packages.config.js), and ours lie
// where their importers say.
const joined = findJoinedPackages()
registerHooks({
  resolve(name, context, next) {
    const url = joined.get(name)
    if (url !== undefined) return { url, shortCircuit: true }
    if (!/^\..*\.ts$/.test(name)) return next(name, context)
    return { url: new URL(name, context.parentURL).href, format: 'module-typescript', shortCircuit: true }
  },
})
const { runCommandLine } = await import('../src/cli/command-line.ts')
process.exitCode = await runCommandLine(process.argv)

/** The files that stand for packages, by their names; none when packages were installed since. */
function findJoinedPackages() {
  const packages = join(import.meta.dirname, '../node_modules')
  const folder = join(packages, '.joined')
  try {
    if (statSync(join(folder, 'index.json')).mtimeMs < statSync(join(packages, '.package-lock.json')).mtimeMs) return new Map()
    const index = JSON.parse(readFileSync(join(folder, 'index.json'), 'utf8'))
    return new Map(Object.entries(index).map(([name, file]) => [name, pathToFileURL(join(folder, file)).href]))
  } catch {
    return new Map() // started without the launcher
  }
}
