import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { addAccount } from '../../src/accounts/account.ts'
import { startRemovals } from '../../src/catalogue/deletion.ts'
import { insertVideo, tombstoneVideos } from '../../src/catalogue/video-store.ts'
import { newId } from '../../src/crypto/secret.ts'
import type { Write } from '../../src/db/write.ts'
import { insertGeneration } from '../../src/encode/generation-store.ts'
import { createSignals } from '../../src/signals/signals.ts'
import { blobFolder, createFolders } from '../../src/storage/folder.ts'
import { openOwnDatabase } from '../db/database.ts'
import { newFolder } from './videos.ts'

test('a video that is deleted while it is planned gets no key any more', async () => {
  const { db, write } = await openOwnDatabase()
  const videoId = await addDeletedVideo(write)
  const plan = { audioTrack: { renditionId: 1, bitrateBps: 96_000, frameCount: 188 }, durationS: 4, isSeekable: true }
  const video = { videoId, generation: 1, wrappedContentKey: Buffer.from('key'), plan, encoder: '', createdAtS: 1 }
  expect(await write((tx) => insertGeneration(tx, video))).toBe(false)
  expect(await db.selectFrom('generation').selectAll().execute()).toEqual([])
})

test('F-35: the files of a deleted video are removed once nothing works on it any more, not before', async () => {
  const { db, write } = await openOwnDatabase()
  const videoId = await addDeletedVideo(write)
  const folder = await newFolder()
  const [root, tmp] = [join(folder, 'segments'), join(folder, 'tmp')]
  await createFolders(root, tmp)
  const segments = blobFolder(root, tmp)
  const writeSegment = () => segments.put(`${videoId}/1/3/0.m4s`, Buffer.from('a segment'))
  await writeSegment()
  const signals = createSignals(write)
  let stops = 0
  signals.on('work-cancelled', async ({ videoIds }) => {
    expect(videoIds).toEqual([videoId])
    expect(await readdir(root)).toEqual([videoId])
    await writeSegment() // by the encode, before it ends
    stops++
  })
  const removals = startRemovals({
    ...{ db, write, folders: { sources: segments, segments, posters: segments, files: segments } },
    signals,
    signal: new AbortController().signal,
    truncateWal: async () => undefined,
    log: pino({ level: 'silent' }),
  })
  onTestFinished(() => removals.stop())
  void signals.send('work-queued', 'removal')
  await expect.poll(() => db.selectFrom('video').selectAll().execute()).toEqual([])
  expect([await readdir(root), stops]).toEqual([[], 1])
})

test('F-87: a stop during the removal of deleted videos finishes the one in progress, and leaves the others to the next start', async () => {
  const { db, write } = await openOwnDatabase()
  const folder = await newFolder()
  const [root, tmp] = [join(folder, 'files'), join(folder, 'tmp')]
  await createFolders(root, tmp)
  const files = blobFolder(root, tmp)
  const videos = [await addDeletedVideo(write), await addDeletedVideo(write)]
  for (const videoId of videos) await files.put(`${videoId}/a`, Buffer.from('a file'))
  const signals = createSignals(write)
  const stopping = new AbortController()
  const removals = startRemovals({
    ...{ db, write, folders: { sources: files, segments: files, posters: files, files } },
    ...{ signals, signal: stopping.signal },
    truncateWal: async () => undefined,
    log: pino({ level: 'silent' }),
  })
  signals.on('video-removal', () => stopping.abort())
  void signals.send('work-queued', 'removal')
  await new Promise((resolve) => stopping.signal.addEventListener('abort', resolve))
  await removals.stop()
  const left = await db.selectFrom('video').select('id').execute()
  expect(left).toHaveLength(1)
  expect(await readdir(root)).toEqual(left.map(({ id }) => id))
})

/** @returns its id */
async function addDeletedVideo(write: Write): Promise<string> {
  const [videoId, switches] = [newId(), { mayUpload: true, mayImport: true }]
  const { accountId } = await write((tx) => addAccount(tx, { name: newId(), ...switches, createdAtS: 1, by: 'command-line' }))
  await write((tx) => insertVideo(tx, accountId, { id: videoId, title: 'A video', uploadTimeS: 1 }))
  await write((tx) => tombstoneVideos(tx, accountId, [videoId], 2))
  return videoId
}
