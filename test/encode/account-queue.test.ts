import { expect, test } from 'vitest'
import type { Db } from '../../src/db/database.ts'
import { insertGeneration } from '../../src/encode/generation-store.ts'
import { insertImport } from '../../src/ingest/import-store.ts'
import { estimateTimes, listQueue } from '../../src/progress/account-queue.ts'
import { openOwnDatabase } from '../db/database.ts'

const VIDEO = '0123456789abcdef'.repeat(2)
const PLAN = { durationS: 4, isSeekable: true, audioTrack: { renditionId: 9, bitrateBps: 128_000, frameCount: 188 } }

/** How a video moves on, from one state to the next. */
const STEPS: ((tx: Db) => Promise<unknown>)[] = [
  async (tx) => {
    await tx.deleteFrom('import').execute()
    await tx.updateTable('video').set({ hasSource: 1 }).execute()
  },
  async (tx) => {
    const generation = { videoId: VIDEO, generation: 1, wrappedContentKey: Buffer.of(1), plan: PLAN, encoder: '', createdAtS: 0 }
    await insertGeneration(tx, generation)
    await tx.updateTable('video').set({ status: 'Processing' }).execute()
  },
]

test.each([1, 2])(
  'F-67: a video that moves on after query %i of a reading of the queue is in it once, in one of its two states',
  async (query) => {
    const { db, write } = await openOwnDatabase()
    await write(async (tx) => {
      await tx.insertInto('account').values({ id: 'a', name: 'owner', createdAtS: 0, mayUpload: 1, mayImport: 1 }).execute()
      const video = {
        id: VIDEO,
        accountId: 'a',
        title: '',
        description: '',
        fileName: '',
        uploadTimeS: 0,
        status: 'Queued',
      } as const
      await tx.insertInto('video').values(video).execute()
      await insertImport(tx, { videoId: VIDEO, accountId: 'a', host: '', wrappedUrl: Buffer.of(1), nextAttemptAtS: 0 })
    })
    const read = (slowQueryDb: Db) => listQueue({ slowQueryDb, wallNowS: () => 1 }, 'a')

    const states = ['importing', 'waiting', 'encoding']
    expect((await read(db)).map(({ state }) => state)).toEqual(['importing'])
    for (const [index, step] of STEPS.entries()) {
      const whileRead = await read(withStepAfter(query, db, () => write(step)))
      expect(whileRead.map(({ videoId }) => videoId)).toEqual([VIDEO])
      expect(states.slice(index, index + 2)).toContain(whileRead[0]?.state)
      expect((await read(db)).map(({ state }) => state)).toEqual([states[index + 1]])
    }
  },
)

test('when encodes play and are finished is estimated by what was encoded since the first began, the oldest first', () => {
  const encode = (part: number, durationS: number, createdAtS = 100) => ({ part, durationS, createdAtS, isPlayable: part > 0 })
  const finished = (encodes: Parameters<typeof estimateTimes>[0], nowS: number) =>
    estimateTimes(encodes, nowS).map(({ remainingS }) => remainingS)
  // 300 + 0 s of video in 60 s: five times as fast as they play.
  expect(finished([encode(0.5, 600), encode(0, 1200, 130)], 160)).toEqual([60, 300])
  expect(finished([encode(0, 600)], 160)).toEqual([null])
  expect(finished([encode(0.5, 600)], 100)).toEqual([null])
  expect(finished([], 100)).toEqual([])
  // Beginnings are encoded before the rest of any: 4, 8 and 9 s of video, at the same speed.
  const times = estimateTimes([encode(0.5, 600), encode(0, 1200, 130), encode(0, 40), encode(0, 1)], 160)
  expect(times.map(({ playableS }) => playableS)).toEqual([null, 1, 2, 2])
})

/** A reader whose first queries are followed by `step`, after the given one of them. */
function withStepAfter(query: number, db: Db, step: () => Promise<unknown>): Db {
  let queries = 0
  return db.withPlugin({
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      queries++
      if (queries === query) await step()
      return result
    },
  })
}
