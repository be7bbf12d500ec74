import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, test as everyTime, expect } from 'vitest'
import type { VideoBody } from '../client.ts'
import { untilFinished } from '../data-folder.ts'
import { ffmpeg, newFolder } from '../encode/videos.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { addEmptyPackets, damageOgg } from '../ogg.ts'
import { sampledTests } from '../sample.ts'
import { makeVideo } from '../videos.ts'
import { type Receivers, startReceivers, webhooksOf } from '../webhooks/receiver.ts'
import { decode, downloadVideo, writeRendition } from './videos.ts'

const { test, draw } = sampledTests('streams that break off', 1)

// Videos of which one stream cannot be decoded to its end: what can be is shown, and their owner reads where it ends.

const PICTURE = ['-f', 'lavfi', '-i', 'testsrc2=s=64x64:r=25:d=8.4']
const SOUND = ['-f', 'lavfi', '-i', 'sine=440:r=48000:d=8.4']
const FRAMES = 210

let receivers: Receivers
let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  receivers = await startReceivers()
  reelgate = await startSharedReelgate({ env: { REELGATE_OUTBOUND_ALLOW: receivers.host } })
})
afterAll(async () => {
  await reelgate.remove()
  await receivers.close()
})

async function makeOgg(audioCodec = 'libvorbis'): Promise<string> {
  const file = join(await newFolder(), 'a.ogv')
  await ffmpeg(...PICTURE, ...SOUND, '-c:v', 'libtheora', '-g', '5', '-c:a', audioCodec, file)
  return file
}

async function finish(file: string): Promise<VideoBody> {
  const videoId = await reelgate.owner.upload('Breaks off', file)
  await reelgate.owner.until(videoId, 'ready')
  await untilFinished(reelgate, videoId)
  return reelgate.owner.video(videoId)
}

test.each([
  { what: 'Vorbis that no decoder reads', codec: 'libvorbis', checksum: 'right', from: 0.9, at: '0:08' },
  { what: 'Opus that no decoder reads', codec: 'libopus', checksum: 'right', from: 0.5, at: '0:0[34]' },
  { what: 'Vorbis on pages of wrong checksums', codec: 'libvorbis', checksum: 'wrong', from: 0.5, at: '0:0[34]' },
] as const)('M17: an Ogg that ends in $what plays all its frames, and its owner reads where the audio ends', async (fault) => {
  const file = await makeOgg(fault.codec)
  await damageOgg(file, { stream: 'audio', ...fault })
  const { id, statusReason } = await finish(file)
  expect(statusReason).toMatch(new RegExp(`^The sound breaks off at ${fault.at} of 0:08\\.$`))
  expect(await countFrames(id)).toBe(FRAMES)
})

test('M17: both APIs and the webhooks say where a stream ends early', async () => {
  const receiver = receivers.newReceiver()
  const { uuid } = await webhooksOf(reelgate.owner).create(receiver.url, 'video:readyall')
  const file = await makeOgg()
  await damageOgg(file, { stream: 'audio', from: 0.9, checksum: 'right' })
  const { id } = await finish(file)
  const reason = 'The sound breaks off at 0:08 of 0:08.'
  const { rows } = await reelgate.owner.list(`?q=${id}`)
  expect(rows.map(({ statusReason }) => statusReason)).toEqual([reason])
  expect(await v2Video(id)).toMatchObject({ statusText: 'ready', statusReason: reason })
  expect((await receiver.until(1)).map(({ event }) => event.payload.statusReason)).toEqual([reason])
  await reelgate.owner.call('DELETE', '/api/hooks', { body: { uuid } })
})

test('M17: a video track that breaks off in its last tenth is shown as far as it goes', async () => {
  const file = await makeOgg()
  await damageOgg(file, { stream: 'video', from: 0.95, checksum: 'right' })
  const { id, statusReason } = await finish(file)
  expect(statusReason).toMatch(/^The picture breaks off at 0:0[78] of 0:08\.$/)
  expect(await countFrames(id)).toBe(FRAMES)
})

test.each(['right', 'wrong'] as const)(
  'M17: a video stream that ends before (checksums %s) is an error that says where',
  async (checksum) => {
    const file = await makeOgg()
    await damageOgg(file, { stream: 'video', from: 0.5, checksum })
    const { owner } = reelgate
    const { statusReason } = await owner.until(await owner.upload('Breaks off', file), 'Encoding error')
    expect(statusReason).toBe('The video cannot be read past 0:04: the file is damaged or was cut off. Upload it again.')
  },
)

test('M17: an Ogg with many empty packets keeps all its audio, without a reason for its owner', async () => {
  const file = await makeOgg()
  await addEmptyPackets(file)
  const { id, statusReason } = await finish(file)
  expect(statusReason).toBeUndefined()
  const folder = await newFolder()
  const audioTrack = (await downloadVideo(reelgate, id)).find(({ kind }) => kind === 'audio')
  if (!audioTrack) throw new Error('there is no sound')
  const { bytes } = await decode(await writeRendition(folder, audioTrack), '-ac', '1', '-ar', '8000', '-f', 's16le', '-')
  expect(silentTenths(bytes)).toEqual([])
})

everyTime('I-13: a file that was cut off is ready, and its owner reads where it breaks off', async () => {
  const folder = await newFolder()
  const whole = join(folder, 'whole.avi')
  await ffmpeg(...PICTURE, ...SOUND, '-c:v', 'mpeg4', '-q:v', '4', '-c:a', 'libmp3lame', whole)
  const file = join(folder, 'half.avi')
  const bytes = await readFile(whole)
  await writeFile(file, bytes.subarray(0, bytes.length / 2))
  const { id, statusReason } = await finish(file)
  expect(statusReason).toMatch(
    /^The file breaks off at 0:0[345]: it was cut off\. To have all of it, upload the whole file again\.$/,
  )
  expect(await countFrames(id)).toBeGreaterThan(80)
})

test('of a video that is whole nothing is said', async () => {
  const { id, statusReason } = await finish(await makeVideo())
  expect(statusReason).toBeUndefined()
  expect(await v2Video(id)).not.toHaveProperty('statusReason')
})

async function countFrames(videoId: string): Promise<number> {
  const videoTrack = (await downloadVideo(reelgate, videoId)).find(({ kind }) => kind === 'video')
  if (!videoTrack) throw new Error('there is no picture')
  const { bytes } = await decode(
    await writeRendition(await newFolder(), videoTrack),
    ...['-vf', 'scale=2:2,format=gray', '-fps_mode', 'passthrough', '-f', 'rawvideo', '-'],
  )
  return bytes.length / 4
}

async function v2Video(id: string): Promise<unknown> {
  const body = new URLSearchParams({ clientSecretKey: reelgate.owner.apiKey })
  return (await fetch(`${reelgate.url}/v2/video?id=${id}`, { method: 'POST', body })).json()
}

/** Which tenths of a second of 8 kHz samples are silent, the last ones aside: a tone has none. */
function silentTenths(samples: Buffer): number[] {
  const tenths = Array.from({ length: 83 }, (_, tenth) => tenth)
  const peak = (tenth: number) =>
    Math.max(...Array.from({ length: 800 }, (_, i) => Math.abs(samples.readInt16LE((tenth * 800 + i) * 2))))
  return tenths.filter((tenth) => peak(tenth) < 500)
}

draw()
