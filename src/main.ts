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
const { enableCompileCache, registerHooks } = await import('node:module')
enableCompileCache(join(import.meta.dirname, '../.cache/compile'))
// And finding the hundreds of files of some packages: the launcher joins each into one (scripts/joined-packages.config.js).
const joined = findJoinedPackages()
registerHooks({
  resolve(name, context, next) {
    const url = joined.get(name)
    return url === undefined ? next(name, context) : { url, shortCircuit: true }
  },
})
const { runCommandLine } = await import('./cli/command-line.ts')
process.exitCode = await runCommandLine(process.argv)

/** The files that stand for packages, by their names; none when packages were installed since. */
function findJoinedPackages(): ReadonlyMap<string, string> {
  const packages = join(import.meta.dirname, '../node_modules')
  const folder = join(packages, '.joined')
  try {
    if (statSync(join(folder, 'index.json')).mtimeMs < statSync(join(packages, '.package-lock.json')).mtimeMs) return new Map()
    const index: Record<string, string> = JSON.parse(readFileSync(join(folder, 'index.json'), 'utf8'))
    return new Map(Object.entries(index).map(([name, file]) => [name, pathToFileURL(join(folder, file)).href]))
  } catch {
    return new Map() // started without the launcher
  }
}
