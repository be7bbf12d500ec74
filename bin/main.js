import { join } from 'node:path'

// Checked before anything else is loaded: the database's binary crashes without a word under an older Node.
const [major] = process.versions.node.split('.')
if (major !== '26') {
  process.stderr.write(
    `Reelgate needs Node 26 and this is Node ${process.versions.node}. Start it with npm start, npx reelgate or the package's reelgate, which bring the right one.\n`,
  )
  process.exit(1)
}
// Whatever the data folder's permissions are: the database has titles and hashes of keys, for the server's user alone.
process.umask(0o077)
// Compiling is a large part of a start, so its result is kept; where it cannot be written, it is not.
const { enableCompileCache } = await import('node:module')
enableCompileCache(join(process.env.CACHE_DIRECTORY ?? join(import.meta.dirname, '../.cache'), 'compile')) // systemd names its own
await import('../dist/server/main.js')
