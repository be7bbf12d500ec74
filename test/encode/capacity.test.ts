import { expect, test } from 'vitest'
import { type CapacityDeps, chooseEncoder, findLeastBusy } from '../../src/encode/capacity.ts'
import { encoderFingerprint } from '../../src/encode/encoder.ts'
import type { Plan } from '../../src/encode/plan.ts'
import { openOwnDatabase } from '../db/database.ts'

const OWN = 'ffmpeg 5'
const OTHER = 'ffmpeg 6'
const BOTH = ['video', 'audio'] as const

const slots = (video: number, audio = video) => ({ video, audio })

test('J32: a new video begins with the encoders that finish it first, and with the server’s own where that is the same', () => {
  const choose = (each: [number, number], pending: [number, number]) =>
    findLeastBusy(
      new Map([
        [OTHER, slots(each[1])],
        [OWN, slots(each[0])],
      ]),
      new Map([
        [OWN, pending[0]],
        [OTHER, pending[1]],
      ]),
      { kinds: BOTH, own: OWN },
    )
  expect(choose([2, 2], [0, 0])).toBe(OWN)
  expect(choose([2, 4], [0, 0])).toBe(OTHER)
  expect(choose([2, 4], [10, 30])).toBe(OWN)
  expect(choose([2, 2], [30, 10])).toBe(OTHER)
  const wanted = { kinds: BOTH, own: OWN }
  expect(findLeastBusy(new Map([[OTHER, slots(1)]]), new Map([[OTHER, 1_000]]), wanted)).toBe(OTHER)
  expect(findLeastBusy(new Map(), new Map(), wanted)).toBe(OWN)
})

const AUDIO: Plan = { durationS: 60, isSeekable: true, audioTrack: { renditionId: 9, bitrateBps: 128_000, frameCount: 2813 } }
const VIDEO_TRACK = {
  rateNum: 25,
  rateDen: 1,
  timescale: 25,
  gopFrames: 100,
  frameCount: 1500,
  interlaced: false,
  aspectRatio: 2,
}
const SILENT: Plan = { durationS: 60, isSeekable: true, videoTrack: { ...VIDEO_TRACK, renditions: [] } }
const VIDEO: Plan = { ...AUDIO, ...SILENT }

test('J40: a video begins with an encoder that encodes all that it consists of', async () => {
  const { db, write } = await openOwnDatabase()
  const sandbox = { ffmpegVersion: '5' }
  const deps: CapacityDeps = { db, slowQueryDb: db, nowS: () => 1_000, sandbox, encoderSlots: 0 }
  async function choose(plan: Plan, ...workers: [encoder: string, kinds: string][]): Promise<string> {
    await write(async (tx) => {
      await tx.deleteFrom('worker').execute()
      for (const [n, [encoder, kinds]] of workers.entries()) {
        const id = `worker ${n}`
        const row = { id, name: id, hash: Buffer.from(id), createdAtS: 0, lastSeenAtS: 1_000, jobs: 2 }
        await tx
          .insertInto('worker')
          .values({ ...row, encoder, kinds })
          .execute()
      }
    })
    return chooseEncoder(deps, plan)
  }
  const own = encoderFingerprint(sandbox)
  // Neither encodes all of it, but a part each.
  expect(await choose(VIDEO, [OTHER, 'video'])).toBe(own)
  expect(await choose(VIDEO, [OTHER, 'audio'])).toBe(own)
  expect(await choose(VIDEO, [OTHER, 'video'], [own, 'audio'])).toBe(own)
  expect(await choose(VIDEO, [OTHER, 'video'], [OTHER, 'audio'])).toBe(OTHER)
  expect(await choose(VIDEO, [OTHER, 'video'], ['ffmpeg 7', 'video,audio'])).toBe('ffmpeg 7')
  expect(await choose(SILENT, [OTHER, 'video'])).toBe(OTHER)
  expect(await choose(SILENT, [OTHER, 'audio'])).toBe(own)
  expect(await choose(AUDIO, [OTHER, 'audio'])).toBe(OTHER)
})
