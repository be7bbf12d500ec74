import { expect, test } from 'vitest'
import type { Db } from '../../src/db/database.ts'
import { sequentialChunk } from '../../src/encode/chunk-plan.ts'
import { beginRun, endRun, findNextChunk, insertChunks, isCurrentRun, replaceChunk } from '../../src/encode/chunk-store.ts'
import { openOwnDatabase } from '../db/database.ts'

const VIDEO = '0123456789abcdef'.repeat(2)

test('a run whose chunk was replaced by one that begins at the same segment cannot publish into it or end it', async () => {
  const write = await openDatabaseWithVideo()
  const chunk = { kind: 'video', segmentCount: 2, decodesFromStart: false, priority: 0 } as const
  await write(async (tx) => {
    await insertChunks(tx, { videoId: VIDEO, generation: 1 }, [
      { ...chunk, firstSegment: 1 },
      { ...chunk, firstSegment: 3 },
    ])
    const [first, second] = [await claim(tx), await claim(tx)]
    if (!first || !second) throw new Error('there were two chunks to claim')

    await replaceChunk(tx, second, [])
    await replaceChunk(tx, first, [sequentialChunk([first, second])])
    const whole = await claim(tx)
    if (!whole) throw new Error('the chunk in their place is not to be claimed')
    expect(whole).toMatchObject({ firstSegment: 1, segmentCount: 4, decodesFromStart: true })

    expect([await isCurrentRun(tx, first), await isCurrentRun(tx, second), await isCurrentRun(tx, whole)]).toEqual([
      false,
      false,
      true,
    ])
    expect(await endRun(tx, first, 'done')).toBe(false)
    expect(await endRun(tx, whole, 'done')).toBe(true)
  })
})

async function claim(tx: Db) {
  const next = await findNextChunk(tx, { nowS: 0 })
  return next && beginRun(tx, next)
}

async function openDatabaseWithVideo() {
  const database = await openOwnDatabase()
  const video = { accountId: 'a', title: '', description: '', fileName: '', uploadTimeS: 0 }
  await database.write(async (tx) => {
    await tx.insertInto('account').values({ id: 'a', name: 'owner', createdAtS: 0, mayUpload: 1, mayImport: 1 }).execute()
    await tx
      .insertInto('video')
      .values({ ...video, id: VIDEO, status: 'Processing', generation: 1 })
      .execute()
  })
  return database.write
}
