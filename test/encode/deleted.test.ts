import { expect, test } from 'vitest'
import { addAccount } from '../../src/accounts/account.ts'
import { insertVideo, tombstoneVideos } from '../../src/catalogue/video-store.ts'
import { newId } from '../../src/crypto/secret.ts'
import { insertGeneration } from '../../src/encode/generation-store.ts'
import { openOwnDatabase } from '../db/database.ts'

test('a video that is deleted while it is planned gets no key any more', async () => {
  const { db, write } = await openOwnDatabase()
  const [videoId, switches] = [newId(), { mayUpload: true, mayImport: true }]
  const plan = { audioTrack: { renditionId: 1, bitrateBps: 96_000, frameCount: 188 }, durationS: 4, isSeekable: true }
  const video = { videoId, generation: 1, wrappedContentKey: Buffer.from('key'), plan, encoder: '', createdAtS: 1 }
  const { accountId } = await write((tx) => addAccount(tx, { name: 'an owner', ...switches, createdAtS: 1, by: 'command-line' }))
  await write((tx) => insertVideo(tx, accountId, { id: videoId, title: 'A video', uploadTimeS: 1 }))
  await write((tx) => tombstoneVideos(tx, accountId, [videoId], 2))
  expect(await write((tx) => insertGeneration(tx, video))).toBe(false)
  expect(await db.selectFrom('generation').selectAll().execute()).toEqual([])
})
