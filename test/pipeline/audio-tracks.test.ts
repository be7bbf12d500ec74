import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { listFiles } from '../assets/sample-files.ts'
import { makeLanguages, TONES } from '../browser/tones.ts'
import { listSegments, untilFinished } from '../data-folder.ts'
import { type Reelgate, startReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'
import { sampledTests } from '../sample.ts'
import { makeVideo } from '../videos.ts'
import { readMediaPlaylist, type Viewer } from '../viewer.ts'
import { play } from './replaced.ts'
import { decode, newFolder, writeRendition } from './videos.ts'

// A video with three audio tracks, each a tone, from its upload to its deletion. Of the file the second one is the default.

const [GERMAN, ENGLISH, COMMENTARY] = TONES.map(({ hz }) => hz)

/** What the API says of a track that is in the video's file. */
const OF_FILE = { state: 'ready', added: false }

const { test, draw } = sampledTests('videos with several audio tracks', 3)

test('T-03, T-06: the playlist has each audio track with language, name and default, and each has its sound, also after repair, trim and encryption', async () => {
  const reelgate = await startReelgate({ video: await makeLanguages(TONES, 10) })
  const { owner, videoId } = reelgate
  await untilFinished(reelgate, videoId)
  const viewer = await play(reelgate)
  const lines = (await viewer.playlist('main')).split('\n').filter((line) => line.includes('TYPE=AUDIO'))
  const media = (name: string, language: string, isDefault: string, id: number) =>
    `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio",NAME="${name}",LANGUAGE="${language}",DEFAULT=${isDefault},AUTOSELECT=YES,CHANNELS="2",URI="${id}"`
  expect(lines).toEqual([media('English', 'en', 'YES', 2), media('Deutsch', 'de', 'NO', 3), media('Commentary', 'en', 'NO', 4)])
  expect(await tonesOf(viewer)).toEqual([ENGLISH, GERMAN, COMMENTARY])
  expect(await (await owner.call('GET', `/api/videos/${videoId}/audio`)).json()).toEqual({
    tracks: [
      { id: 2, name: 'English', language: 'en', default: true, ...OF_FILE },
      { id: 3, name: 'Deutsch', language: 'de', default: false, ...OF_FILE },
      { id: 4, name: 'Commentary', language: 'en', default: false, ...OF_FILE },
    ],
  })
  const audio = (await listFiles(owner, videoId)).filter(({ type }) => type === 'audio')
  expect(audio.map(({ lang }) => lang)).toEqual(['en', 'de', 'en'])

  const broken = listSegments(reelgate, videoId).find(({ rendition_id, number }) => rendition_id === 3 && number === 1)
  const path = join(reelgate.dataDir, 'segments', broken?.file ?? '')
  const published = await readFile(path)
  await writeFile(path, published.subarray(0, 100))
  expect(await tonesOf(await play(reelgate))).toEqual([ENGLISH, GERMAN, COMMENTARY])
  expect(await readFile(path)).toEqual(published)

  expect((await owner.call('PUT', `/api/videos/${videoId}/trim`, { body: { startS: 2, endS: 8 } })).status).toBe(200)
  await expect.poll(async () => (await owner.video(videoId)).length).toBeCloseTo(6, 1)
  expect(await tonesOf(await play(reelgate))).toEqual([ENGLISH, GERMAN, COMMENTARY])
  expect((await owner.video(videoId)).posters).toHaveLength(2) // no key frame begins in these seconds

  const before = generationOf(reelgate)
  expect((await reelgate.cli('video', 'reencrypt', videoId)).code).toBe(0)
  await expect.poll(() => generationOf(reelgate)).toBeGreaterThan(before)
  expect(await tonesOf(await play(reelgate))).toEqual([ENGLISH, GERMAN, COMMENTARY])
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

/** What is audible of each audio track, in the order of the playlist. */
async function tonesOf(viewer: Viewer): Promise<(number | undefined)[]> {
  const folder = await newFolder()
  const names = Array.from((await viewer.playlist('main')).matchAll(/TYPE=AUDIO.*URI="([^"]+)"/g), ([, name = '']) => name)
  const tones: (number | undefined)[] = []
  for (const name of names) {
    const download = { name, kind: 'audio' as const, widthPx: 0, heightPx: 0, ...(await viewer.download(name)) }
    tones.push(await toneOf(await writeRendition(folder, download)))
  }
  return tones
}

/** The loudest of the tones in a file's second second. */
async function toneOf(file: string): Promise<number | undefined> {
  const pcm = await decode(file, '-ss', '1', '-t', '1', '-ac', '1', '-ar', '16000', '-f', 's16le', '-')
  const samples = new Int16Array(pcm.bytes.buffer.slice(pcm.bytes.byteOffset, pcm.bytes.byteOffset + (pcm.bytes.length & ~1)))
  const level = (hz: number) => {
    let [re, im] = [0, 0]
    for (const [i, sample] of samples.entries()) {
      re += sample * Math.cos((2 * Math.PI * hz * i) / 16_000)
      im += sample * Math.sin((2 * Math.PI * hz * i) / 16_000)
    }
    return Math.hypot(re, im) / samples.length
  }
  return TONES.map(({ hz }) => hz).toSorted((a, b) => level(b) - level(a))[0]
}
