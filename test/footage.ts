import { join } from 'node:path'

const folder = join(import.meta.dirname, '../.cache/footage')

/**
 * Videos that people made, beside those the tests make themselves: absolute paths, each a file of a Debian package.
 * `npm test` fetches them; by hand: `node scripts/footage.js`, which also says what they are.
 */
export const footage = {
  wannaworktogether: join(folder, 'wannaworktogether.mp4'),
  movieHello: join(folder, 'movie-hello.mp4'),
  cockatoo: join(folder, 'cockatoo.mp4'),
}
