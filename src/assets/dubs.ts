import { type Actor, recordAuditEvent } from '../audit/audit-log.ts'
import { findAudioSettings, saveAudioSettings } from '../catalogue/audio-settings-store.ts'
import type { VideoFolders } from '../catalogue/deletion.ts'
import { type Dub, dubIdOf, insertDub, listDubs } from '../catalogue/dub-store.ts'
import { takeNumber } from '../catalogue/replacement-store.ts'
import { listGenerations } from '../catalogue/video-history-store.ts'
import { findVideo } from '../catalogue/video-store.ts'
import type { Db } from '../db/database.ts'
import { isCommitOutcomeUnknown } from '../db/write.ts'
import { withoutTrack } from '../encode/dub.ts'
import { removeRendition } from '../encode/dub-rendition-store.ts'
import { findGeneration, findLaterGeneration, removeDubFile } from '../encode/generation-store.ts'
import { audioTracksOf, findAudioTrack, MAX_AUDIO_TRACKS, type Plan } from '../encode/plan.ts'
import { Failure, videoNotFound } from '../errors.ts'
import {
  assertRoom,
  assertSize,
  discardSource,
  displayName,
  insertReceivedSource,
  receiveSource,
  type SourceDeps,
} from '../ingest/source.ts'

export type DubDeps = SourceDeps & { folders: VideoFolders }

/** What is to be added, as far as its sender says so: see `addDub`. */
type NewDub = {
  accountId: string
  by: Actor
  videoId: string
  /** BCP 47, in lower case. */
  language: string
  name?: string | undefined
  isDefault: boolean
  /** Where on the video's file it begins, in seconds; default: where what plays of it begins. */
  startS?: number
  fileName: string
  /** Ends once all of it has arrived; throws when the rest will not come. */
  file: AsyncIterable<Buffer>
  declaredBytes: number
}

/**
 * Adds an audio track to a video, from a file of its own; it is encoded in the background, and plays once it is complete. Durable when it
 * resolves.
 * @throws Failure `not-found`; `conflict` for a video that is not ready, or has as many tracks as it may have; `too-large`; `over-quota`;
 *   `unavailable` without room. Nothing is left on disk then
 */
export async function addDub(deps: DubDeps, { accountId, by, videoId, file, ...dub }: NewDub): Promise<void> {
  await findRoomForTrack(deps.db, accountId, videoId)
  assertSize(dub.declaredBytes, deps.uploadMaxBytes)
  await assertRoom(deps, dub.declaredBytes)
  using reservation = deps.quota.receive({ accountId, videoId, replaces: 1 }) // until the file has a row
  await reservation.reserve(dub.declaredBytes)
  const source = await receiveSource(deps, videoId, file, reservation)
  const atS = deps.wallNowS()
  await deps
    .write(async (tx) => {
      const { sourceNumber: ofSource, startS: playedFromS } = await findRoomForTrack(tx, accountId, videoId)
      const { startS = playedFromS } = dub
      const sourceNumber = await takeNumber(tx, videoId)
      const fileName = displayName(dub.fileName)
      await insertReceivedSource(deps, tx, videoId, source, { number: sourceNumber, fileName, receivedAtS: atS })
      const { language, name } = dub
      const named = { language, name: name ?? null, isDefault: Number(dub.isDefault) }
      await insertDub(tx, { videoId, sourceNumber, accountId, ofSource, startS, ...named, requestedAtS: atS })
      const details = { trackId: dubIdOf({ sourceNumber }), language }
      await recordAuditEvent(tx, { atS, accountId, by, kind: 'audio-track:added', subjects: [videoId], details })
    })
    .catch(async (error) => {
      if (!isCommitOutcomeUnknown(error)) await discardSource(deps, source)
      throw error
    })
  void deps.signals.send('work-queued', 'dub')
}

/** The file that a track is added to, and where what plays of it begins. @throws Failure as `addDub` */
async function findRoomForTrack(db: Db, accountId: string, videoId: string): Promise<{ sourceNumber: number; startS: number }> {
  const video = await findVideo(db, accountId, videoId)
  if (!video) throw videoNotFound()
  const played = await findGeneration(db, { videoId, generation: video.generation })
  if (video.status !== 'ready' || !played)
    throw new Failure('conflict', `This video is ${video.status}: audio tracks are added to one that is ready.`)
  const { sourceNumber, plan } = played
  const waiting = (await listDubs(db, { videoId, ofSource: sourceNumber })).filter((dub) => !isPlayed(plan, dub))
  if (audioTracksOf(plan).length + waiting.length >= MAX_AUDIO_TRACKS)
    throw new Failure(
      'conflict',
      `A video has at most ${MAX_AUDIO_TRACKS} audio tracks. Remove one that was added, or has failed.`,
    )
  return { sourceNumber, startS: plan.cut?.startS ?? 0 }
}

/** Whether an added track is among those that viewers can choose. */
export function isPlayed(plan: Plan, dub: Pick<Dub, 'sourceNumber'>): boolean {
  return findAudioTrack(plan, dubIdOf(dub)) !== undefined
}

/**
 * Removes an audio track that was added as a file of its own, with that file; also from what is kept of the video. Durable when it resolves.
 * @throws Failure `not-found`; `conflict` for a track of the video's own file, or while the video is being made again
 */
export async function removeDub(
  deps: DubDeps,
  { accountId, by, videoId, trackId }: { accountId: string; by: Actor; videoId: string; trackId: number },
): Promise<void> {
  const atS = deps.wallNowS()
  const { sources, generations } = await deps.write.makingRoom(async (tx) => {
    const video = await findVideo(tx, accountId, videoId)
    if (!video) throw videoNotFound()
    const { generation, sourceNumber: ofSource } = video
    const dub = (await listDubs(tx, { videoId, ofSource })).find((each) => dubIdOf(each) === trackId)
    const played = await findGeneration(tx, { videoId, generation })
    if (!dub) throw played && findAudioTrack(played.plan, trackId) ? inVideoFile() : audioTrackNotFound()
    if ((await findLaterGeneration(tx, { videoId, generation })) !== undefined)
      throw new Failure('conflict', 'This video is being made again. Try again when that is finished.')
    const generations = await removeFromGenerations(tx, videoId, trackId)
    const key = { videoId, sourceNumber: ofSource }
    const settings = await findAudioSettings(tx, key)
    await saveAudioSettings(
      tx,
      key,
      settings.filter(({ id }) => id !== trackId),
    )
    const details = { trackId, language: dub.language }
    await recordAuditEvent(tx, { atS, accountId, by, kind: 'audio-track:removed', subjects: [videoId], details })
    return { sources: await removeDubFile(tx, dub), generations }
  })
  await deps.signals.send('work-cancelled', { videoIds: [videoId], work: 'dub' })
  await deps.signals.send('audio-changed', { videoId })
  void deps.signals.send('keys-destroyed', undefined)
  for (const file of sources) await deps.folders.sources.retire(file)
  for (const generation of generations) await deps.folders.segments.retireAll(`${videoId}/${generation}/${trackId}`)
  void deps.signals.send('work-queued', 'dub') // another one of the video, whose work was stopped with it
}

/** From the one that plays, and those that are kept. @returns their numbers */
async function removeFromGenerations(tx: Db, videoId: string, trackId: number): Promise<number[]> {
  const removed: number[] = []
  for (const { number: generation } of await listGenerations(tx, videoId)) {
    const row = await findGeneration(tx, { videoId, generation })
    if (!row || !findAudioTrack(row.plan, trackId)) continue
    await removeRendition(tx, row, { id: trackId, plan: withoutTrack(row.plan, trackId) })
    removed.push(generation)
  }
  return removed
}

function inVideoFile(): Failure {
  return new Failure('conflict', 'This audio track is in the video’s own file: only tracks that were added can be removed.')
}

export function audioTrackNotFound(): Failure {
  return new Failure('not-found', 'The video has no audio track with this id.')
}
