import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { blobOf, getStoredSource } from '../data-folder.ts'
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
  { harm: 'one bit in its middle is another', hurt: (bytes: Buffer) => flipBit(bytes, 0.5) },
  { harm: 'one bit at its end is another', hurt: (bytes: Buffer) => flipBit(bytes, 0.999) },
  { harm: 'it was cut', hurt: (bytes: Buffer) => bytes.subarray(0, Math.floor(bytes.length / 2)) },
  { harm: 'it is gone', hurt: () => undefined },
]

test.each(sampleOf('changed sources', HARMS, 1))(
  'a video whose source was changed on the server’s disk ($harm) ends as "Encoding error" with a reason, not as finished',
  async ({ hurt }) => {
    const videoId = await reelgate.owner.upload('A video', video)
    await reelgate.kill()
    const source = blobOf(reelgate, 'sources', getStoredSource(reelgate, videoId).blob)
    const hurtBytes = hurt(await source.read())
    await (hurtBytes ? source.write(hurtBytes) : source.remove())
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

function flipBit(bytes: Buffer, location: number): Buffer {
  const at = Math.floor(bytes.length * location)
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at)
  return bytes
}
