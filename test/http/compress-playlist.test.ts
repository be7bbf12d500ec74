import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { createPlaylistCompressor } from '../../src/http/play/compress-playlist.ts'

test('F-330: each viewer is sent the playlist that is theirs, of any length, whether or not another was sent it before', async () => {
  const compress = createPlaylistCompressor()
  // Of one length, as those of the renditions of a video often are, and more than are kept.
  const playlists = Array.from({ length: 30 }, (_, number) => `#EXTM3U\n${String(number).padStart(2, '0').repeat(400_000)}`)
  for (const playlist of [...playlists, ...playlists.toReversed()])
    expect(gunzipSync(await compress(playlist)).toString()).toBe(playlist)
  const [first = ''] = playlists
  expect(await compress(first)).toBe(await compress(first))
})
