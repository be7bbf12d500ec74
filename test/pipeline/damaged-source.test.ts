import { open, rm, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { getStoredSource, type StoredSource } from '../data-folder.ts'
import { makeNumberedVideo } from '../encode/videos.ts'
import { type Reelgate, startSharedReelgate } from '../reelgate.ts'
import { sampleOf } from '../sample.ts'

let reelgate: Reelgate & { remove(): Promise<void> }
let video: string
beforeAll(async () => {
  reelgate = await startSharedReelgate()
  video = await makeNumberedVideo(join(reelgate.dataDir, '..', 'video.mp4'), {
    frames: 500,
    rate: '25',
    widthPx: 854,
    heightPx: 480,
    encode: ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '250', '-pix_fmt', 'yuv420p'],
  })
})
afterAll(() => reelgate.remove())

const HARMS = [
  { harm: 'one bit in its middle is another', hurt: (source: StoredSource) => flipBit(source.path, 0.5) },
  { harm: 'one bit at its end is another', hurt: (source: StoredSource) => flipBit(source.path, 0.999) },
  { harm: 'it was cut', hurt: async ({ path }: StoredSource) => truncate(path, Math.floor((await stat(path)).size / 2)) },
  { harm: 'it is gone', hurt: ({ path }: StoredSource) => rm(path) },
]

test.each(sampleOf('changed sources', HARMS, 1))(
  'a video whose source was changed on the server’s disk ($harm) ends as "Encoding error" with a reason, not as finished',
  async ({ hurt }) => {
    const videoId = await reelgate.owner.upload('A video', video)
    await reelgate.kill()
    await hurt(getStoredSource(reelgate, videoId))
    await reelgate.restart()
    const { status, statusReason } = await untilFailed(videoId)
    expect(status).toBe('Encoding error')
    expect(statusReason).toBe('The uploaded file was changed on this server’s disk. Check the disk and upload it again.')
  },
)

async function untilFailed(videoId: string) {
  for (;;) {
    const video = await reelgate.owner.video(videoId)
    if (/error|Not/.test(video.status)) return video
    await pause(50)
  }
}

async function flipBit(path: string, location: number): Promise<void> {
  await using file = await open(path, 'r+')
  const at = Math.floor((await file.stat()).size * location)
  const byte = Buffer.alloc(1)
  await file.read(byte, 0, 1, at)
  await file.write(Buffer.from([byte.readUInt8() ^ 1]), 0, 1, at)
}
