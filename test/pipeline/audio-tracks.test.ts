import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { listFiles } from '../assets/sample-files.ts'
import { makeLanguages, TONES } from '../browser/tones.ts'
import { blobOf, listSegments, untilFinished } from '../data-folder.ts'
import { type Reelgate, startReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'
import { sampledTests } from '../sample.ts'
import { makeVideo } from '../videos.ts'
import { readMediaPlaylist } from '../viewer.ts'
import { lessonOf, makeLesson, showCaptions, toneOf, tonesOf } from './lesson.ts'
import { play } from './replaced.ts'
import { newFolder } from './videos.ts'

// A video with three audio tracks, each a tone, from its upload to its deletion. Of the file the second one is the default.

const [GERMAN, ENGLISH, COMMENTARY] = TONES.map(({ hz }) => hz)

/** What the API says of a track that is in the video's file. */
const OF_FILE = { state: 'ready', added: false }

const { test, draw } = sampledTests('videos with several audio tracks', 2)

test('T-03, T-06, T-21: the playlist has each audio track with language, name and default, and each has its sound; repair and encryption keep them, captions, chapters and storyboard, and so does the undo of a trim', async () => {
  const reelgate = await startReelgate({ video: await makeLesson() })
  const { owner, videoId } = reelgate
  await untilFinished(reelgate, videoId)
  const lines = (await (await play(reelgate)).playlist('main')).split('\n').filter((line) => line.includes('TYPE=AUDIO'))
  const media = (name: string, language: string, isDefault: string, id: number) =>
    `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio",NAME="${name}",LANGUAGE="${language}",DEFAULT=${isDefault},AUTOSELECT=YES,CHANNELS="2",URI="${id}"`
  expect(lines).toEqual([media('English', 'en', 'YES', 2), media('Deutsch', 'de', 'NO', 3), media('Commentary', 'en', 'NO', 4)])
  await showCaptions(reelgate, 'de')
  const lesson = await lessonOf(reelgate)
  expect(lesson).toMatchObject({
    tracks: [
      { id: 2, name: 'English', language: 'en', default: true, ...OF_FILE },
      { id: 3, name: 'Deutsch', language: 'de', default: false, ...OF_FILE },
      { id: 4, name: 'Commentary', language: 'en', default: false, ...OF_FILE },
    ],
    tones: [ENGLISH, GERMAN, COMMENTARY],
    captions: [
      { lang: 'de', enabled: 1, text: expect.stringContaining('Hallo again') },
      { lang: 'en', hidden: 1, text: expect.stringContaining('Hello again') },
    ],
    chapters: [{ startS: 0 }, { startS: expect.closeTo(4, 1) }, { startS: expect.closeTo(9, 1) }],
    storyboard: { count: 5 },
    shownCaptions: ['de'],
  })
  const audio = (await listFiles(owner, videoId)).filter(({ type }) => type === 'audio')
  expect(audio.map(({ lang }) => lang)).toEqual(['en', 'de', 'en'])

  const broken = listSegments(reelgate, videoId).find(({ rendition_id, number }) => rendition_id === 3 && number === 1)
  const stored = blobOf(reelgate, 'segments', broken?.file)
  const published = await stored.read()
  await stored.write(published.subarray(0, 100))
  expect(await lessonOf(reelgate)).toEqual(lesson)
  expect(await stored.read()).toEqual(published)

  expect((await owner.call('PUT', `/api/videos/${videoId}/trim`, { body: { startS: 2, endS: 8 } })).status).toBe(200)
  await expect.poll(async () => (await owner.video(videoId)).length).toBeCloseTo(6, 1)
  expect(await lessonOf(reelgate)).toMatchObject({
    ...{ tracks: lesson.tracks, tones: lesson.tones, chaptersThatDoNotFit: 1, storyboard: { count: 3 } },
    chapters: [{ startS: 0 }, { startS: expect.closeTo(2, 1) }],
    captions: [{ doesNotFit: 1, text: expect.stringMatching(/^WEBVTT\n\n00:00:00.000 --> 00:00:00.[45]\d\d\nHallo\n/) }, {}],
  })
  expect((await owner.video(videoId)).posters).toHaveLength(2) // no key frame begins in these seconds
  expect((await owner.call('POST', `/api/videos/${videoId}/undo`)).status).toBe(200)
  expect(await lessonOf(reelgate)).toEqual(lesson)

  const before = generationOf(reelgate)
  expect((await reelgate.cli('video', 'reencrypt', videoId)).code).toBe(0)
  await expect.poll(() => generationOf(reelgate)).not.toBe(before)
  expect(await lessonOf(reelgate)).toEqual(lesson)
})

test('T-03: an MP4 has the default audio track', async () => {
  const reelgate = await startReelgate({ video: await makeLanguages(TONES, 10) })
  await untilFinished(reelgate, reelgate.videoId)
  expect(await toneOf(await downloadMp4(reelgate))).toBe(ENGLISH)
})

test('T-03: sound alone in several languages has a group of them, and one track is the stream itself', async () => {
  const reelgate = await startReelgate({ video: await makeLanguages(TONES.slice(0, 2), 5, false), title: 'Talk' })
  const viewer = await play(reelgate)
  const main = await viewer.playlist('main')
  expect(main).toMatch(/NAME="English",LANGUAGE="en",DEFAULT=YES,.*URI="1"\n.*NAME="Deutsch",LANGUAGE="de",DEFAULT=NO,.*URI="2"/)
  expect(main).toMatch(/#EXT-X-STREAM-INF:.*,AUDIO="audio",CLOSED-CAPTIONS=NONE\n1\n$/)
  expect(await tonesOf(viewer)).toEqual([ENGLISH, GERMAN])
})

test('T-07: an audio track is renamed, gets a language and becomes the default, for players, MP4s and the list, and keeps it with a trim', async () => {
  const reelgate = await startReelgate({ video: await makeLanguages(TONES, 10) })
  const { owner, videoId } = reelgate
  await untilFinished(reelgate, videoId)
  const put = (id: number, body: object) => owner.call('PUT', `/api/videos/${videoId}/audio/${id}`, { body })
  expect((await put(3, { name: ' Öster\n"reich"\u0000 ', language: 'de-AT', default: true })).status).toBe(200)
  const changed = { id: 3, name: 'Öster reich', language: 'de-at', default: true, ...OF_FILE }
  const others = [
    { id: 2, name: 'English', language: 'en', default: false, ...OF_FILE },
    { id: 4, name: 'Commentary', language: 'en', default: false, ...OF_FILE },
  ]
  const list = async () => (await owner.call('GET', `/api/videos/${videoId}/audio`)).json()
  const tracks = [others[0], changed, others[1]]
  expect(await list()).toEqual({ tracks })
  const statuses = [put(9, { default: true }), put(3, { language: '!' }), put(3, { name: 'a'.repeat(61) })]
  expect((await Promise.all(statuses)).map(({ status }) => status)).toEqual([404, 400, 400])
  const main = await (await play(reelgate)).playlist('main')
  expect(main).toMatch(/NAME="English",LANGUAGE="en",DEFAULT=NO/)
  expect(main).toMatch(/NAME="Öster reich",LANGUAGE="de-at",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="2",URI="3"/)
  expect(await toneOf(await downloadMp4(reelgate))).toBe(GERMAN)

  expect((await owner.call('PUT', `/api/videos/${videoId}/trim`, { body: { startS: 2, endS: 8 } })).status).toBe(200)
  await expect.poll(async () => (await owner.video(videoId)).length).toBeCloseTo(6, 1)
  expect(await list()).toEqual({ tracks })
  expect((await put(3, { name: '', language: '' })).status).toBe(200)
  expect(await list()).toEqual({ tracks: [others[0], { ...changed, name: 'Deutsch', language: 'de' }, others[1]] })
})

test('T-04: all audio tracks share the key windows of one, each with IVs of its own', async () => {
  const { videoId, ...reelgate } = await startReelgate({ video: await makeLanguages(TONES, 10) })
  await untilFinished(reelgate, videoId)
  const viewer = await play({ ...reelgate, videoId })
  const playlists = await Promise.all(['2', '3', '4'].map(async (name) => readMediaPlaylist(await viewer.playlist(name))))
  const keys = playlists.map(({ segments }) => segments.map(({ keyUri }) => keyUri))
  expect(keys[0]).toEqual(['../key/0', '../key/0', '../key/0'])
  expect([keys[1], keys[2]]).toEqual([keys[0], keys[0]])
  const ivs = playlists.flatMap(({ segments }) => segments.map(({ iv }) => iv.toString('hex')))
  expect(new Set(ivs).size).toBe(9)
})

test('T-03: a video with one audio track has the playlist that it always had', async () => {
  const reelgate = await startReelgate({ video: await makeVideo() })
  const main = await (await play(reelgate)).playlist('main')
  expect(main.split('\n').filter((line) => line.startsWith('#EXT-X-MEDIA'))).toEqual([
    '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio",NAME="sound",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="2",URI="2"',
  ])
})

draw()

const generationOf = (reelgate: Reelgate) =>
  readRows<{ generation: number }>(reelgate, 'select generation from video where id = ?', reelgate.videoId)[0]?.generation ?? 0

async function downloadMp4({ owner, videoId }: Reelgate): Promise<string> {
  await owner.call('POST', `/api/videos/${videoId}/files`, { body: { type: 'mp4' } })
  const mp4 = async () => (await listFiles(owner, videoId)).find(({ type, size }) => type === 'mp4' && size > 0)
  await expect.poll(mp4).toBeDefined()
  const address = await owner.call('GET', `/api/videos/${videoId}/files/${(await mp4())?.id}`)
  const file = join(await newFolder(), 'video.mp4')
  await writeFile(file, await (await fetch(((await address.json()) as { redirect: string }).redirect)).bytes())
  return file
}
