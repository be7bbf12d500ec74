import { expect, test } from 'vitest'
import { newId } from '../../src/crypto/secret.ts'
import type { Write } from '../../src/db/write.ts'
import { beginRun, findNextChunk, insertChunks } from '../../src/encode/chunk-store.ts'
import { findUnplanned } from '../../src/encode/generation-store.ts'
import { insertClaim } from '../../src/jobs/claim-store.ts'
import { openOwnDatabase } from '../db/database.ts'

const VIDEOS = 100
const CHUNKS = 1_000

test('E06: with 100 000 chunks waiting, another account’s new video is next, and each video advances by one chunk before any gets another', async () => {
  const { write } = await openOwnDatabase()
  const addVideo = async (accountId: string, firstPriority: number) => {
    const id = newId()
    await write(async (tx) => {
      const video = {
        accountId,
        title: '',
        description: '',
        fileName: '',
        uploadTimeS: 0,
        status: 'Processing',
        generation: 1,
      } as const
      await tx
        .insertInto('video')
        .values({ ...video, id })
        .execute()
      const priorities = Array.from({ length: CHUNKS }, (_, n) => firstPriority + n)
      const common = { kind: 'video', segmentCount: 1, decodesFromStart: false } as const
      const chunks = priorities.map((priority) => ({ ...common, firstSegment: priority, priority }))
      await insertChunks(tx, { videoId: id, generation: 1 }, chunks)
    })
    return id
  }
  const addAccount = (name: string) => insertAccount(write, name)
  const claim = () =>
    write(async (tx) => {
      const next = await findNextChunk(tx, { nowS: 0 })
      return next && beginRun(tx, next)
    })

  const school = await addAccount('a school with many videos')
  for (let n = 0; n < VIDEOS; n++) await addVideo(school, 1) // their first chunks are encoded
  const newVideo = await addVideo(await addAccount('a teacher with one'), 0)

  expect(await claim()).toMatchObject({ videoId: newVideo, firstSegment: 0 })
  const next: (string | undefined)[] = []
  for (let n = 0; n < VIDEOS + 1; n++) next.push((await claim())?.videoId)
  expect(new Set(next).size).toBe(VIDEOS + 1)
  expect(next).toContain(newVideo)
})

test('F-144: several servers draw from the first chunks, so that they seldom want the same; one server takes the first', async () => {
  const { write, db } = await openOwnDatabase()
  const video = { ...{ id: newId(), title: '', description: '', fileName: '', uploadTimeS: 0 }, status: 'Processing' } as const
  const accountId = await insertAccount(write, 'owner')
  const common = { kind: 'video', segmentCount: 1, decodesFromStart: false } as const
  const chunks = Array.from({ length: 30 }, (_, n) => ({ ...common, firstSegment: n, priority: n }))
  await write(async (tx) => {
    await tx
      .insertInto('video')
      .values({ ...video, accountId, generation: 1 })
      .execute()
    await insertChunks(tx, { videoId: video.id, generation: 1 }, chunks)
  })
  const draw = async (candidates?: number) => (await findNextChunk(db, { nowS: 0, candidates }))?.firstSegment ?? -1
  expect(await draw()).toBe(0)
  const drawn = await Promise.all(Array.from({ length: 200 }, () => draw(4)))
  expect([...new Set(drawn)].sort()).toEqual([0, 1, 2, 3])
})

test('E06: sources are examined in turn by account: a new upload waits for one of another account, not for its many', async () => {
  const { write, db } = await openOwnDatabase()
  const school = await insertAccount(write, 'a school with many videos', '5'.repeat(32))
  const uploads = await Promise.all(Array.from({ length: 20 }, () => insertUpload(write, school)))
  const newVideos: string[] = []
  for (const id of ['1', '9'])
    newVideos.push(await insertUpload(write, await insertAccount(write, 'a teacher with one', id.repeat(32))))

  const examined: string[] = []
  for (let lastAccountId = ''; ; ) {
    const next = await findUnplanned(db, { nowS: 0, lastAccountId })
    if (!next) break
    await write((tx) => insertClaim(tx, { kind: 'video', subject: next.id, id: newId(), server: 's', endsAtS: 1 }, 0))
    examined.push(next.id)
    lastAccountId = next.accountId
  }
  expect(new Set(examined.slice(0, 3))).toEqual(new Set([uploads[0], ...newVideos]))
  expect(examined.filter((id) => !newVideos.includes(id))).toEqual(uploads)
})

async function insertAccount(write: Write, name: string, id = newId()): Promise<string> {
  const account = { id, name, createdAtS: 0, mayUpload: 1, mayImport: 1 } as const
  await write((tx) => tx.insertInto('account').values(account).execute())
  return id
}

/** A video whose file has arrived. */
async function insertUpload(write: Write, accountId: string): Promise<string> {
  const id = newId()
  const video = {
    id,
    accountId,
    title: '',
    description: '',
    fileName: '',
    uploadTimeS: 0,
    status: 'Queued',
    hasSource: 1,
  } as const
  await write((tx) => tx.insertInto('video').values(video).execute())
  return id
}
