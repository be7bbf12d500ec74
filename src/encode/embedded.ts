import { recordAuditEvent } from '../audit/audit-log.ts'
import {
  type Chapter,
  findChapters,
  MAX_CHAPTER_TITLE_CHARACTERS,
  MAX_CHAPTERS,
  saveChapters,
} from '../catalogue/chapters-store.ts'
import { type CaptionTrack, hasEmbeddedCaptions, insertEmbeddedCaptions } from '../catalogue/embedded-captions-store.ts'
import type { Db } from '../db/database.ts'
import { addVideoEvents } from '../webhooks/outbox.ts'
import { type Entries, number } from './ffprobe-lines.ts'
import { trackLanguage } from './track-names.ts'

/** Captions and chapters inside of a source, with times in seconds from its start. */
export type Embedded = {
  captions: readonly CaptionTrack[]
  chapters: readonly Chapter[]
  /** What of them cannot be shown, as sentences. */
  notices: readonly string[]
}

/** What ffmpeg reads as text. Others are pictures, or unknown. */
const TEXT_CODECS = ['subrip', 'srt', 'text', 'ass', 'ssa', 'mov_text', 'webvtt']
/** Each is kept in memory while all are read in one pass. */
const MAX_CAPTION_TRACKS = 20
const MAX_STREAM_TITLE_CHARACTERS = 100
const UNKNOWN_LANGUAGE = 'und'
/** Language, script and region of BCP 47, as captions have them. */
const LANGUAGE = /^[a-z]{2,3}(-[a-z]{4})?(-([a-z]{2}|\d{3}))?$/

/** Describes what ffprobe reports of captions and chapters. @param extent of the source, on its own clock */
export function describeEmbedded(
  { streams, chapters }: { streams: readonly Entries[]; chapters: readonly Entries[] },
  extent: { startS: number; endS: number },
): Embedded {
  const captions = describeCaptions(streams)
  const parts = describeChapters(chapters, extent)
  return { captions: captions.tracks, chapters: parts.chapters, notices: [...captions.notices, ...parts.notices] }
}

function describeCaptions(streams: readonly Entries[]): { tracks: CaptionTrack[]; notices: string[] } {
  const subtitles = streams.filter(({ codec_type }) => codec_type === 'subtitle')
  const texts = subtitles.filter(({ codec_name = '' }) => TEXT_CODECS.includes(codec_name))
  const others = subtitles.filter((stream) => !texts.includes(stream))
  const isInPicture = streams.some(({ closed_captions = '0' }) => closed_captions === '1')
  const tracks = texts.slice(0, MAX_CAPTION_TRACKS).map((stream) => ({
    streamIndex: Number(stream.index),
    language: languageOf(stream),
    title: cleanText(stream['tag:title'], MAX_STREAM_TITLE_CHARACTERS) || null,
  }))
  const unread = texts.length - tracks.length
  const notices = [
    ...(others.length > 0
      ? [
          `The file contains captions${namesOf(others)} that are pictures or of an unknown kind, which are not shown. ${ADD_AS_TEXT}`,
        ]
      : []),
    ...(isInPicture ? [`The file contains captions within its picture, which are not shown. ${ADD_AS_TEXT}`] : []),
    ...(unread > 0 ? [`The file contains ${texts.length} captions: the first ${MAX_CAPTION_TRACKS} were taken over.`] : []),
  ]
  return { tracks, notices }
}

const ADD_AS_TEXT = 'Add the captions as WebVTT or SRT.'

/** Their languages, where they are known: ` (de, en)`. */
function namesOf(streams: readonly Entries[]): string {
  const languages = new Set(streams.map((stream) => languageOf(stream)))
  languages.delete(UNKNOWN_LANGUAGE)
  return languages.size === 0 ? '' : ` (${[...languages].slice(0, MAX_CAPTION_TRACKS).join(', ')})`
}

function languageOf(stream: Entries): string {
  const { language = UNKNOWN_LANGUAGE } = trackLanguage([stream])
  return LANGUAGE.test(language) ? language : UNKNOWN_LANGUAGE
}

function describeChapters(
  reported: readonly Entries[],
  { startS, endS }: { startS: number; endS: number },
): { chapters: Chapter[]; notices: string[] } {
  const counts = { outside: 0, repeated: 0, untitled: 0, shortened: 0 }
  const byStart = new Map<number, string>()
  const sorted = reported
    .slice(0, MAX_CHAPTERS)
    .map((entries) => ({
      startS: (number(entries.start_time) ?? startS) - startS,
      endS: (number(entries.end_time) ?? Number.POSITIVE_INFINITY) - startS,
      title: entries['tag:title'],
    }))
    .toSorted((one, other) => one.startS - other.startS)
  for (const [index, chapter] of sorted.entries()) {
    const atS = Math.max(0, Math.round(chapter.startS * 1000) / 1000)
    const full = cleanText(chapter.title, Number.POSITIVE_INFINITY)
    if (chapter.startS >= endS || chapter.endS <= 0) counts.outside += 1
    else if (byStart.has(atS)) counts.repeated += 1
    else {
      const title = cleanText(chapter.title, MAX_CHAPTER_TITLE_CHARACTERS)
      if (title === '') counts.untitled += 1
      else if (title !== full) counts.shortened += 1
      byStart.set(atS, title || `Chapter ${index + 1}`)
    }
  }
  const sentences: [number, string][] = [
    [counts.outside, 'that begin outside of the video, and were left out'],
    [counts.repeated, 'that begin where another one does, and were left out'],
    [counts.untitled, 'without a title, which got their number'],
    [counts.shortened, `with a title of more than ${MAX_CHAPTER_TITLE_CHARACTERS} characters, which was shortened`],
  ]
  return {
    chapters: [...byStart].map(([startS, title]) => ({ startS, title })),
    notices: [
      ...(reported.length > MAX_CHAPTERS
        ? [`The file contains more than ${MAX_CHAPTERS} chapters: the first ${MAX_CHAPTERS} were taken over.`]
        : []),
      ...sentences.flatMap(([count, what]) => (count > 0 ? [`Chapters of the file ${what}: ${count}.`] : [])),
    ],
  }
}

/** A text of ffprobe, whose escapes are undone, in one line. */
function cleanText(text: string | undefined, maxCharacters: number): string {
  const line = (text ?? '')
    .replace(/\\(.)/gs, (_, character: string) => (/[a-z]/.test(character) ? ' ' : character))
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
  const characters = [...line]
  return characters.length <= maxCharacters
    ? line
    : `${characters
        .slice(0, maxCharacters - 1)
        .join('')
        .trimEnd()}…`
}

/**
 * Gives a video what is inside of its first file, in the transaction that plans it: captions, which are read later and hidden until
 * their owner shows them, and chapters, unless its owner has set some.
 * @param startS the moment of the file that is the video's start
 */
export async function takeOver(
  tx: Db,
  { accountId, videoId, atS }: { accountId: string; videoId: string; atS: number },
  { captions, chapters }: Embedded,
  startS = 0,
): Promise<void> {
  if (captions.length > 0 && !(await hasEmbeddedCaptions(tx, videoId)))
    await insertEmbeddedCaptions(tx, { videoId, createdAtS: atS }, captions)
  if (chapters.length === 0 || (await findChapters(tx, videoId)).chapters.length > 0) return
  const moved = chapters.map((chapter) => ({
    ...chapter,
    startS: Math.max(0, Math.round((chapter.startS - startS) * 1000) / 1000),
  }))
  await saveChapters(tx, videoId, { language: null, chapters: moved })
  const details = { chapterCount: chapters.length }
  await recordAuditEvent(tx, { atS, accountId, by: 'server', kind: 'chapters:changed', subjects: [videoId], details })
  await addVideoEvents(tx, 'video:chapters', [videoId], details)
}
