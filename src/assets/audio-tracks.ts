import { type Actor, recordAuditEvent } from '../audit/audit-log.ts'
import { type AudioSettings, findAudioSettings, saveAudioSettings } from '../catalogue/audio-settings-store.ts'
import type { CatalogueDeps } from '../catalogue/catalogue-deps.ts'
import { findVideo } from '../catalogue/video-store.ts'
import type { Db } from '../db/database.ts'
import { findGeneration } from '../encode/generation-store.ts'
import { cleanTrackName, MAX_TRACK_NAME_CHARACTERS } from '../encode/track-names.ts'
import { Failure, videoNotFound } from '../errors.ts'
import { parseLanguage } from './caption.ts'
import { type ShownAudioTrack, showAudioTracks } from './shown-audio.ts'

/** The audio tracks of a video as viewers choose them; none before it was examined. @throws Failure `not-found` when the account has no such video */
export async function listAudioTracks(
  { db }: Pick<CatalogueDeps, 'db'>,
  accountId: string,
  videoId: string,
): Promise<ShownAudioTrack[]> {
  const { plan, settings } = await loadTracks(db, accountId, videoId)
  return plan ? showAudioTracks(plan, settings) : []
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
): Promise<ShownAudioTrack[]> {
  const wanted = parseChange(change)
  const atS = wallNowS()
  return write(async (tx) => {
    const { plan, settings, sourceNumber } = await loadTracks(tx, accountId, videoId)
    if (!plan || !showAudioTracks(plan).some(({ id }) => id === trackId))
      throw new Failure('not-found', 'The video has no audio track with this id.')
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
    return showAudioTracks(plan, changed)
  })
}

function parseChange({ name, language, isDefault }: AudioChange): Omit<AudioSettings, 'id'> {
  if (name !== undefined && [...name].length > MAX_TRACK_NAME_CHARACTERS)
    throw new Failure('invalid', `The name of an audio track has at most ${MAX_TRACK_NAME_CHARACTERS} characters.`)
  return {
    ...(name !== undefined && { name: cleanTrackName(name) }),
    ...(language !== undefined && { language: language.trim() === '' ? '' : parseLanguage(language) }),
    ...(isDefault && { isDefault }),
  }
}

function withoutEmpty({ name, language, ...rest }: AudioSettings): AudioSettings {
  return { ...rest, ...(name ? { name } : {}), ...(language ? { language } : {}) }
}

async function loadTracks(db: Db, accountId: string, videoId: string) {
  const video = await findVideo(db, accountId, videoId)
  if (!video) throw videoNotFound()
  const generation = await findGeneration(db, { videoId, generation: video.generation })
  const sourceNumber = generation?.sourceNumber ?? 1
  return { plan: generation?.plan, sourceNumber, settings: await findAudioSettings(db, { videoId, sourceNumber }) }
}
