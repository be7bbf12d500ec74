import { expect } from 'vitest'
import { type EmbeddedSource, makeEmbedded } from '../assets/embedded-sources.ts'
import { listFiles } from '../assets/sample-files.ts'
import { makeLanguages, TONES } from '../browser/tones.ts'
import type { Reelgate } from '../in-process.ts'
import type { Viewer } from '../viewer.ts'
import { play } from './replaced.ts'
import { decode, newFolder, writeRendition } from './videos.ts'

// A video with all that a file may bring besides its picture: three audio tracks, captions in two languages, chapters.

/** The titles of its chapters, by the second in which they begin. */
const CHAPTERS = { 0: 'Beginning', 4: 'Middle', 9: 'End' }
const line = (text: string) => `1\n00:00:01,000 --> 00:00:02,500\n${text}\n\n2\n00:00:09,000 --> 00:00:09,900\n${text} again\n`

/** 10 s by default. As an MP4, boxes may follow it. @returns the absolute path of the kept file */
export async function makeLesson(container: 'mkv' | 'mp4' = 'mkv', seconds = 10): Promise<string> {
  const codec = container === 'mp4' ? 'mov_text' : 'copy'
  const starts = Object.entries(CHAPTERS).filter(([startS]) => Number(startS) < seconds)
  const endOf = (index: number) => 1000 * Number(starts[index + 1]?.[0] ?? seconds)
  const lesson: EmbeddedSource = {
    is: 'a lesson',
    file: `lesson.${container}`,
    around: await makeLanguages(TONES, seconds),
    tracks: [
      { name: 'a.srt', text: line('Hallo'), codec, language: 'ger', title: 'Alles' },
      { name: 'b.srt', text: line('Hello'), codec, language: 'eng' },
    ],
    chapters: starts.map(([startS, title], index) => [1000 * Number(startS), endOf(index), title]),
  }
  return makeEmbedded(lesson)
}

type Chapters = { chapters: { startS: number; title: string }[]; doesNotFit?: number }
type Storyboard = { count: number; intervalS: number; width: number; height: number; columns: number; rows: number }

/** What its owner and a viewer who comes now get of a lesson: what a change of the video must keep. Waits for what is still being made. */
export async function lessonOf(reelgate: Reelgate) {
  const { owner, videoId } = reelgate
  const get = async <T>(path: string) => (await (await owner.call('GET', `/api/videos/${videoId}${path}`)).json()) as T
  const files = async () => (await listFiles(owner, videoId)).filter(({ type }) => type === 'caption')
  await expect.poll(async () => (await files()).every(({ size }) => size > 0)).toBe(true)
  const storyboard = () => get<Storyboard>('/storyboard')
  await expect.poll(async () => (await storyboard()).count).toBeGreaterThan(0)
  const captions = await Promise.all(
    (await files()).map(async ({ id, lang, enabled, hidden, doesNotFit }) => {
      const { redirect } = await get<{ redirect: string }>(`/files/${id}`)
      return { lang, enabled, hidden, doesNotFit, text: await (await fetch(redirect)).text() }
    }),
  )
  const viewer = await play(reelgate)
  const main = await viewer.playlist('main')
  const { chapters, doesNotFit } = await get<Chapters>('/chapters')
  const { count, intervalS, width, height } = await storyboard()
  return {
    ...(await get<{ tracks: { id: number; name: string; language: string; default: boolean }[] }>('/audio')),
    tones: await tonesOf(viewer),
    captions,
    shownCaptions: Array.from(main.matchAll(/TYPE=SUBTITLES.*LANGUAGE="([^"]*)"/g), ([, language]) => language),
    chapters,
    chaptersThatDoNotFit: doesNotFit,
    storyboard: { count, intervalS, width, height },
  }
}

/** Those that were in its file are hidden at first. */
export async function showCaptions({ owner, videoId }: Reelgate, language: string): Promise<void> {
  const file = (await listFiles(owner, videoId)).find(({ type, lang }) => type === 'caption' && lang === language)
  await owner.call('PUT', `/api/videos/${videoId}/files/${file?.id}`, { body: { enabled: 1 } })
}

/** What is audible of each audio track, in the order of the playlist. */
export async function tonesOf(viewer: Viewer): Promise<(number | undefined)[]> {
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
export async function toneOf(file: string): Promise<number | undefined> {
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
