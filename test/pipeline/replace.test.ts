import { openAsBlob } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test as inEveryRun } from 'vitest'
import type { UploadCredentials, VideoBody } from '../client.ts'
import { hasFolder, listFiles, untilFinished } from '../data-folder.ts'
import { type Reelgate, startReelgate } from '../in-process.ts'
import { createTusClient, metadataOf } from '../ingest/tus-client.ts'
import { DATABASE } from '../postgres.ts'
import { startReelgate as startProcess } from '../reelgate.ts'
import { changeRows, readRows } from '../rows.ts'
import { sampledTests } from '../sample.ts'
import { makeVideo } from '../videos.ts'
import { readMediaPlaylist, type Viewer } from '../viewer.ts'
import { startReceivers, webhooksOf } from '../webhooks/receiver.ts'
import { lessonOf, makeLesson, showCaptions } from './lesson.ts'
import { PASS_ON, startWithPrograms } from './programs.ts'
import { play } from './replaced.ts'

const { test, draw } = sampledTests('replaced files', 2)

// Another file under the same link: PUT /api/videos/{id}, and what becomes of the one before.

const LONGER = { seconds: 5, size: '96x64' } as const

inEveryRun(
  'X36: another file takes the place of a video only once it can be played, and with one call the former plays again',
  async () => {
    const receivers = await startReceivers()
    const reelgate = await startProcess({
      video: await makeVideo(),
      env: { REELGATE_OUTBOUND_ALLOW: receivers.host },
    })
    const { owner, videoId } = reelgate
    await untilFinished(reelgate, videoId)
    const receiver = receivers.newReceiver()
    await webhooksOf(owner).create(receiver.url, 'video:replaced')
    const before = await owner.video(videoId)
    const watching = await play(reelgate)
    const rendition = await firstRendition(watching)
    const former = await watching.download(rendition)

    const issued = await credentials(reelgate)
    expect(issued.videoId).toBe(videoId)
    expect(await owner.video(videoId)).toEqual(before) // nothing was sent yet
    expect((await owner.send(issued, await openAsBlob(await makeVideo(LONGER)), 'Take two.mp4')).status).toBe(201)
    const meanwhile = await owner.video(videoId)
    if (meanwhile.replacement) {
      expect(meanwhile.replacement).toMatchObject({ kind: 'replace', state: expect.stringMatching(/waiting|encoding/) })
      expect(meanwhile).toMatchObject({ status: 'ready', length: before.length, posters: before.posters })
    }
    await reelgate.kill() // the file is on the disk and named by a row: the next start goes on
    await reelgate.restart()
    const after = await untilReplaced(reelgate)
    expect(after).toMatchObject({ id: videoId, title: before.title, status: 'ready', upload_time: before.upload_time })
    expect(after.length).toBeCloseTo(5, 1)
    expect(after.poster).not.toBe(before.poster) // no cache shows the old one
    expect(after.kept).toMatchObject([{ length: before.length, replacedBy: 'replace' }])
    const [event] = await receiver.until(1)
    expect(event?.event).toMatchObject({ event: 'video:replaced', payload: { id: videoId, by: 'replace' } })

    // Who watches the former file goes on; who comes now sees the new one.
    await watching.openPage()
    watching.newPage()
    await watching.reopen()
    expect((await watching.download(rendition)).segments).toEqual(former.segments)
    const newcomer = await play(reelgate)
    expect((await newcomer.download(await firstRendition(newcomer))).segments).not.toEqual(former.segments)

    expect((await owner.call('POST', `/api/videos/${videoId}/undo`)).status).toBe(200)
    const undone = await owner.video(videoId)
    expect(undone).toMatchObject({ length: before.length, poster: before.poster, totalSizeBytes: after.totalSizeBytes })
    expect(undone.kept).toMatchObject([{ file: 'Take two.mp4', replacedBy: 'undo' }])
    // What is kept counts with its file.
    const [source] = readRows<{ bytes: number }>(
      reelgate,
      'select s.size_bytes + g.segment_bytes + (select sum(size_bytes) from file where video_id = s.video_id and generation = g.number) as bytes from source s join generation g on g.video_id = s.video_id and g.source_number = s.number where s.video_id = ? and s.number <> 1',
      videoId,
    )
    expect(undone.kept).toMatchObject([{ sizeBytes: source?.bytes }])
    expect((await newcomer.download(await firstRendition(newcomer))).segments).not.toEqual(former.segments)
    const again = await play(reelgate)
    expect((await again.download(await firstRendition(again))).segments).toEqual(former.segments)

    // What is deleted now can no longer be decrypted, and is gone from the disk.
    const removed = await owner.call('DELETE', `/api/videos/${videoId}/kept`)
    expect(await removed.json()).toEqual({ message: 'Deleted', count: 1 })
    expect(readRows(reelgate, 'select number from generation where video_id = ?', videoId)).toEqual([{ number: 1 }])
    expect(readRows(reelgate, 'select number from source where video_id = ?', videoId)).toEqual([{ number: 1 }])
    const [, , number = ''] = /\/media\/\d+\/[\w-]+\/(\w+)\/(\d+)/.exec(await mediaPath(newcomer)) ?? []
    await expect.poll(() => hasFolder(reelgate, 'segments', `${videoId}/${number || '3'}`)).toBe(false)
    newcomer.newPage()
    expect((await newcomer.reopen()).body).toMatchObject({ code: 'session-ended', why: 'video-replaced' })
    expect((await owner.video(videoId)).totalSizeBytes).toBe(before.totalSizeBytes)
    expect((await owner.call('POST', `/api/videos/${videoId}/undo`)).status).toBe(409)
    await receivers.close()
  },
)

test('F-170: a file that cannot be encoded changes nothing, and the video says why; the next may succeed', async () => {
  const { reelgate, programs } = await startWithPrograms()
  const videoId = await reelgate.owner.upload('A video', await makeVideo())
  await untilFinished(reelgate, videoId)
  const installed = { ...reelgate, videoId }
  const { owner } = reelgate
  const before = await owner.video(videoId)
  const watching = await play(installed)

  await owner.send(await credentials(installed), new Blob(['not a video, whatever its name']))
  const failed = { kind: 'replace', state: 'failed', reason: expect.stringMatching(/not a video|cannot be read|audio or video/i) }
  await expect.poll(async () => (await owner.video(videoId)).replacement).toEqual(failed)
  expect({ ...(await owner.video(videoId)), replacement: undefined }).toEqual({ ...before, replacement: undefined })

  await programs.becomes('ffmpeg', 'echo no luck >&2; exit 1')
  await owner.send(await credentials(installed), await openAsBlob(await makeVideo(LONGER)))
  await expect
    .poll(async () => (await owner.video(videoId)).replacement)
    .toMatchObject({ state: 'failed', reason: /encoder stopped/ })
  await programs.becomes('ffmpeg', PASS_ON)
  expect({ ...(await owner.video(videoId)), replacement: undefined }).toEqual({ ...before, replacement: undefined })
  expect((await watching.key(0)).status).toBe(200)
  for (const table of ['generation', 'source'])
    expect(readRows(reelgate, `select number from ${table} where video_id = ?`, videoId)).toEqual([{ number: 1 }])

  expect((await owner.call('DELETE', `/api/videos/${videoId}/replacement`)).status).toBe(200)
  expect(await owner.video(videoId)).toEqual(before)
  await owner.send(await credentials(installed), await openAsBlob(await makeVideo(LONGER)))
  expect((await untilReplaced(installed)).length).toBeCloseTo(5, 1)
  expect((await watching.key(0)).status).toBe(200)
})

test('X37: a replacement takes no other fields, needs a video that plays, and there is one at a time', async () => {
  const reelgate = await startReelgate({ video: await makeVideo() })
  const { owner, videoId } = reelgate
  const fields = await owner.call('PUT', `/api/videos/${videoId}`, { body: { title: 'Other' } })
  expect([fields.status, ((await fields.json()) as { message: string }).message]).toEqual([
    400,
    expect.stringContaining(`POST /api/videos/${videoId}`),
  ])
  expect((await owner.call('PUT', `/api/videos/${'f'.repeat(32)}`)).status).toBe(404)
  const { videoId: waiting } = await owner.credentials('Not uploaded')
  expect((await owner.call('PUT', `/api/videos/${waiting}`)).status).toBe(409)

  // Of two files that are sent with two credentials the first one counts.
  await untilFinished(reelgate, videoId)
  const both = [await credentials(reelgate), await credentials(reelgate)]
  const file = await openAsBlob(await makeVideo(LONGER))
  const sent = await Promise.all(both.map((issued) => owner.send(issued, file)))
  expect(sent.map(({ status }) => status).sort()).toEqual([201, 409])
  await untilReplaced(reelgate)
  const first = both[sent.findIndex(({ status }) => status === 201)]
  if (first) expect((await owner.send(first, file)).status).toBe(201) // the same file again is confirmed
  if (first) expect((await owner.send(first, await openAsBlob(await makeVideo()))).status).toBe(403)
})

test('X37: a resumable upload replaces a file as a form does; one that is ended or expires leaves the video as it was', async () => {
  const reelgate = await startReelgate({ video: await makeVideo() })
  const { owner, videoId } = reelgate
  await untilFinished(reelgate, videoId)
  const before = await owner.video(videoId)
  const tus = createTusClient(owner)
  const file = await readFile(await makeVideo(LONGER))
  const metadata = { filename: 'Take three.mp4', videoId }
  const named = metadataOf({ ...metadata, title: 'Other' })
  const refused = await tus.call('POST', tus.endpoint, { 'Upload-Length': '9', 'Upload-Metadata': named })
  expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining(`POST /api/videos/${videoId}`)])

  for (const end of ['ended', 'expired']) {
    const upload = await tus.create(file.length, metadata)
    expect(upload.videoId).toBe(videoId)
    expect((await tus.patch(upload.address, 0, file.subarray(0, 20_000))).status).toBe(204)
    if (end === 'ended') expect((await tus.remove(upload.address)).status).toBe(204)
    else {
      changeRows(reelgate, 'update resumable_upload set expires_at_s = 1')
      await reelgate.stop()
      await reelgate.restart()
    }
    await expect.poll(() => readRows(reelgate, 'select 1 from resumable_upload')).toEqual([])
    expect(await owner.video(videoId)).toEqual(before)
    await expect.poll(() => listFiles(reelgate, `sources/${videoId}`)).toHaveLength(1)
  }

  const { address } = await tus.create(file.length, metadata)
  const half = file.length >> 1
  expect((await tus.patch(address, 0, file.subarray(0, half))).status).toBe(204)
  expect(await owner.video(videoId)).toEqual(before)
  expect((await tus.patch(address, half, file.subarray(half))).status).toBe(204)
  const after = await untilReplaced(reelgate)
  expect(after.length).toBeCloseTo(5, 1)
  expect(after.kept).toMatchObject([{ length: before.length }])
})

test('what was replaced is deleted with its key after seven days, and a video that is deleted leaves nothing of it', async () => {
  const reelgate = await startReelgate({ video: await makeVideo() })
  const { owner, videoId } = reelgate
  await replaceWith(reelgate, await makeVideo(LONGER))
  changeRows(reelgate, 'update generation set kept_until_s = kept_until_s - ? where video_id = ?', 7 * 24 * 3600 + 60, videoId)
  await reelgate.stop()
  await reelgate.restart()
  await expect.poll(() => readRows(reelgate, 'select number from source where video_id = ?', videoId).length).toBe(1)
  expect((await owner.video(videoId)).kept).toBe(undefined)
  await expect.poll(() => hasFolder(reelgate, 'segments', `${videoId}/1`)).toBe(false)

  await replaceWith(reelgate, await makeVideo())
  expect((await owner.video(videoId)).kept).toHaveLength(1)
  await owner.delete([videoId])
  await expect.poll(() => readRows(reelgate, 'select 1 from source where video_id = ?', videoId)).toEqual([])
  for (const folder of ['segments', 'sources', 'posters'] as const)
    await expect.poll(() => hasFolder(reelgate, folder, videoId)).toBe(false)
})

test('F-172: an undo plays what was replaced last, also where the clock has gone back since', async () => {
  const reelgate = await startReelgate({ video: await makeVideo() })
  const { owner, videoId } = reelgate
  const trim = async (startS: number) => {
    expect((await owner.call('PUT', `/api/videos/${videoId}/trim`, { body: { startS } })).status).toBe(200)
    return untilReplaced(reelgate)
  }
  await trim(1)
  changeRows(reelgate, 'update generation set kept_until_s = kept_until_s + 86400 where kept_until_s is not null')
  const before = await trim(2)
  expect(before.kept).toMatchObject([{ length: expect.closeTo(2, 1) }, { length: expect.closeTo(3, 1) }])
  expect((await owner.call('POST', `/api/videos/${videoId}/undo`)).status).toBe(200)
  expect((await owner.video(videoId)).trim).toMatchObject({ startS: 1 })
})

inEveryRun.skipIf(DATABASE !== 'sqlite')(
  'F-171: after what was replaced is deleted, or a video was encrypted again, no key of it is in the database or its log',
  async () => {
    const reelgate = await startProcess({ video: await makeVideo() })
    const { owner, videoId, dataDir } = reelgate
    await untilFinished(reelgate, videoId)
    const keyOf = (number: number) =>
      readRows<{ key: Buffer }>(
        reelgate,
        'select wrapped_content_key as key from generation where video_id = ? and number = ?',
        videoId,
        number,
      )[0]?.key ?? Buffer.alloc(0)
    const filesWith = async (key: Buffer) => {
      const files = await Promise.all(['reelgate.db', 'reelgate.db-wal'].map((name) => readFile(join(dataDir, name))))
      return files.filter((bytes) => key.length === 0 || bytes.includes(key)).length
    }
    const first = keyOf(1)
    expect(await filesWith(first)).toBeGreaterThan(0)
    expect((await owner.call('PUT', `/api/videos/${videoId}/trim`, { body: { startS: 1 } })).status).toBe(200)
    await untilReplaced(reelgate)
    expect((await owner.call('DELETE', `/api/videos/${videoId}/kept`)).status).toBe(200)
    await expect.poll(() => filesWith(first)).toBe(0)

    const [{ generation } = { generation: 0 }] = readRows<{ generation: number }>(reelgate, 'select generation from video')
    const second = keyOf(generation)
    expect(await reelgate.cli('video', 'reencrypt', videoId)).toMatchObject({ code: 0 })
    await expect.poll(() => keyOf(generation)).toHaveLength(0)
    await expect.poll(() => filesWith(second)).toBe(0)
  },
)

test('T-23: captions and chapters stay with another file, what does not fit its length is counted, languages are those of the file that plays; an undo brings back all', async () => {
  const reelgate = await startReelgate({ video: await makeLesson() })
  const { owner, videoId } = reelgate
  await untilFinished(reelgate, videoId)
  await showCaptions(reelgate, 'de')
  const renamed = { name: 'Österreichisch', language: 'de-AT', default: true }
  expect((await owner.call('PUT', `/api/videos/${videoId}/audio/3`, { body: renamed })).status).toBe(200)
  const before = await lessonOf(reelgate)

  const after = await replaceWith(reelgate, await makeLesson('mp4', 5))
  expect(after.statusReason).toBe('The file contains captions and chapters: those of the video stay as they are.')
  const replaced = await lessonOf(reelgate)
  expect(replaced).toMatchObject({
    captions: before.captions.map((captions) => ({ ...captions, doesNotFit: 1 })), // hidden ones, too
    shownCaptions: ['de'],
    chapters: before.chapters.slice(0, 2),
    chaptersThatDoNotFit: 1,
    tracks: [{ language: 'en', default: true }, { language: 'de', name: 'Deutsch' }, { language: 'en' }],
    storyboard: { count: 3 },
  })
  expect((await owner.call('POST', `/api/videos/${videoId}/undo`)).status).toBe(200)
  expect(await lessonOf(reelgate)).toEqual(before)
  expect((await owner.video(videoId)).statusReason).toBe(undefined)

  await replaceWith(reelgate, await makeVideo(LONGER))
  expect(await lessonOf(reelgate)).toMatchObject({ captions: replaced.captions, tracks: [{ default: true }] })
})

async function credentials({ owner, videoId }: Reelgate): Promise<UploadCredentials> {
  const answer = await owner.call('PUT', `/api/videos/${videoId}`)
  if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`)
  return (await answer.json()) as UploadCredentials
}

async function replaceWith(reelgate: Reelgate, path: string): Promise<VideoBody> {
  await untilFinished(reelgate, reelgate.videoId)
  const answer = await reelgate.owner.send(await credentials(reelgate), await openAsBlob(path))
  expect(answer.status).toBe(201)
  return untilReplaced(reelgate)
}

/** Resolves once nothing is to replace the video any more. */
async function untilReplaced(reelgate: Reelgate): Promise<VideoBody> {
  const { owner, videoId } = reelgate
  await expect.poll(async () => (await owner.video(videoId)).replacement).toBe(undefined)
  await untilFinished(reelgate, videoId)
  return owner.video(videoId)
}

async function firstRendition(viewer: Viewer): Promise<string> {
  const [, name = ''] = /#EXT-X-STREAM-INF:.*\n(\S+)/.exec(await viewer.playlist('main')) ?? []
  return name
}

async function mediaPath(viewer: Viewer): Promise<string> {
  return readMediaPlaylist(await viewer.playlist(await firstRendition(viewer))).segments[0]?.uri ?? ''
}

draw()
