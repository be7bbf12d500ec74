import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Owner } from '../client.ts'
import { listFiles } from '../data-folder.ts'
import { startSharedReelgate } from '../in-process.ts'
import { addDub, audibleIn, near } from '../pipeline/dubs.ts'
import { lessonOf, makeLesson, showCaptions } from '../pipeline/lesson.ts'
import { play } from '../pipeline/replaced.ts'
import { changeRows, readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { answerOf } from '../viewer.ts'

// The trash: docs/videos.md, "Delete and restore".

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeLesson(), title: 'Lesson 12' })
})
afterAll(() => reelgate.remove())
let owner: Owner
beforeEach(async () => {
  owner = await reelgate.newOwner('with a trash')
})

type Trash = { count: number; totalSizeBytes: number; rows: { id: string; title: string; deletedAt: string }[] }

async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await owner.call(method, path, { body })
  if (response.status !== 200) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
  return (await response.json()) as T
}
const trash = (id: string) => ask<{ message: string }>('DELETE', `/api/videos?videos=${id}&trash=1`)
const listTrash = () => ask<Trash>('GET', '/api/trash')
const restore = (id: string) => ask<{ count: number }>('POST', '/api/trash/restore', { videos: [id] })
/** A video of which every segment is stored. */
async function wholeVideo(): Promise<string> {
  const id = await owner.readyVideo(await makeVideo())
  await untilWhole(id)
  return id
}
/** A video whose file is none: it goes to the trash as any other, and nothing is encoded. */
async function failedVideo(title = 'A video'): Promise<string> {
  const credentials = await owner.credentials(title)
  await owner.send(credentials, new Blob(['no video']))
  await owner.until(credentials.videoId, 'Not a media file')
  return credentials.videoId
}
const untilWhole = (id: string) =>
  expect
    .poll(() => readRows(reelgate, 'select 1 from generation where video_id = ? and finished_at_s is not null', id).length)
    .toBe(1)
const segmentsOf = async (id: string) => (await listFiles(reelgate, 'segments')).filter((name) => name.startsWith(id)).length
/** The state of a video in both interfaces and in lists. */
async function statusesOf(id: string) {
  const v2 = await fetch(`${reelgate.url}/v2/video?id=${id}`, {
    method: 'POST',
    body: new URLSearchParams({ clientSecretKey: owner.apiKey }),
  })
  const api = await owner.call('GET', `/api/videos/${id}`)
  const listed = (await owner.list()).rows.some((row) => row.id === id)
  return { api: api.status, v2: await v2.json(), listed }
}

test('T-22, T-27: a video in the trash is unknown in both interfaces, plays nowhere and still takes storage; restored, it is as before, with languages, captions, chapters and storyboard', async () => {
  owner = reelgate.owner
  const id = reelgate.videoId
  const lesson = { ...reelgate, owner, videoId: id }
  const dubId = await addDub(lesson)
  await showCaptions(lesson, 'en')
  const lessonBefore = await lessonOf(lesson)
  const folder = await ask<{ id: string }>('POST', '/api/videos/folders', { name: 'Courses', parent: 'root' })
  await ask('POST', '/api/videos/move', { videos: [id], folderId: folder.id })
  await ask('POST', '/api/videos/tags', { videos: [id], tags: ['light', 'course'] })
  const before = await owner.video(id)
  const otp = await owner.issueOtp(id)
  const viewer = reelgate.newViewer()
  expect((await viewer.redeem(await owner.issueOtp(id))).playing).toBe(true)

  expect(await trash(id)).toEqual({ code: 200, message: 'Successfully deleted 1 videos' })
  expect(await statusesOf(id)).toEqual({ api: 404, v2: { error: 'No video found' }, listed: false })
  expect(await answerOf(viewer.key(0))).toEqual([403, 'session-ended', 'video-deleted'])
  expect((await reelgate.newViewer().redeem(otp)).playing).toBe(false)
  expect(await ask('GET', `/api/videos/folders/root`)).toMatchObject({ folderList: [{ id: folder.id, videosCount: 0 }] })
  const { rows, totalSizeBytes } = await listTrash()
  expect(rows).toMatchObject([{ id, title: 'Lesson 12' }])
  expect(totalSizeBytes).toBe(before.totalSizeBytes)

  expect(await restore(id)).toMatchObject({ count: 1 })
  expect(await owner.video(id)).toEqual(before)
  expect(await lessonOf(lesson)).toEqual(lessonBefore)
  expect((await audibleIn(await play(lesson), dubId)).fromS).toEqual(near(1))
  expect((await owner.list('?q=lesson 12')).count).toBe(1)
  expect(await ask('GET', `/api/videos/folders/root`)).toMatchObject({ folderList: [{ id: folder.id, videosCount: 1 }] })
  expect((await reelgate.newViewer().redeem(otp)).playing).toBe(true)
  expect(await answerOf(viewer.key(0))).toEqual([403, 'session-ended', 'video-deleted'])
  expect((await listTrash()).count).toBe(0)
})

test('a video restored while it is encoded is encoded whole', async () => {
  const id = await owner.upload('Long', await makeVideo({ seconds: 20 }))
  await owner.until(id, 'Processing', 'ready')
  await trash(id)
  await restore(id)
  await owner.until(id, 'ready')
  await untilWhole(id)
})

test('a video whose folder was deleted meanwhile is restored into the root', async () => {
  const folder = await ask<{ id: string }>('POST', '/api/videos/folders', { name: 'Old', parent: 'root' })
  const id = await failedVideo('Without a folder')
  await ask('POST', '/api/videos/move', { videos: [id], folderId: folder.id })
  await trash(id)
  await ask('DELETE', `/api/videos/folders/${folder.id}`)
  await restore(id)
  expect(await owner.video(id)).toMatchObject({ folderId: 'root' })
})

test('“delete now” and the end of 7 days destroy keys and files', async () => {
  const [now, later] = [await wholeVideo(), await wholeVideo()]
  for (const id of [now, later]) await trash(id)
  expect(await segmentsOf(now)).toBeGreaterThan(0)
  expect(await ask('DELETE', '/api/trash', { videos: [now] })).toMatchObject({ count: 1 })
  expect((await listTrash()).rows).toMatchObject([{ id: later }])
  expect(changeRows(reelgate, 'update trashed_video set ends_at_s = 1 where video_id = ?', later)).toBe(1)
  await reelgate.stop()
  await reelgate.restart() // a start sweeps
  await expect.poll(async () => (await listTrash()).count).toBe(0)
  const rowsOf = (id: string) => readRows(reelgate, 'select 1 from video where id = ?', id).length
  for (const id of [now, later]) {
    await expect.poll(() => rowsOf(id)).toBe(0)
    expect(await segmentsOf(id)).toBe(0)
    expect(await restore(id)).toMatchObject({ count: 0 })
  }
})

test('deletions through the API go to the trash where the account asks for it; a video without a file is deleted', async () => {
  const id = await failedVideo()
  const waiting = (await owner.credentials('No file yet')).videoId
  const [row] = readRows<{ account: string }>(reelgate, 'select account_id as account from video where id = ?', id)
  await reelgate.cli('account', 'set', row?.account ?? '', '--deletes-to-trash', 'on')
  expect(await owner.delete([id, waiting])).toEqual({ code: 200, message: 'Successfully deleted 2 videos' })
  expect((await listTrash()).rows).toMatchObject([{ id }])
})

test('another account neither sees, restores nor deletes what is in the trash', async () => {
  const id = await failedVideo()
  await trash(id)
  const other = await reelgate.newOwner('other')
  expect(await (await other.call('GET', '/api/trash')).json()).toEqual({ count: 0, totalSizeBytes: 0, rows: [] })
  for (const [method, path] of [
    ['POST', '/api/trash/restore'],
    ['DELETE', '/api/trash'],
  ] as const)
    expect(await (await other.call(method, path, { body: { videos: [id] } })).json()).toMatchObject({ count: 0 })
  expect((await listTrash()).rows).toMatchObject([{ id }])
})
