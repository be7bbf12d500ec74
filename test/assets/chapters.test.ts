import { openAsBlob } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { startReceivers, webhooksOf } from '../webhooks/receiver.ts'

// Chapters of a video (docs/videos.md, "Chapters"). The video has three seconds and, with the last frame of its audio, eight milliseconds.

let reelgate: Reelgate & { remove(): Promise<void> }
let receivers: Awaited<ReturnType<typeof startReceivers>>
beforeAll(async () => {
  receivers = await startReceivers()
  reelgate = await startSharedReelgate({ video: await makeVideo(), env: { REELGATE_OUTBOUND_ALLOW: receivers.host } })
})
afterAll(async () => {
  await reelgate.remove()
  await receivers.close()
})

const pathOf = (videoId: string) => `/api/videos/${videoId}/chapters`

async function put(videoId: string, body: object): Promise<[number, Record<string, unknown>]> {
  const response = await reelgate.owner.call('PUT', pathOf(videoId), { body })
  return [response.status, (await response.json()) as Record<string, unknown>]
}

async function read(videoId: string, query = ''): Promise<[number, string]> {
  const response = await reelgate.owner.call('GET', `${pathOf(videoId)}${query}`)
  return [response.status, await response.text()]
}

async function redeemedVideo(videoId: string): Promise<Record<string, unknown>> {
  const viewer = reelgate.newViewer()
  const { body } = await viewer.redeem(await reelgate.owner.issueOtp(videoId))
  return body.video as Record<string, unknown>
}

test('C-01: chapters come back in the order of the video, in whole milliseconds, and an empty list removes them', async () => {
  const { videoId } = reelgate
  expect(await read(videoId)).toEqual([200, '{"chapters":[]}'])
  const sent = [
    { startS: 1.23456, title: ' Light \n and\u0007 shadow ' },
    { startS: 0, title: 'Préface <b>&' },
  ]
  const stored = {
    language: 'pt-br',
    chapters: [
      { startS: 0, title: 'Préface <b>&' },
      { startS: 1.235, title: 'Light and shadow' },
    ],
  }
  expect(await put(videoId, { language: 'pt-BR', chapters: sent })).toEqual([200, stored])
  expect(JSON.parse((await read(videoId))[1])).toEqual(stored)
  expect(await put(videoId, { chapters: [] })).toEqual([200, { chapters: [] }])
  expect(await read(videoId)).toEqual([200, '{"chapters":[]}'])
})

test('C-01: another player gets the chapters as WebVTT, each until the next one and the last until the end', async () => {
  const { videoId } = reelgate
  await put(videoId, {
    chapters: [
      { startS: 0, title: 'One --> two & <i>' },
      { startS: 1.5, title: 'Three' },
    ],
  })
  const response = await reelgate.owner.call('GET', `${pathOf(videoId)}?format=vtt`)
  expect(response.headers.get('content-type')).toBe('text/vtt; charset=utf-8')
  expect(await response.text()).toBe(
    'WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nOne --&gt; two &amp; &lt;i&gt;\n\n00:00:01.500 --> 00:00:03.008\nThree\n',
  )
})

const many = (count: number) => Array.from({ length: count }, (_, n) => ({ startS: n / 1000, title: `Chapter ${n + 1}` }))

test.each([
  ['one behind the end', [{ startS: 750, title: 'Late' }], 'The chapter "Late" begins at 12:30, but the video ends at 0:03.008.'],
  ['one before the start', [{ startS: -1, title: 'Early' }], 'Chapter 1 begins at -1 seconds. The first second is 0.'],
  [
    'two at one time',
    [
      { startS: 1.5001, title: 'A' },
      { startS: 1.5, title: 'B' },
    ],
    'Two chapters begin at 0:01.5. Give each its own time.',
  ],
  ['one without a title', [{ startS: 0, title: ' \u0000\n' }], /The title of chapter 1 must have 1 to 200 characters/],
  ['a title too long', [{ startS: 0, title: 'x'.repeat(201) }], /The title of chapter 1 must have 1 to 200 characters/],
  ['half of a character', [{ startS: 0, title: 'a\ud800' }], /The title of chapter 1 must have .* without unpaired surrogates/],
  ['too many', many(301), 'A video has at most 300 chapters, but got 301.'],
  ['a time as a clock shows it', [{ startS: '0:01', title: 'A' }], /"chapters\[0\].startS" expects a number/],
])('C-01: %s is refused by name, and the chapters before it remain', async (_, chapters, message) => {
  const { videoId } = reelgate
  await put(videoId, { chapters: [{ startS: 1, title: 'Before' }] })
  const [status, body] = await put(videoId, { chapters })
  expect([status, body]).toMatchObject([400, { message: typeof message === 'string' ? message : expect.stringMatching(message) }])
  expect(await read(videoId)).toEqual([200, '{"chapters":[{"startS":1,"title":"Before"}]}'])
})

test('C-01: the longest list is stored whole, and a language that is none is refused', async () => {
  const { videoId } = reelgate
  const chapters = many(300).map((chapter) => ({ ...chapter, title: '𐍈'.repeat(200) }))
  expect(await put(videoId, { chapters })).toEqual([200, { chapters }])
  expect(await put(videoId, { chapters, language: 'English' })).toMatchObject([
    400,
    { message: expect.stringMatching(/^language/) },
  ])
})

test('C-01: a video of another account has no chapters to read or to set', async () => {
  const other = await reelgate.newOwner('other')
  const { videoId } = await other.credentials('Theirs')
  expect(await put(videoId, { chapters: [] })).toMatchObject([404, {}])
  expect((await read(videoId))[0]).toBe(404)
})

test('C-02: a player gets the chapters with its session, without those behind the end of a video that came later', async () => {
  const { owner, videoId } = reelgate
  await put(videoId, { chapters: [] })
  expect(await redeemedVideo(videoId)).not.toHaveProperty('chapters')
  await put(videoId, { language: 'en', chapters: [{ startS: 1, title: 'The end' }] })
  expect(await redeemedVideo(videoId)).toMatchObject({
    chapters: { language: 'en', chapters: [{ startS: 1, title: 'The end' }] },
  })

  const upload = await owner.credentials('Later')
  const [status] = await put(upload.videoId, {
    chapters: [
      { startS: 0, title: 'Within' },
      { startS: 60, title: 'Behind' },
    ],
  })
  expect(status).toBe(200)
  await owner.send(upload, await openAsBlob(await makeVideo()))
  await owner.until(upload.videoId, 'ready')
  expect(await redeemedVideo(upload.videoId)).toMatchObject({ chapters: { chapters: [{ startS: 0, title: 'Within' }] } })
})

test('C-03: changed chapters are in the audit log and reach the webhook, with their number and without their titles', async () => {
  const owner = await reelgate.newOwner('listens')
  const receiver = receivers.newReceiver()
  const { videoId } = await owner.credentials('With chapters')
  await webhooksOf(owner).create(receiver.url, 'video:chapters')
  await owner.call('PUT', pathOf(videoId), { body: { chapters: many(2) } })
  const [received] = await receiver.until(1)
  expect(received?.event).toMatchObject({ event: 'video:chapters', payload: { id: videoId, chapterCount: 2 } })
  expect(received?.body.toString()).not.toContain('Chapter 1')
  const [audited] = readRows(
    reelgate,
    'select kind, details from audit_event where subject = ? order by id desc limit 1',
    videoId,
  )
  expect(audited).toEqual({ kind: 'chapters:changed', details: '{"chapterCount":2}' })
})

test('C-04: chapters wait in the trash with their video, and go with it', async () => {
  const { owner } = reelgate
  const upload = await owner.credentials('To the trash')
  const { videoId } = upload
  await owner.send(upload, new Blob(['no video']))
  await owner.until(videoId, 'Not a media file')
  const chapters = [{ startS: 0, title: 'Still here' }]
  await put(videoId, { chapters })
  await owner.call('DELETE', `/api/videos?trash=1&videos=${videoId}`)
  expect((await read(videoId))[0]).toBe(404)
  await owner.call('POST', '/api/trash/restore', { body: { videos: [videoId] } })
  expect(JSON.parse((await read(videoId))[1])).toEqual({ chapters })
  await owner.delete([videoId])
  await expect
    .poll(() => readRows(reelgate, 'select count(*) as n from chapters where video_id = ?', videoId))
    .toEqual([{ n: 0 }])
})
