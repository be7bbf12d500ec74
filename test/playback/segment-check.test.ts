import { expect, test } from 'vitest'
import { createSegmentCheck } from '../../src/playback/media/segment-check.ts'
import { BlobLost } from '../../src/storage/blob-store.ts'
import { openOwnDatabase } from '../db/database.ts'

const VIDEO = { videoId: '0123456789abcdef'.repeat(2), generation: 1 }

test('F-203: of reports of a segment that come at the same moment one has it read, and none before it is encoded', async () => {
  const { db, write } = await openOwnDatabase()
  const read: string[] = []
  const segments = {
    async open(name: string): Promise<never> {
      read.push(name)
      throw new BlobLost('it is gone')
    },
  }
  const check = createSegmentCheck({ db, nowS: () => 0, segments, reportDamage: async () => undefined })
  await check(VIDEO, 1, 0)
  expect(read).toEqual([])
  const segment = { ...VIDEO, renditionId: 1, number: 0, file: 'x', sizeBytes: 1, sha256: Buffer.alloc(32) }
  await write((tx) => tx.insertInto('segment').values(segment).execute())
  await Promise.all(Array.from({ length: 20 }, () => check(VIDEO, 1, 0)))
  expect(read).toEqual(['x'])
})
