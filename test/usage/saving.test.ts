import { expect, test } from 'vitest'
import { insertVideo } from '../../src/catalogue/video-store.ts'
import type { Db } from '../../src/db/database.ts'
import type { Write } from '../../src/db/write.ts'
import { insertSession } from '../../src/playback/sessions/session-store.ts'
import { openUsage } from '../../src/usage/usage.ts'
import { openOwnDatabase } from '../db/database.ts'
import { failingOnce } from '../db/failing-write.ts'

// More than one transaction takes: what waits to be written down meets what happens between two of them.

const VIDEO = 'f'.repeat(32)
const VIEWERS = 600
const SENT_BYTES = 1000

async function openWithVideo() {
  const database = await openOwnDatabase()
  await database.write(async (tx) => {
    await tx.insertInto('account').values({ id: 'ann', name: 'Ann', createdAtS: 1, mayUpload: 1, mayImport: 1 }).execute()
    await insertVideo(tx, 'ann', { id: VIDEO, title: 'A video', uploadTimeS: 1 })
  })
  const sentBytes = async () => {
    const rows = await database.db.selectFrom('videoUsage').select('sentBytes').execute()
    return rows.reduce((sum, row) => sum + row.sentBytes, 0)
  }
  return { ...database, sentBytes }
}

/** The session of that viewer. */
function sessionOf(i: number) {
  const key = Buffer.from(`${i}`.padStart(32))
  return {
    id: `session ${i}`,
    otpHash: key,
    accountId: 'ann',
    videoId: VIDEO,
    generation: 1,
    userId: `viewer ${i}`,
    publicKey: key,
    serverKeyId: 'server key',
    keyId: key,
    pages: '[]',
    watermarks: '[]',
    startedAtS: 1,
    endsAtS: 2,
    lastSeenAtS: 1,
  }
}

/** So many viewers were sent their bytes, each with a label and an address of their own. */
function watchedByMany({ db, write }: { db: Db; write: Write }) {
  const usage = openUsage({ db, write, wallNowS: () => 1_800_000_000 })
  for (let i = 0; i < VIEWERS; i++) {
    usage.recordAddress({ videoId: VIDEO, userId: `viewer ${i}` }, `address ${i}`)
    usage.recordSentBytes(VIDEO, `address ${i}`, SENT_BYTES)
  }
  return usage
}

test('what is asked to be written down is written before the video goes, also when an earlier writing is still under way', async () => {
  const { db, write, sentBytes } = await openWithVideo()
  const usage = watchedByMany({ db, write })
  const everyFiveSeconds = usage.save()
  const beforeRemoval = usage.save().then(() => write((tx) => tx.deleteFrom('video').where('id', '=', VIDEO).execute()))
  await Promise.all([everyFiveSeconds, beforeRemoval])
  expect(await sentBytes()).toBe(VIEWERS * SENT_BYTES)
})

test('a writing that fails in its middle loses nothing and counts nothing twice', async () => {
  const { db, write, sentBytes } = await openWithVideo()
  const usage = watchedByMany({ db, write: failingOnce(write, 2) })
  await expect(usage.save()).rejects.toThrow('the disk is full')
  const written = await sentBytes()
  expect([written > 0, written < VIEWERS * SENT_BYTES]).toEqual([true, true])
  usage.recordSentBytes(VIDEO, 'address 0', 1)
  await usage.save()
  expect(await sentBytes()).toBe(VIEWERS * SENT_BYTES + 1)
})

test.each([
  { became: 'was kept', isKept: true, written: VIEWERS },
  { became: 'was not kept', isKept: false, written: VIEWERS - 250 },
])(
  'F-10: of a write whose outcome is not known, and that $became, no byte is counted twice, and each view once',
  async (unknown) => {
    const { db, write, sentBytes } = await openWithVideo()
    const usage = watchedByMany({ db, write: failingOnce(write, 2, unknown) })
    await write(async (tx) => {
      for (let i = 0; i < VIEWERS; i++) usage.recordView(await insertSession(tx, sessionOf(i)))
    })
    await expect(usage.save()).rejects.toThrow('not known')
    await usage.save()
    expect(await sentBytes()).toBe(unknown.written * SENT_BYTES)
    expect(await db.selectFrom('viewTotal').select('viewCount').execute()).toEqual([{ viewCount: VIEWERS }])
  },
)
