import { expect, test } from 'vitest'
import { newId } from '../../src/crypto/secret.ts'
import { addChunks, claimChunk, rowQueue } from '../../src/encode/chunk-queue.ts'
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
      await addChunks(tx, rowQueue, { videoId: id, generation: 1 }, chunks)
    })
    return id
  }
  const addAccount = async (name: string) => {
    const id = newId()
    const account = { id, name, createdAtS: 0, mayUpload: 1, mayImport: 1 } as const
    await write((tx) => tx.insertInto('account').values(account).execute())
    return id
  }
  const claim = async () => (await claimChunk(write, rowQueue, () => ({ upToPriority: undefined, except: [] })))?.run

  const school = await addAccount('a school with many videos')
  for (let n = 0; n < VIDEOS; n++) await addVideo(school, 1) // their first chunks are encoded
  const newVideo = await addVideo(await addAccount('a teacher with one'), 0)

  expect(await claim()).toMatchObject({ videoId: newVideo, firstSegment: 0 })
  const next: (string | undefined)[] = []
  for (let n = 0; n < VIDEOS + 1; n++) next.push((await claim())?.videoId)
  expect(new Set(next).size).toBe(VIDEOS + 1)
  expect(next).toContain(newVideo)
})
