import path from 'node:path'
import { expect } from 'vitest'
import { type ChunkSink, encodeVideoChunk } from '../../src/encode/chunk.ts'
import { videoCodec } from '../../src/encode/ladder.ts'
import { InexactSeek, MediaFailure } from '../../src/encode/media-failure.ts'
import { type VideoTrackPlan, videoSegmentCount } from '../../src/encode/plan.ts'
import { readFragment, readVideoInit } from '../../src/mp4/fragments.ts'
import { footage } from '../footage.ts'
import { sampledTests } from '../sample.ts'
import {
  count,
  encodeVideo,
  ffmpeg,
  joinRendition,
  losePackets,
  makeNumberedVideo,
  newFolder,
  newSink,
  openVideo,
  presentationTimes,
  readNumbers,
} from './videos.ts'

const { test, draw } = sampledTests('chunks of video', 3)

const H264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '3', '-g', '250', '-pix_fmt', 'yuv420p']
const SMALL = { widthPx: 320, heightPx: 180 }

test('a video encoded in chunks shows every frame once, in order, from 0 on, in every rung', async () => {
  const folder = await newFolder()
  const file = await makeNumberedVideo(path.join(folder, 'video.mp4'), {
    frames: 125,
    rate: '10',
    widthPx: 640,
    heightPx: 360,
    encode: H264,
  })
  const video = await openVideo(file)
  const videoTrack = getFrame(video.plan)
  expect(videoTrack.renditions).toHaveLength(2)
  const encoded = await encodeVideo(video, { chunkSegments: 1 })
  for (const { id } of videoTrack.renditions) {
    expect(await readNumbers(await joinRendition(folder, encoded, id))).toEqual(count(125))
    expect(presentationTimes(encoded, id, 9000)).toEqual(count(125).map((frame) => frame * 9000))
  }
})

test('each segment plays by itself and begins where the grid says', async () => {
  const folder = await newFolder()
  const file = await makeNumberedVideo(path.join(folder, 'video.mp4'), { frames: 125, rate: '10', ...SMALL, encode: H264 })
  const video = await openVideo(file)
  const encoded = await encodeVideo(video, { chunkSegments: 2 })
  for (const segment of count(4)) {
    const firstFrame = segment * 40
    expect(await readNumbers(await joinRendition(folder, encoded, 1, segment))).toEqual(
      count(Math.min(40, 125 - firstFrame)).map((n) => n + firstFrame),
    )
    const { sequence, decodeTime } = readFragment(encoded.segments.get(1)?.get(segment) ?? Buffer.alloc(0))
    expect({ sequence, decodeTime }).toEqual({ sequence: segment + 1, decodeTime: firstFrame * 9000 })
  }
})

test('all chunks of a video have the same init segment, with size, rate and codec as planned', async () => {
  const folder = await newFolder()
  const file = await makeNumberedVideo(path.join(folder, 'video.mp4'), {
    frames: 120,
    rate: '10',
    widthPx: 640,
    heightPx: 360,
    encode: H264,
  })
  const video = await openVideo(file)
  const videoTrack = getFrame(video.plan)
  const encoded = await encodeVideo(video, { chunkSegments: 1 })
  for (const rendition of videoTrack.renditions) {
    const inits = encoded.inits.get(rendition.id) ?? []
    expect(inits).toHaveLength(3)
    expect(inits.every((init) => inits[0]?.equals(init))).toBe(true)
    const { widthPx, heightPx } = rendition
    expect(readVideoInit(inits[0] ?? Buffer.alloc(0))).toEqual({
      widthPx,
      heightPx,
      timescale: 90_000,
      codec: videoCodec(rendition),
    })
  }
})

test('with the lowest rung first, its segments come before those of all others, and none is different', async () => {
  const file = path.join(await newFolder(), 'video.mp4')
  const video = await openVideo(
    await makeNumberedVideo(file, { frames: 60, rate: '10', widthPx: 640, heightPx: 360, encode: H264 }),
  )
  const chunk = { firstSegment: 0, segmentCount: 1, decodesFromStart: false }
  const sink = newSink()
  await encodeVideoChunk({ ...video, threads: 1, chunk }, sink)
  const order: number[] = []
  const lowestFirst = newSink()
  const onSegment: ChunkSink['onSegment'] = (renditionId, segment, bytes) => {
    order.push(renditionId)
    return lowestFirst.onSegment(renditionId, segment, bytes)
  }
  await encodeVideoChunk({ ...video, threads: 1, afterLowest: async () => {}, chunk }, { ...lowestFirst, onSegment })
  expect(order).toEqual([2, 1])
  expect(lowestFirst.segments).toEqual(sink.segments)
})

test.each([
  { rate: '30000/1001', frames: 260, container: 'mkv', ticks: 3003 },
  { rate: '24000/1001', frames: 210, container: 'mp4', ticks: 1001 },
  { rate: '20', frames: 170, container: 'avi', ticks: 4500 },
])('$rate frames a second in $container stay what they are', async ({ rate, frames, container, ticks }) => {
  const folder = await newFolder()
  const encode = container === 'avi' ? ['-c:v', 'mpeg4', '-q:v', '3'] : H264
  const video = await openVideo(
    await makeNumberedVideo(path.join(folder, `video.${container}`), { frames, rate, ...SMALL, encode }),
  )
  const videoTrack = getFrame(video.plan)
  expect(`${videoTrack.rateNum}/${videoTrack.rateDen}`).toBe(rate.includes('/') ? rate : `${rate}/1`)
  const encoded = await encodeVideo(video, { chunkSegments: 1 })
  const numbers = await readNumbers(await joinRendition(folder, encoded, 1))
  expect(numbers.slice(0, frames)).toEqual(count(frames))
  expect(presentationTimes(encoded, 1, ticks)).toEqual(count(videoTrack.frameCount).map((frame) => frame * ticks))
})

test('AVI with B-frames, which has no presentation times, loses no frame', async () => {
  const folder = await newFolder()
  const encode = ['-c:v', 'mpeg4', '-q:v', '3', '-bf', '2']
  const video = await openVideo(
    await makeNumberedVideo(path.join(folder, 'video.avi'), { frames: 130, rate: '25', ...SMALL, encode }),
  )
  const numbers = await readNumbers(await joinRendition(folder, await encodeVideo(video, { chunkSegments: 1 }), 1))
  expect([...new Set(numbers)]).toEqual(count(130))
})

test('a rotated video is upright, and its ladder follows the short side', async () => {
  const folder = await newFolder()
  const lying = await makeNumberedVideo(path.join(folder, 'lying.mp4'), {
    frames: 60,
    rate: '30',
    widthPx: 640,
    heightPx: 360,
    encode: H264,
  })
  const file = path.join(folder, 'turned.mp4')
  await ffmpeg('-i', lying, '-c', 'copy', '-metadata:s:v', 'rotate=90', file)
  const video = await openVideo(file)
  expect(getFrame(video.plan).renditions.map(({ widthPx, heightPx }) => `${widthPx}×${heightPx}`)).toEqual(['360×640', '240×426'])
  const encoded = await encodeVideo(video, { chunkSegments: 1 })
  expect(await readNumbers(await joinRendition(folder, encoded, 1), 'transpose=1')).toEqual(count(60))
})

test('slides that stand for seconds show at the right time, or the chunk is refused as not clean', async () => {
  const folder = await newFolder()
  // Ten seconds: moving, then one picture for 6 s, twice; B-frames let MP4 seek land on the picture after the wanted one.
  const shown = "select='lt(mod(n,300),60)+not(mod(n,150))'"
  const encode = ['-vf', shown, '-fps_mode', 'vfr', ...H264, '-g', '30']
  const video = await openVideo(
    await makeNumberedVideo(path.join(folder, 'slides.mp4'), { frames: 600, rate: '30', ...SMALL, encode }),
  )
  const videoTrack = getFrame(video.plan)
  const truth = count(videoTrack.frameCount).map((frame) => lastShown(frame, (n) => n % 300 < 60 || n % 150 === 0))
  const sink = newSink()
  const refused: number[] = []
  for (const firstSegment of count(videoSegmentCount(videoTrack))) {
    const own = newSink()
    try {
      await encodeVideoChunk(
        { ...video, threads: 'auto', chunk: { firstSegment, segmentCount: 1, decodesFromStart: false } },
        own,
      )
    } catch (error) {
      expect(error).toBeInstanceOf(InexactSeek)
      refused.push(firstSegment)
      await encodeVideoChunk({ ...video, threads: 'auto', chunk: { firstSegment, segmentCount: 1, decodesFromStart: true } }, own)
    }
    sink.onInit(1, own.inits.get(1)?.[0] ?? Buffer.alloc(0))
    sink.onSegment(1, firstSegment, own.segments.get(1)?.get(firstSegment) ?? Buffer.alloc(0))
  }
  expect(refused).not.toEqual([])
  expect(await readNumbers(await joinRendition(folder, sink, 1))).toEqual(truth)
})

test('I-25: a chunk in mid-video is decoded to its own end and no further: damage later in the source is not its concern', async () => {
  const file = path.join(await newFolder(), 'video.mp4')
  await makeNumberedVideo(file, { frames: 400, rate: '10', ...SMALL, encode: [...H264, '-g', '20'] })
  await losePackets(file, 'v', [28, 32, 36])
  const video = await openVideo(file)
  const chunk = { firstSegment: 2, segmentCount: 1, decodesFromStart: false }
  const sink = newSink()
  await encodeVideoChunk({ ...video, threads: 1, chunk }, sink)
  expect([...(sink.segments.get(1)?.keys() ?? [])]).toEqual([2])
})

test('MPEG-TS, where no seek is exact, comes out whole in one pass from the start', async () => {
  const folder = await newFolder()
  const video = await openVideo(
    await makeNumberedVideo(path.join(folder, 'video.ts'), { frames: 250, rate: '30', ...SMALL, encode: H264 }),
  )
  expect(video.plan.isSeekable).toBe(false)
  const encoded = await encodeVideo(video, { chunkSegments: 100, decodesFromStart: true })
  expect((await readNumbers(await joinRendition(folder, encoded, 1))).slice(0, 250)).toEqual(count(250))
})

test('a chunk taken up from the video’s start begins at the very frame', async () => {
  const folder = await newFolder()
  const video = await openVideo(
    await makeNumberedVideo(path.join(folder, 'video.mp4'), { frames: 125, rate: '10', ...SMALL, encode: H264 }),
  )
  const sink = newSink()
  await encodeVideoChunk({ ...video, threads: 1, chunk: { firstSegment: 2, segmentCount: 9, decodesFromStart: true } }, sink)
  expect([...(sink.segments.get(1)?.keys() ?? [])]).toEqual([2, 3])
  expect(await readNumbers(await joinRendition(folder, sink, 1))).toEqual(count(45).map((n) => n + 80))
})

test('when the audio is longer, the last frame stays to its end', async () => {
  const folder = await newFolder()
  const inputs = ['-f', 'lavfi', '-i', 'sine=300:d=14']
  const video = await openVideo(
    await makeNumberedVideo(path.join(folder, 'talk.mp4'), { frames: 20, rate: '10', ...SMALL, inputs, encode: H264 }),
  )
  const encoded = await encodeVideo(video, { chunkSegments: 1 })
  const numbers = await readNumbers(await joinRendition(folder, encoded, 1))
  expect(numbers).toEqual(count(140).map((frame) => Math.min(frame, 19)))
})

test('frames that change their size in mid-video keep the planned size', async () => {
  const folder = await newFolder()
  const part = async (name: string, size: { widthPx: number; heightPx: number }) => {
    const file = path.join(folder, name)
    await makeNumberedVideo(file, {
      frames: 90,
      rate: '30',
      ...size,
      encode: [...H264, '-bf', '0', '-output_ts_offset', name === 'a.ts' ? '0' : '3'],
    })
    return file
  }
  const joined = path.join(folder, 'joined.ts')
  await ffmpeg(
    '-i',
    `concat:${await part('a.ts', SMALL)}|${await part('b.ts', { widthPx: 640, heightPx: 360 })}`,
    '-c',
    'copy',
    joined,
  )
  const video = await openVideo(joined)
  const encoded = await encodeVideo(video, { chunkSegments: 9, decodesFromStart: true })
  const numbers = await readNumbers(await joinRendition(folder, encoded, 1))
  expect(numbers.slice(0, 178)).toEqual([...count(90), ...count(88)])
})

test.each([220, 300])(
  'frames missing at the end (200 of %i are there) are counted, and the last one is shown for up to 10 s',
  async (frameCount) => {
    const folder = await newFolder()
    const video = await openVideo(
      await makeNumberedVideo(path.join(folder, 'video.mp4'), { frames: 200, rate: '25', ...SMALL, encode: H264 }),
    )
    const videoTrack = { ...getFrame(video.plan), frameCount }
    const sink = newSink()
    const chunk = { firstSegment: 1, segmentCount: 2, decodesFromStart: false }
    const end = await encodeVideoChunk({ ...video, plan: { ...video.plan, videoTrack }, threads: 'auto', chunk }, sink)
    expect(end).toEqual({ missingFrames: frameCount - 200 })
    expect(await readNumbers(await joinRendition(folder, sink, 1))).toEqual(
      count(frameCount - 100).map((n) => Math.min(n + 100, 199)),
    )
  },
)

test('a video whose video track breaks off long before its end fails with a sentence that says where', async () => {
  const folder = await newFolder()
  const video = await openVideo(
    await makeNumberedVideo(path.join(folder, 'video.mp4'), { frames: 200, rate: '25', ...SMALL, encode: H264 }),
  )
  const plan = { ...video.plan, videoTrack: { ...getFrame(video.plan), frameCount: 1000 } }
  const chunk = { firstSegment: 0, segmentCount: 10, decodesFromStart: true }
  const failed = encodeVideoChunk({ ...video, plan, threads: 'auto', chunk }, newSink())
  await expect(failed).rejects.toThrow(/^The video cannot be read past 0:\d\d: the file is damaged/)
  await expect(failed).rejects.toBeInstanceOf(MediaFailure)
})

test('a source that decodes wrongly after a seek (cockatoo.mp4) never shows a wrong frame', async () => {
  const folder = await newFolder()
  const video = await openVideo(footage.cockatoo)
  // The lowest rung alone: the same decoder, a tenth of the time.
  const lowest = getFrame(video.plan).renditions.slice(-1)
  const plan = { videoTrack: { ...getFrame(video.plan), renditions: lowest }, durationS: video.plan.durationS, isSeekable: true }
  const [id] = lowest.map((rendition) => rendition.id)
  const published = newSink()
  let uncleanFrom: number | undefined
  for (const firstSegment of count(4)) {
    const own = newSink()
    const chunk = { firstSegment, segmentCount: uncleanFrom === undefined ? 1 : 4, decodesFromStart: uncleanFrom !== undefined }
    try {
      await encodeVideoChunk({ ...video, plan, threads: 'auto', chunk }, own)
    } catch (error) {
      expect(error).toBeInstanceOf(InexactSeek)
      uncleanFrom = firstSegment
      await encodeVideoChunk(
        { ...video, plan, threads: 'auto', chunk: { firstSegment, segmentCount: 4, decodesFromStart: true } },
        own,
      )
    }
    for (const [rendition, segments] of own.segments)
      for (const [segment, bytes] of segments) published.onSegment(rendition, segment, bytes)
    for (const [rendition, [init]] of own.inits) if (init) published.onInit(rendition, init)
    if (uncleanFrom !== undefined) break
  }
  expect(uncleanFrom).toBe(2)
  const unbroken = await encodeVideo({ ...video, plan }, { chunkSegments: 100, decodesFromStart: true })
  const ours = await likeness(await joinRendition(folder, published, id ?? 0), footage.cockatoo, plan.videoTrack)
  const passes = await likeness(await joinRendition(folder, unbroken, id ?? 0), footage.cockatoo, plan.videoTrack)
  expect(ours).toHaveLength(280)
  expect(Math.min(...ours)).toBeGreaterThan(0.9)
  expect(Math.min(...ours)).toBeGreaterThan(Math.min(...passes) - 0.02)
})

test('a chunk is as good at its borders as one unbroken pass', async () => {
  const folder = await newFolder()
  const file = path.join(folder, 'video.mp4')
  await ffmpeg('-f', 'lavfi', '-i', 'testsrc2=s=320x180:r=30:d=12', ...H264, '-crf', '12', file)
  const video = await openVideo(file)
  const videoTrack = getFrame(video.plan)
  const chunked = await likeness(await joinRendition(folder, await encodeVideo(video, { chunkSegments: 1 }), 1), file, videoTrack)
  const unbroken = await likeness(
    await joinRendition(folder, await encodeVideo(video, { chunkSegments: 99, decodesFromStart: true }), 1),
    file,
    videoTrack,
  )
  for (const border of [120, 240]) {
    for (const frame of [border - 1, border, border + 1]) expect(chunked[frame]).toBeGreaterThan((unbroken[frame] ?? 0) - 0.02)
  }
})

test('a chunk that is cancelled ends with the reason and gives nothing more', async () => {
  const folder = await newFolder()
  const file = path.join(folder, 'video.mp4')
  await ffmpeg('-f', 'lavfi', '-i', 'testsrc2=s=640x360:r=10:d=20', ...H264, file)
  const video = await openVideo(file)
  const stop = new AbortController()
  const sink = newSink()
  const encoding = encodeVideoChunk(
    { ...video, threads: 1, signal: stop.signal, chunk: { firstSegment: 0, segmentCount: 5, decodesFromStart: false } },
    { ...sink, onInit: () => stop.abort(new Error('deleted meanwhile')) },
  )
  await expect(encoding).rejects.toThrow('deleted meanwhile')
  expect([...sink.segments.values()].flatMap((segments) => [...segments])).toEqual([])
})

test('what the caller throws while it stores a segment ends the encoder and comes back', async () => {
  const folder = await newFolder()
  const video = await openVideo(
    await makeNumberedVideo(path.join(folder, 'video.mp4'), { frames: 300, rate: '30', ...SMALL, encode: H264 }),
  )
  const full = () => Promise.reject(new Error('the disk is full'))
  const chunk = { firstSegment: 0, segmentCount: 3, decodesFromStart: false }
  await expect(encodeVideoChunk({ ...video, threads: 1, chunk }, { ...newSink(), onSegment: full })).rejects.toThrow(
    'the disk is full',
  )
})

function getFrame(plan: { videoTrack?: VideoTrackPlan }): VideoTrackPlan {
  if (!plan.videoTrack) throw new Error('the video has no picture')
  return plan.videoTrack
}

function lastShown(frame: number, isShown: (n: number) => boolean): number {
  let n = frame
  while (!isShown(n)) n--
  return n
}

/** SSIM of each frame against the source, which is decoded from its start. */
async function likeness(file: string, source: string, { rateNum, rateDen, renditions }: VideoTrackPlan): Promise<number[]> {
  const { widthPx, heightPx } = renditions[0] ?? { widthPx: 0, heightPx: 0 }
  const graph = `[1:v]fps=${rateNum}/${rateDen}:start_time=0,scale=${widthPx}:${heightPx},setsar=1,format=yuv420p[s];[0:v][s]ssim=f=-`
  const text = (await ffmpeg('-i', file, '-i', source, '-filter_complex', graph, '-f', 'null', '-')).toString()
  return [...text.matchAll(/All:(\d\.\d+)/g)].map(([, value]) => Number(value))
}

draw()
