import { expect, test } from 'vitest'
import { checkResult, drawSample } from '../../../src/encode/check/check-result.ts'
import { makeVideo } from '../../videos.ts'
import { count, openVideo } from '../videos.ts'
import { encodeResult, replace } from './results.ts'

test('J31: of a trusted worker’s segments about one in twenty is drawn, others each time', () => {
  const segments = count(20_000)
  const [first, second] = [drawSample(segments), drawSample(segments)]
  for (const drawn of [first, second]) expect(Math.abs(drawn.length - 1_000)).toBeLessThan(300)
  expect(first).not.toEqual(second)
})

test('J31: one drawn segment in the middle of a chunk is compared with the source, alone', async () => {
  const video = await openVideo(await makeVideo({ seconds: 13, size: '128x128' }))
  const other = await openVideo(await makeVideo({ seconds: 13, size: '128x128', dark: true, audioTrack: false }))
  for (const kind of ['video', 'audio'] as const) {
    const chunk = { kind, firstSegment: 0, segmentCount: 3, decodesFromStart: false }
    const honest = await encodeResult(video, chunk)
    const dark = kind === 'video' ? await encodeResult(video, chunk, other) : undefined
    const bytes = await dark?.segments.find(({ number }) => number === 1)?.read()
    const hostile = bytes ? await replace(honest, ({ number }) => (number === 1 ? bytes : undefined)) : honest
    const drawn = (number: number) => hostile.segments.filter((segment) => segment.number === number)
    expect(await checkResult(hostile, { compared: drawn(0) })).toMatchObject({ ok: true })
    expect((await checkResult(hostile, { compared: drawn(1) })).ok).toBe(bytes === undefined)
    expect(await checkResult(hostile, { compared: drawn(2) })).toMatchObject({ ok: true })
  }
})
