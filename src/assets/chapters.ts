import { type Actor, recordAuditEvent } from '../audit/audit-log.ts'
import type { CatalogueDeps } from '../catalogue/catalogue-deps.ts'
import {
  type Chapter,
  type Chapters,
  findChapters,
  MAX_CHAPTER_TITLE_CHARACTERS,
  MAX_CHAPTERS,
  saveChapters,
  timelineStartMs,
  toPlayedChapters,
} from '../catalogue/chapters-store.ts'
import { findVideo } from '../catalogue/video-store.ts'
import { Failure, videoNotFound } from '../errors.ts'
import { addVideoEvents } from '../webhooks/outbox.ts'
import { parseLanguage } from './caption.ts'
import { type Cue, escapeText, writeWebVtt } from './webvtt.ts'

/** As the video plays them. @returns also how many others are before or behind what it plays, and how long it is; 0: not known yet @throws Failure `not-found` when the account has no such video */
export async function getChapters(
  { db }: Pick<CatalogueDeps, 'db'>,
  accountId: string,
  videoId: string,
): Promise<Chapters & { unseen: number; durationS: number }> {
  const video = await findVideo(db, accountId, videoId)
  if (!video) throw videoNotFound()
  const { language, chapters: all } = await findChapters(db, videoId)
  const chapters = toPlayedChapters(all, video)
  return { language, chapters, unseen: all.length - chapters.length, durationS: video.durationS }
}

/**
 * Replaces the chapters of a video, in any order, with the times of the video as it plays, and those that a trim cut off; an empty list
 * removes them. They may come before the upload.
 * @returns what is stored: in the order of the video, times in whole milliseconds, each run of white space in a title one space
 * @throws Failure `not-found` when the account has no such video; `invalid`, naming the chapter that is wrong
 */
export async function setChapters(
  { write, wallNowS }: Pick<CatalogueDeps, 'write' | 'wallNowS'>,
  { accountId, by, videoId }: { accountId: string; by: Actor; videoId: string },
  wanted: { language?: string; chapters: readonly Chapter[] },
): Promise<Chapters> {
  const language = wanted.language === undefined ? null : parseLanguage(wanted.language)
  const chapters = parseChapters(wanted.chapters)
  const asPlayed = { language: chapters.length === 0 ? null : language, chapters }
  const atS = wallNowS()
  await write(async (tx) => {
    const video = await findVideo(tx, accountId, videoId)
    if (!video) throw videoNotFound()
    assertWithin(chapters, video.durationS)
    const startMs = timelineStartMs(video)
    const onTimeline = chapters.map(({ startS, title }) => ({ startS: (Math.round(startS * 1000) + startMs) / 1000, title }))
    await saveChapters(tx, videoId, { ...asPlayed, chapters: onTimeline })
    const details = { chapterCount: chapters.length }
    await recordAuditEvent(tx, { atS, accountId, by, kind: 'chapters:changed', subjects: [videoId], details })
    await addVideoEvents(tx, 'video:chapters', [videoId], details)
  })
  return asPlayed
}

/** @throws Failure `invalid` */
function parseChapters(wanted: readonly Chapter[]): Chapter[] {
  if (wanted.length > MAX_CHAPTERS)
    throw new Failure('invalid', `A video has at most ${MAX_CHAPTERS} chapters, but got ${wanted.length}.`)
  const chapters = wanted.map(parseChapter).toSorted((one, other) => one.startS - other.startS)
  const repeated = chapters.find(({ startS }, index) => startS === chapters[index - 1]?.startS)
  if (repeated) throw new Failure('invalid', `Two chapters begin at ${formatTime(repeated.startS)}. Give each its own time.`)
  return chapters
}

function parseChapter({ startS, title: text }: Chapter, index: number): Chapter {
  const title = text.replace(/[\s\p{Cc}]+/gu, ' ').trim()
  if (startS < 0) throw new Failure('invalid', `Chapter ${index + 1} begins at ${startS} seconds. The first second is 0.`)
  if (title === '' || [...title].length > MAX_CHAPTER_TITLE_CHARACTERS || !title.isWellFormed())
    throw new Failure(
      'invalid',
      `The title of chapter ${index + 1} must have 1 to ${MAX_CHAPTER_TITLE_CHARACTERS} characters, without unpaired surrogates.`,
    )
  return { startS: Math.round(startS * 1000) / 1000, title }
}

/** @param durationS 0: not known yet @throws Failure `invalid` */
function assertWithin(chapters: readonly Chapter[], durationS: number): void {
  const last = chapters.at(-1)
  if (!last || durationS === 0 || last.startS < durationS) return
  throw new Failure(
    'invalid',
    `The chapter "${last.title}" begins at ${formatTime(last.startS)}, but the video ends at ${formatTime(durationS)}.`,
  )
}

/** Such as 12:30, 1:02:03 or 0:07.5 */
function formatTime(totalS: number): string {
  const [hours, minutes] = [Math.floor(totalS / 3600), Math.floor(totalS / 60) % 60]
  const [seconds = '', ...fraction] = String(Number((totalS % 60).toFixed(3))).split('.')
  const two = (value: number | string) => String(value).padStart(2, '0')
  return [...(hours > 0 ? [hours, two(minutes)] : [minutes]), [two(seconds), ...fraction].join('.')].join(':')
}

/** Chapters as WebVTT, for players that read them as a text track. @param durationS 0: not known yet */
export function toChaptersWebVtt(chapters: readonly Chapter[], durationS: number): string {
  const cues = chapters.map(({ startS, title }, index): Cue => {
    const endS = chapters[index + 1]?.startS ?? Math.max(durationS, startS + 1)
    return { startMs: Math.round(startS * 1000), endMs: Math.round(endS * 1000), settings: [], text: escapeText(title) }
  })
  return writeWebVtt(cues)
}
