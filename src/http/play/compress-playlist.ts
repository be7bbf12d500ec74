import { promisify } from 'node:util'
import { constants, gzip, type ZlibOptions } from 'node:zlib'
import { LRUCache } from 'lru-cache'

const gzipped: (text: string, options: ZlibOptions) => Promise<Buffer> = promisify(gzip)
/**
 * Of an hour's playlist: 2 ms, half of the default level's time, for 2 % more bytes. Signatures repeat nothing: matches of a few letters
 * would cost more than they save, a twentieth of a playlist of presigned addresses.
 */
const GZIP = { level: 4, strategy: constants.Z_FILTERED }
/** Ten playlists of two hours with presigned addresses, which are the longest. */
const MAX_KEPT_BYTES = 8 * 2 ** 20

/** Compresses playlists. Those of a rendition are the same for all viewers, with presigned addresses for an hour: the latest are kept. */
export function createPlaylistCompressor(): (playlist: string) => Promise<Buffer> {
  const kept = new LRUCache<string, Buffer>({
    maxSize: MAX_KEPT_BYTES,
    sizeCalculation: (compressed, playlist) => compressed.length + playlist.length,
  })
  return async (playlist) => {
    const known = kept.get(playlist)
    if (known) return known
    const compressed = await gzipped(playlist, GZIP)
    kept.set(playlist, compressed)
    return compressed
  }
}
