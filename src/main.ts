import { join } from 'node:path'

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
const { enableCompileCache } = await import('node:module')
enableCompileCache(join(import.meta.dirname, '../.cache/compile'))
const { runCommandLine } = await import('./cli/command-line.ts')
process.exitCode = await runCommandLine(process.argv)
