import { showAudioTracks } from '../assets/shown-audio.ts'
import { shiftWebVtt } from '../assets/webvtt.ts'
import { findAudioSettings } from '../catalogue/audio-settings-store.ts'
import { timelineStartMs } from '../catalogue/chapters-store.ts'
import type { SessionBudgets, Wait } from './keys/session-budgets.ts'
import { hasWindow } from './keys/window-set.ts'
import { estimateBytes } from './media/delivery.ts'
import { hasRendition, type PlayableVideo } from './media/playable-video.ts'
import {
  captionPlaylist,
  mediaPlaylist,
  multivariantPlaylist,
  parseCaptionName,
  windowCount,
  windowDurationS,
  windowLengthS,
} from './media/playlist.ts'
import type { PlaybackDeps } from './playback-deps.ts'
import { PlaybackRefusal } from './refusal.ts'
import { assertNotEndedMeanwhile, type LiveSession } from './sessions/live-session.ts'
import { acquireStreamSlot, releaseStreamSlot } from './sessions/stream-slot.ts'
import { countWatched, recordWindow } from './sessions/watched-seconds.ts'

// What an admitted session is given. Each call comes after `admit`.

/**
 * @param name `main`, a rendition's id, or the name of captions
 * @throws PlaybackRefusal `file-gone` for a rendition that the video does not have, or no longer
 */
export async function buildPlaylist(deps: PlaybackDeps, session: LiveSession, name: string): Promise<string> {
  const video = await getSessionVideo(deps, session)
  const { videoId, forcedBitrateKbps } = session.row
  if (name === 'main') {
    const audioTracks = showAudioTracks(video.plan, await findAudioSettings(deps.db, video))
    return multivariantPlaylist(video, forcedBitrateKbps, await deps.captions.find(videoId), audioTracks)
  }
  const captionId = parseCaptionName(name)
  if (captionId !== undefined) return captionPlaylist(video, captionId)
  if (!hasRendition(video, Number(name))) throw new PlaybackRefusal('file-gone')
  const addressOf = await deps.delivery.addressesOf(video, Number(name))
  const playlist = mediaPlaylist(video, { renditionId: Number(name), forcedBitrateKbps }, addressOf)
  if (!playlist) throw new PlaybackRefusal('bad-request')
  return playlist
}

/** What the main poster is called among a session's files. */
export const POSTER_NAME = 'poster'

/** What the storyboard is called among a session's files: WebVTT, which names its sheets. */
export const STORYBOARD_NAME = 'storyboard'
const STORYBOARD_SHEET = /^storyboard-(\d)$/

/** @param sheet counted from 0 */
export function storyboardSheetName(sheet: number): string {
  return `${STORYBOARD_NAME}-${sheet}`
}

/** The main poster as JPEG, captions or a storyboard as WebVTT, or one of its sheets as WebP. @throws PlaybackRefusal `file-gone` for those that were deleted since they were named */
export async function openSessionFile(deps: PlaybackDeps, session: LiveSession, name: string): Promise<string | Buffer> {
  const file = await openByName(deps, session, name)
  if (file === undefined) throw new PlaybackRefusal('file-gone')
  return file
}

async function openByName(deps: PlaybackDeps, session: LiveSession, name: string): Promise<string | Buffer | undefined> {
  const { row } = session
  if (name === POSTER_NAME) return deps.openMainPoster(row)
  if (name === STORYBOARD_NAME) return deps.storyboards.describe(row)
  const [, sheet] = STORYBOARD_SHEET.exec(name) ?? []
  return sheet === undefined ? openSessionCaption(deps, session, name) : deps.storyboards.open(row, Number(sheet))
}

/** With the times of what this session plays, which may be the video before a trim. */
async function openSessionCaption(deps: PlaybackDeps, session: LiveSession, name: string): Promise<string | undefined> {
  const webVtt = await deps.captions.open(session.row.videoId, parseCaptionName(name) ?? 0)
  return webVtt && shiftWebVtt(webVtt, timelineStartMs(await getSessionVideo(deps, session)))
}

/**
 * The 16 bytes of one key window, to a session that has its stream slot, at the pace of watching.
 * @throws PlaybackRefusal `stream-limit`, `key-pace`
 */
export async function releaseKey(deps: PlaybackDeps, session: LiveSession, window: number): Promise<Buffer> {
  const video = await getSessionVideo(deps, session)
  if (window >= windowCount(video)) throw new PlaybackRefusal('bad-request')
  const budgets = await deps.keyPacing.budgetsOf({ ...session, video })
  // Before the slot is taken: a `leave` that arrives meanwhile must not free it.
  if (!budgets.hasReleased(window)) session.newKeyAtS = deps.nowS()
  await acquireStreamSlot(deps, session)
  assertNotEndedMeanwhile(session)
  return answerKey(deps, session, { video, window, taken: takeKey(session, budgets, window) })
}

/** `wait`: the key may not be released yet. `isFirst`: the session has not had it before. */
type TakenKey = { wait?: Wait; isFirst: boolean }

/** Pays for a key, and notes that the session has it. */
export function takeKey(session: LiveSession, budgets: SessionBudgets, window: number): TakenKey {
  const wait = budgets.takeWindow(window)
  if (wait) return { wait, isFirst: false }
  const isFirst = !hasWindow(session.watched.windows, window)
  recordWindow(session.watched, window)
  return { isFirst }
}

/** @throws PlaybackRefusal `key-pace` */
export function answerKey(
  deps: PlaybackDeps,
  session: LiveSession,
  { video, window, taken: { wait, isFirst } }: { video: PlayableVideo; window: number; taken: TakenKey },
): Buffer {
  if (wait) {
    deps.suspicions.recordPaced(session.row, window, wait.waitMs)
    deps.sessionRefusals.count(session, 'key-pace')
    throw new PlaybackRefusal('key-pace', { ...wait, retryAfterS: Math.max(1, Math.ceil(wait.waitMs / 1000)) })
  }
  deps.suspicions.recordKey(session.row, window, windowDurationS(video, window))
  if (isFirst) void countSentElsewhere(deps, session, video, window)
  noteFirstKey(deps, session)
  return video.windowKey(window)
}

/** What another origin sends, this server counts by the key windows of each session: all of a window, once. */
async function countSentElsewhere(deps: PlaybackDeps, session: LiveSession, video: PlayableVideo, window: number): Promise<void> {
  try {
    const sizes = await deps.delivery.findSizesElsewhere(video)
    if (!sizes) return
    const { renditionId } = session
    const sentBytes = estimateBytes(video, sizes, { renditionId, partS: windowDurationS(video, window) })
    deps.recordSentBytes(video.videoId, session.address, sentBytes)
  } catch (error) {
    deps.log.warn({ err: error, videoId: video.videoId }, 'playback: counting sent bytes failed')
  }
}

/** From here on the viewer can see the picture. */
function noteFirstKey(deps: PlaybackDeps, session: LiveSession): void {
  if (session.row.viewedAtS !== null) return
  session.row = { ...session.row, viewedAtS: deps.nowS() }
  deps.recordView(session.row)
}

/**
 * @param leftAtS where it played before a seek, the first one since the beat before
 * @param rendition the id of the video rendition that it shows
 */
export type Beat = {
  state: 'playing' | 'stalled' | 'paused' | 'ended'
  positionS: number
  rate: number
  leftAtS?: number
  rendition?: number
}

/**
 * The player says that it is there, and where in the video; a page that had said goodbye is back. While it plays it needs its stream
 * slot; paused, it gives it up by renewing it no more.
 * @throws PlaybackRefusal `stream-limit`
 */
export async function recordBeat(deps: PlaybackDeps, session: LiveSession, beat: Beat): Promise<void> {
  noteBeat(session, beat)
  if (session.isPlaying) await acquireStreamSlot(deps, session)
  const video = await findSessionVideo(deps, session)
  await recordPlayed(deps, session, video, countPlayed(session, video, beat, deps.preciseNowS()))
  if (!session.isPlaying) return
  if (!video) throw new PlaybackRefusal('video-gone')
  const budgets = await deps.keyPacing.budgetsOf({ ...session, video })
  budgets.recordPlaying()
}

export function noteBeat(session: LiveSession, { state, positionS, rendition }: Beat): void {
  session.positionS = positionS
  session.isPlaying = state === 'playing' || state === 'stalled'
  session.leftAtS = null
  session.renditionId = rendition ?? session.renditionId
}

/** The beat after a seek reports two places: where the video was left, as if it had paused there, and where it plays now. */
export function splitAtSeek(beat: Beat): Beat[] {
  const { leftAtS } = beat
  return leftAtS === undefined ? [beat] : [{ ...beat, state: 'paused', positionS: leftAtS }, beat]
}

/** A part of a beat with the seconds that it shows to be watched, when the OTP names its viewer. */
type PlayedPart = { part: Beat; spans: ReturnType<typeof countWatched> }

export function countPlayed(
  { row, watched }: LiveSession,
  video: PlayableVideo | undefined,
  beat: Beat,
  atS: number,
): PlayedPart[] {
  const isCounted = row.userId !== null && video !== undefined
  return splitAtSeek(beat).map((part) => ({
    part,
    spans: isCounted ? countWatched(watched, { ...part, atS }, windowLengthS(video)) : [],
  }))
}

export async function recordPlayed(
  { suspicions, viewings }: PlaybackDeps,
  { row }: LiveSession,
  video: PlayableVideo | undefined,
  parts: readonly PlayedPart[],
): Promise<void> {
  const { accountId, userId, videoId } = row
  for (const { part, spans } of parts) {
    const { positionS } = part
    suspicions.recordBeat(row, { isPlaying: part.state === 'playing', positionS })
    if (spans.length === 0 || userId === null || !video) continue
    const { timelineStartS, plan } = video
    await viewings.add({ accountId, userId, videoId }, { spans, positionS, durationS: plan.durationS, timelineStartS })
  }
}

/** What the player measured on its page until now. `played`: for how long each video rendition was on the screen. */
export type BeatQuality = {
  measuredMs: number
  startMs?: number
  waits: number
  waitedMs: number
  played: readonly (readonly [renditionId: number, playedMs: number])[]
  frames: number
  droppedFrames: number
  error?: string
  network?: string
}

/** A beat with what its page has measured so far. */
export type MeasuredBeat = Beat & { quality?: BeatQuality }

/** Keeps what the player measured: only for the owner's statistics, since a page may claim anything. */
export async function recordQuality(
  deps: PlaybackDeps,
  { row, pages, address }: LiveSession,
  quality: BeatQuality,
  userAgent: string,
): Promise<void> {
  const { id: sessionId, accountId, videoId, generation } = row
  const renditions = (await deps.videos.get(videoId, generation))?.plan.videoTrack?.renditions ?? []
  const { played, measuredMs, waitedMs, startMs, error } = quality
  const rungs = played.flatMap(([renditionId, playedMs]) => {
    const rendition = renditions.find(({ id }) => id === renditionId)
    return rendition ? [{ heightPx: rendition.heightPx, playedMs }] : []
  })
  const view = { sessionId, pageId: pages.at(-1) ?? '', accountId, videoId, userAgent, address }
  await deps.viewQualities.record(view, {
    ...{ measuredMs, waitedMs, rungs, startMs: startMs ?? null, error: error ?? null, network: quality.network ?? '' },
    ...{ waitCount: quality.waits, frameCount: quality.frames, droppedFrameCount: quality.droppedFrames },
  })
}

/** The page was closed: its stream slot gets free. The session ends ten minutes later, unless a page of it comes back. */
export async function recordLeave(deps: PlaybackDeps, session: LiveSession): Promise<void> {
  session.leftAtS = deps.nowS()
  await releaseStreamSlot(deps, session)
}

export async function findSessionVideo(deps: PlaybackDeps, { row }: LiveSession): Promise<PlayableVideo | undefined> {
  return deps.videos.get(row.videoId, row.generation)
}

async function getSessionVideo(deps: PlaybackDeps, session: LiveSession): Promise<PlayableVideo> {
  const video = await findSessionVideo(deps, session)
  if (!video) throw new PlaybackRefusal('video-gone')
  return video
}
