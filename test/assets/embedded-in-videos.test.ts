import { openAsBlob } from 'node:fs'
import { afterAll, beforeAll, expect } from 'vitest'
import { untilFinished } from '../data-folder.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { changeRows } from '../rows.ts'
import { sampledTests } from '../sample.ts'
import { makeEmbedded } from './embedded-sources.ts'
import { addFile, type FileBody, listFiles, SRT } from './sample-files.ts'

const { test, draw } = sampledTests('captions inside of videos', 2)

// Captions and chapters inside of uploaded files, as owners and viewers get them.

let reelgate: Reelgate & { remove(): Promise<void> }
let file: string
beforeAll(async () => {
  reelgate = await startSharedReelgate()
  const line = (text: string) => `1\n00:00:01,000 --> 00:00:02,500\n${text}\n`
  file = await makeEmbedded({
    is: 'two tracks and two chapters',
    file: 'lesson.mkv',
    tracks: [
      { name: 'a.srt', text: line('Hallo'), language: 'ger', title: 'Alles' },
      { name: 'b.srt', text: line('Hello'), language: 'eng' },
    ],
    chapters: [
      [0, 4000, 'One'],
      [4000, 8000, 'Two'],
    ],
  })
})
afterAll(() => reelgate.remove())

type Chapters = { chapters: unknown }
const TAKEN = [
  { startS: 0, title: 'One' },
  { startS: 4, title: 'Two' },
]

async function addVideo(prepare?: (videoId: string) => Promise<unknown>): Promise<string> {
  const { owner } = reelgate
  const upload = await owner.credentials('Lesson')
  await prepare?.(upload.videoId)
  expect((await owner.send(upload, await openAsBlob(file))).status).toBe(201)
  await untilFinished(reelgate, upload.videoId)
  return upload.videoId
}

async function captionsOf(videoId: string): Promise<FileBody[]> {
  return (await listFiles(reelgate.owner, videoId)).filter(({ type }) => type === 'caption')
}

async function untilRead(videoId: string): Promise<FileBody[]> {
  await expect.poll(async () => (await captionsOf(videoId)).every(({ size }) => size > 0)).toBe(true)
  return captionsOf(videoId)
}

async function chaptersOf(videoId: string): Promise<unknown> {
  return ((await (await reelgate.owner.call('GET', `/api/videos/${videoId}/chapters`)).json()) as Chapters).chapters
}

async function show(videoId: string, fileId: number | undefined, enabled: number): Promise<number> {
  const response = await reelgate.owner.call('PUT', `/api/videos/${videoId}/files/${fileId}`, { body: { enabled } })
  return response.status
}

/** What the player of a viewer who comes now can choose from. */
async function shownTo(videoId: string): Promise<string[]> {
  const viewer = reelgate.newViewer()
  await viewer.redeem(await reelgate.owner.issueOtp(videoId))
  return [...(await viewer.playlist('main')).matchAll(/TYPE=SUBTITLES.*LANGUAGE="([^"]*)"/g)].map(([, language = '']) => language)
}

test('S-03: captions inside a file are hidden until their owner shows them, in place of others in their language', async () => {
  const videoId = await addVideo()
  const [german, english] = await untilRead(videoId)
  expect(german).toMatchObject({
    name: 'Lesson [DE] Alles.vtt',
    lang: 'de',
    enabled: 0,
    hidden: 1,
    isDownloadable: 1,
    isDeletable: 1,
  })
  expect(english).toMatchObject({ name: 'Lesson [EN].vtt', lang: 'en', enabled: 0, hidden: 1 })
  expect(await shownTo(videoId)).toEqual([])
  expect(await chaptersOf(videoId)).toEqual(TAKEN)

  expect((await addFile(reelgate.owner, videoId, SRT, 'en')).status).toBe(200)
  expect([await show(videoId, german?.id, 1), await shownTo(videoId)]).toEqual([200, ['de', 'en']])
  expect(await show(videoId, english?.id, 1)).toBe(200)
  expect((await captionsOf(videoId)).map(({ enabled, hidden }) => [enabled, hidden])).toEqual([
    [1, undefined],
    [1, undefined],
    [0, undefined],
  ])
  expect([await show(videoId, german?.id, 0), await shownTo(videoId)]).toEqual([200, ['en']])
  // What was shown before is shown again; what is hidden stays hidden.
  const remove = (id: number | undefined) => reelgate.owner.call('DELETE', `/api/videos/${videoId}/files/${id}`)
  expect((await remove(english?.id)).status).toBe(200)
  expect(await captionsOf(videoId)).toMatchObject([
    { lang: 'de', hidden: 1 },
    { lang: 'en', enabled: 1 },
  ])
  const own = (await captionsOf(videoId)).find(({ enabled }) => enabled === 1)
  expect(await show(videoId, own?.id, 0)).toBe(200)
  expect([await show(videoId, 999_999, 1), await shownTo(videoId)]).toEqual([404, []])
  const original = (await listFiles(reelgate.owner, videoId)).find(({ type }) => type === 'original')
  expect(await show(videoId, original?.id, 1)).toBe(409)
})

test('S-04: chapters and captions that the owner has set are kept, also when another file replaces the video’s', async () => {
  const { owner } = reelgate
  const own = [{ startS: 2, title: 'Mine' }]
  const videoId = await addVideo((id) => owner.call('PUT', `/api/videos/${id}/chapters`, { body: { chapters: own } }))
  const [german] = await untilRead(videoId)
  expect(await show(videoId, german?.id, 1)).toBe(200)
  expect(await chaptersOf(videoId)).toEqual(own)

  const replacing = await owner.call('PUT', `/api/videos/${videoId}`)
  const credentials = (await replacing.json()) as Parameters<typeof owner.send>[0]
  expect((await owner.send(credentials, await openAsBlob(file))).status).toBe(201)
  await expect.poll(async () => (await owner.video(videoId)).kept).toHaveLength(1)
  expect([await chaptersOf(videoId), await shownTo(videoId)]).toEqual([own, ['de']])
  expect(await captionsOf(videoId)).toHaveLength(2)
  expect((await owner.video(videoId)).statusReason).toBe(
    'The file contains captions and chapters: those of the video stay as they are.',
  )
})

test('S-05: captions and chapters out of a file move with a trim, which takes nothing over a second time', async () => {
  const { owner } = reelgate
  const videoId = await addVideo()
  const [german] = await untilRead(videoId)
  await show(videoId, german?.id, 1)
  expect((await owner.call('PUT', `/api/videos/${videoId}/trim`, { body: { startS: 2, endS: 7 } })).status).toBe(200)
  await expect.poll(async () => (await owner.video(videoId)).replacement).toBe(undefined)
  expect(await chaptersOf(videoId)).toEqual([
    { startS: 0, title: 'One' },
    { startS: 2, title: 'Two' },
  ])
  const captions = await captionsOf(videoId)
  expect(captions).toHaveLength(2)
  const address = await owner.call('GET', `/api/videos/${videoId}/files/${german?.id}`)
  const text = await (await fetch(((await address.json()) as { redirect: string }).redirect)).text()
  expect(text).toBe('WEBVTT\n\n00:00:00.000 --> 00:00:00.500\nHallo\n')
})

test('S-06: captions that are still in the file after a crash of the server are read by the next start; those deleted meanwhile are not', async () => {
  const videoId = await addVideo()
  const [german, english] = await untilRead(videoId)
  await reelgate.stop()
  expect(changeRows(reelgate, 'update file set blob = null, size_bytes = 0, attempts = 1 where id = ?', german?.id ?? 0)).toBe(1)
  expect(changeRows(reelgate, 'delete from file where id = ?', english?.id ?? 0)).toBe(1)
  await reelgate.restart()
  expect(await untilRead(videoId)).toMatchObject([{ id: german?.id, hidden: 1 }])
})

draw()
