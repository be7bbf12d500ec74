import { expect, test } from 'vitest'
import { destroyKeys } from '../../src/catalogue/video-store.ts'
import { newContentKey, wrapContentKey } from '../../src/crypto/content-key.ts'
import { parseMasterKey } from '../../src/crypto/master-key.ts'
import { insertGeneration } from '../../src/encode/generation-store.ts'
import { mediaSignature } from '../../src/playback/media/media-path.ts'
import { createSegmentCache } from '../../src/playback/media/segment-cache.ts'
import { createSegmentReader } from '../../src/playback/media/segment-reader.ts'
import { openSegment } from '../../src/playback/media/segments.ts'
import { blobFolder } from '../../src/storage/folder.ts'
import { openBarePlayback, outcomeOf } from './playback-deps.ts'

const MIB = 2 ** 20

/** Asks as the route does: memory first, then the disk. @returns where the bytes came from */
async function ask(hot: ReturnType<typeof createSegmentCache>, name: string, sizeBytes = MIB, read = () => disk(sizeBytes)) {
  const known = hot.find(name)
  if (known) return known.then(() => 'memory')
  return (hot.readIfHot(name, sizeBytes, read) ?? Promise.resolve()).then((bytes) => (bytes ? 'disk, kept' : 'disk'))
}

const disk = async (sizeBytes: number) => Buffer.alloc(sizeBytes)

test('a segment that is asked for again is kept in memory; one that is asked for once never is', async () => {
  const hot = createSegmentCache()
  expect([await ask(hot, 'a'), await ask(hot, 'b'), await ask(hot, 'a'), await ask(hot, 'a')]).toEqual([
    'disk',
    'disk',
    'disk, kept',
    'memory',
  ])
})

test('fifty viewers who want a segment at the same moment cost one copy of it', async () => {
  const hot = createSegmentCache()
  let reads = 0
  const read = async () => {
    reads++
    return disk(MIB)
  }
  await Promise.all(Array.from({ length: 50 }, () => ask(hot, 'a', MIB, read)))
  expect(reads).toBe(1)
})

test('64 MiB are kept, those that were wanted last; what is larger than 8 MiB is left on the disk', async () => {
  const hot = createSegmentCache()
  for (let number = 0; number < 20; number++) for (let time = 0; time < 2; time++) await ask(hot, `${number}`, 4 * MIB)
  const kept = Array.from({ length: 20 }, (_, number) => number).filter((number) => hot.find(`${number}`) !== undefined)
  expect(kept).toEqual([4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19])
  for (let time = 0; time < 3; time++) expect(await ask(hot, 'large', 9 * MIB)).toBe('disk')
})

test('a segment that could not be read is read again by who asks next', async () => {
  const hot = createSegmentCache()
  await ask(hot, 'a')
  await expect(ask(hot, 'a', MIB, () => Promise.reject(new Error('EIO')))).rejects.toThrow('EIO')
  expect([await ask(hot, 'a'), await ask(hot, 'a'), await ask(hot, 'a')]).toEqual(['disk', 'disk, kept', 'memory'])
})

test('P16: a viewer who waits for a segment in memory while its video is deleted gets video-gone', async () => {
  const { videoId, deps, write, nowS } = await openBarePlayback()
  const video = { videoId, generation: 2 }
  const wrappedContentKey = wrapContentKey(parseMasterKey(Buffer.alloc(32, 1)), videoId, 2, newContentKey())
  const plan = { audioTrack: { renditionId: 5, bitrateBps: 96_000, frameCount: 188 }, durationS: 4, isSeekable: true }
  await write((tx) => insertGeneration(tx, { ...video, wrappedContentKey, plan, encoder: '', createdAtS: nowS() }))
  const hotSegments = createSegmentCache()
  const reading = Promise.withResolvers<Buffer>()
  for (let time = 0; time < 2; time++) void hotSegments.readIfHot(`${videoId}/2/5/0`, MIB, () => reading.promise)

  const exp = nowS() + 60
  const path = { ...video, exp, sig: mediaSignature(deps.mediaSecrets()[0], exp, video) }
  const nothing = {
    segmentReader: createSegmentReader(blobFolder('', '')),
    reportDamage() {},
  }
  const asked = outcomeOf(
    openSegment(
      { ...deps, ...nothing, hotSegments },
      { path, renditionId: 5, number: 0, repairs: 0, sentBy: 'server', signal: new AbortController().signal },
    ),
  )
  await deps.videos.get(videoId, 2) // as it had to, before it waited
  await write((tx) => destroyKeys(tx, [videoId]))
  await deps.signals.send('session-ended', { videoIds: [videoId], why: 'video-deleted' })
  reading.reject(Object.assign(new Error('no such file'), { code: 'ENOENT' }))
  expect(await asked).toBe('video-gone')
})
