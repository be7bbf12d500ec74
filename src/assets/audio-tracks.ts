import { type Actor, recordAuditEvent } from '../audit/audit-log.ts'
import { type AudioSettings, findAudioSettings, saveAudioSettings } from '../catalogue/audio-settings-store.ts'
import type { CatalogueDeps } from '../catalogue/catalogue-deps.ts'
import { type Dub, dubIdOf, listDubs } from '../catalogue/dub-store.ts'
import { findRenditionFiles } from '../catalogue/file-store.ts'
import type { GenerationKey } from '../catalogue/generation-key.ts'
import { findVideo } from '../catalogue/video-store.ts'
import type { Db } from '../db/database.ts'
import { findGeneration } from '../encode/generation-store.ts'
import { findAudioTrack, type Plan } from '../encode/plan.ts'
import { cleanTrackName, MAX_TRACK_NAME_CHARACTERS } from '../encode/track-names.ts'
import { Failure, videoNotFound } from '../errors.ts'
import { isClaimed } from '../jobs/claim-store.ts'
import { parseLanguage } from './caption.ts'
import { audioTrackNotFound, isPlayed } from './dubs.ts'
import { languageLabel } from './language-label.ts'
import { type ShownAudioTrack, showAudioTracks } from './shown-audio.ts'

/** The audio tracks of a video as viewers choose them; none before it was examined. @throws Failure `not-found` when the account has no such video */
export async function listAudioTracks(
  { db }: Pick<CatalogueDeps, 'db'>,
  accountId: string,
  videoId: string,
): Promise<ListedAudioTrack[]> {
  return listTracks(db, await loadTracks(db, accountId, videoId))
}

/** An audio track as its owner sees it: also one that was added and cannot be played, or not yet. */
export type ListedAudioTrack = ShownAudioTrack & {
  state: 'waiting' | 'encoding' | 'ready' | 'failed'
  /** Whether it was added as a file of its own, and can be removed. */
  isAdded: boolean
  /** Of an added one: where on the video's file it begins, in seconds. */
  startS?: number
  /** Of an added one that is ready: the id of its file among those of the video. */
  fileId?: number
  /** Of one that is being encoded: how much of it is, from 0 to 1. */
  progress?: number
  /** Of an added one that is ready: by how many seconds its file is longer than the video; negative: shorter. */
  differenceS?: number
  problem?: string
}

async function listTracks(db: Db, { plan, settings, dubs, ...generation }: Tracks): Promise<ListedAudioTrack[]> {
  if (!plan) return []
  const added = new Map(dubs.map((dub) => [dubIdOf(dub), dub]))
  const files = added.size > 0 ? await findRenditionFiles(db, generation) : new Map<number, number>()
  const played = showAudioTracks(plan, settings).map((track): ListedAudioTrack => {
    const dub = added.get(track.id)
    const differenceS = dub?.differenceS ?? undefined
    const own = dub && { startS: dub.startS, fileId: files.get(track.id) }
    return { ...track, state: 'ready', isAdded: dub !== undefined, ...own, ...(differenceS !== undefined && { differenceS }) }
  })
  const waiting = dubs.filter((dub) => !isPlayed(plan, dub))
  const isEncoding = waiting.length > 0 && (await isClaimed(db, { kind: 'dub', subject: waiting[0]?.videoId ?? '' }))
  return [...played, ...waiting.map((dub) => showWaiting(dub, isEncoding))]
}

function showWaiting(dub: Dub, isVideoEncoding: boolean): ListedAudioTrack {
  const { language, name, problem, attempts, progress } = dub
  const shown = { id: dubIdOf(dub), label: name ?? languageLabel(language), language, isDefault: false, isAdded: true }
  if (problem !== null) return { ...shown, state: 'failed', problem }
  return isVideoEncoding && attempts > 0 ? { ...shown, state: 'encoding', progress } : { ...shown, state: 'waiting' }
}

/** An empty name or language: as the file has it. */
type AudioChange = { name?: string; language?: string; isDefault?: true }

/**
 * Renames an audio track, sets its language, or makes it the one that plays unless a viewer chooses another. Players that are open keep
 * what they have.
 * @returns all tracks
 * @throws Failure `not-found` when the account has no such video, or the video no such track; `invalid`
 */
export async function changeAudioTrack(
  { write, wallNowS }: Pick<CatalogueDeps, 'write' | 'wallNowS'>,
  { accountId, by, videoId, trackId }: { accountId: string; by: Actor; videoId: string; trackId: number },
  change: AudioChange,
): Promise<ListedAudioTrack[]> {
  const wanted = parseChange(change)
  const atS = wallNowS()
  return write(async (tx) => {
    const tracks = await loadTracks(tx, accountId, videoId)
    const { plan, settings, sourceNumber, dubs } = tracks
    if (!plan || !findAudioTrack(plan, trackId))
      throw dubs.some((dub) => dubIdOf(dub) === trackId) ? notReady() : audioTrackNotFound()
    const before = settings.find(({ id }) => id === trackId)
    const others = settings
      .filter(({ id }) => id !== trackId)
      .map(({ isDefault, ...other }) => (wanted.isDefault ? other : { ...other, ...(isDefault && { isDefault }) }))
    const changed = [...others, withoutEmpty({ ...before, ...wanted, id: trackId })].filter(
      (track) => Object.keys(track).length > 1,
    )
    await saveAudioSettings(tx, { videoId, sourceNumber }, changed)
    const details = { trackId, ...change }
    await recordAuditEvent(tx, { atS, accountId, by, kind: 'audio-track:changed', subjects: [videoId], details })
    return listTracks(tx, { ...tracks, settings: changed })
  })
}

/** What an owner calls a track. An empty name: none. @throws Failure `invalid` */
export function parseTrackNames({ name = '', language }: { name?: string; language: string }) {
  const clean = parseName(name)
  return { language: parseLanguage(language), ...(clean !== '' && { name: clean }) }
}

function parseName(name: string): string {
  if ([...name].length > MAX_TRACK_NAME_CHARACTERS)
    throw new Failure('invalid', `The name of an audio track has at most ${MAX_TRACK_NAME_CHARACTERS} characters.`)
  return cleanTrackName(name)
}

function parseChange({ name, language, isDefault }: AudioChange): Omit<AudioSettings, 'id'> {
  return {
    ...(name !== undefined && { name: parseName(name) }),
    ...(language !== undefined && { language: language.trim() === '' ? '' : parseLanguage(language) }),
    ...(isDefault && { isDefault }),
  }
}

function withoutEmpty({ name, language, ...rest }: AudioSettings): AudioSettings {
  return { ...rest, ...(name ? { name } : {}), ...(language ? { language } : {}) }
}

function notReady(): Failure {
  return new Failure('conflict', 'This audio track cannot be played yet. Try again when it is ready.')
}

type Tracks = GenerationKey & { plan: Plan | undefined; sourceNumber: number; settings: AudioSettings[]; dubs: Dub[] }

async function loadTracks(db: Db, accountId: string, videoId: string): Promise<Tracks> {
  const video = await findVideo(db, accountId, videoId)
  if (!video) throw videoNotFound()
  const generation = await findGeneration(db, { videoId, generation: video.generation })
  const sourceNumber = generation?.sourceNumber ?? 1
  const settings = await findAudioSettings(db, { videoId, sourceNumber })
  const dubs = await listDubs(db, { videoId, ofSource: sourceNumber })
  return { videoId, generation: video.generation, plan: generation?.plan, sourceNumber, settings, dubs }
}
