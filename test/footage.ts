import { existsSync } from 'node:fs'
import { join } from 'node:path'

const folder = join(import.meta.dirname, '../.cache/footage')

/**
 * Videos that people made, in addition to those the tests make themselves: absolute paths, each a file of a Debian package.
 * `npm test` fetches them; by hand: `node scripts/footage.js`, which also says what they are.
 * @throws Error where they have not been fetched: a run of one file without `npm test` has prepared nothing
 */
export const footage = {
  get wannaworktogether() {
    return fetched('wannaworktogether.mp4')
  },
  get movieHello() {
    return fetched('movie-hello.mp4')
  },
  get cockatoo() {
    return fetched('cockatoo.mp4')
  },
}

function fetched(name: string): string {
  const path = join(folder, name)
  if (existsSync(path)) return path
  throw new Error(`${name} has not been fetched, so this test cannot run. Run: node scripts/footage.js (npm test does it, too)`)
}
