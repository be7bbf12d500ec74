import { findAudioSettings, saveAudioSettings } from '../catalogue/audio-settings-store.ts'
import {
  beginDubAttempt,
  type Dub,
  dubIdOf,
  findDub,
  findWaitingDub,
  listAccountsWithWaitingDubs,
  updateDub,
} from '../catalogue/dub-store.ts'
import type { Db } from '../db/database.ts'
import { isCommitOutcomeUnknown } from '../db/write.ts'
import type { Claim } from '../jobs/claims.ts'
import { type CountedWorkDeps, startCountedWork } from '../jobs/counted-work.ts'
import type { Dispatcher } from '../jobs/dispatcher.ts'
import { createSavedProgress } from '../jobs/saved-progress.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import type { SealedSource } from '../sandbox/media-run.ts'
import { addVideoEvents } from '../webhooks/outbox.ts'
import { encodeAudioTrack } from './audio-chunk.ts'
import { MIN_LEAD_S } from './chunk.ts'
import { type Chunk, planAudioChunks } from './chunk-plan.ts'
import { insertChunks, listChunks } from './chunk-store.ts'
import { fitDub, lengthDifferenceS } from './dub.ts'
import { insertCompleteRendition } from './dub-rendition-store.ts'
import { findGenerationWithKey, findSealedSource, type VideoDeps } from './encode-deps.ts'
import { isSourceIntact } from './fail-video.ts'
import { findGeneration, findLaterGeneration, findPlayedGeneration, isFinished, type NewSegment } from './generation-store.ts'
import { planVideo } from './grid.ts'
import { measuredAs, measureGain } from './loudness.ts'
import { InexactSeek, MediaFailure } from './media-failure.ts'
import { type AudioTrackPlan, audioSegmentCount, audioTracksOf, type DubFile, type Plan, withAudioTracks } from './plan.ts'
import { probeSource } from './probe.ts'
import { createSegmentWriter, type GenerationWithKey } from './publication.ts'

type DubSchedulerDeps = VideoDeps & CountedWorkDeps & { sandbox: Sandbox }

/** Encodes audio tracks that were added as files of their own, one at a time, next to videos. */
export function startDubScheduler(deps: DubSchedulerDeps): Dispatcher {
  return startCountedWork<Dub>(deps, {
    kind: 'dub',
    name: 'audio track',
    problems: PROBLEMS,
    listAccounts: listAccountsWithWaitingDubs,
    find: findWaitingDub,
    begin: beginDubAttempt,
    refund: (tx, dub) => updateDub(tx, dub, { attempts: dub.attempts }),
    fail: failDub,
    run: (dub, claim, signal) => encodeDub(deps, dub, claim, signal),
  })
}

const PROBLEMS = {
  failed: 'This audio track could not be encoded on this server. Its log says why.',
  crashed: 'This audio track could not be encoded: the server crashed during 3 attempts.',
}
const NO_SOUND = 'This file has no sound that can be decoded. Convert it to AAC, MP3 or WAV, and add it again.'
const CHANGED_ON_DISK = 'The file of this audio track was changed on this server’s disk. Check the disk, and add it again.'

async function failDub(tx: Db, dub: Dub, problem: string): Promise<void> {
  await updateDub(tx, dub, { problem })
  await addVideoEvents(tx, 'video:audio', [dub.videoId], { audioId: dubIdOf(dub), language: dub.language, state: 'failed' })
}

/** Nothing of the video changes before the last transaction, which adds the whole track. */
async function encodeDub(deps: DubSchedulerDeps, dub: Dub, claim: Claim, signal: AbortSignal): Promise<void> {
  const { videoId, sourceNumber } = dub
  const { generation = 0 } = (await findPlayedGeneration(deps.db, videoId)) ?? {}
  const video = await findGenerationWithKey(deps, { videoId, generation })
  const source = await findSealedSource(deps, videoId, sourceNumber)
  if (!video || !source) return // deleted meanwhile
  const segments: NewSegment[] = []
  try {
    const track = await planTrack(deps.sandbox, source, dub, video.plan, signal)
    const gainDb = await measure(deps.sandbox, source, video.plan, track, signal)
    const differenceS = lengthDifferenceS(track.dub, video.plan)
    const stored = await listChunks(deps.db, { videoId, generation, kind: 'audio' })
    const chunks = stored.length > 0 ? stored : planAudioChunks(withAudioTracks(video.plan, [track]))
    const saveProgress = createSavedProgress(deps.log, 'audio track', (progress) =>
      deps.write((tx) => updateDub(tx, dub, { progress })),
    )
    const onSegment = (number: number) => saveProgress((number + 1) / audioSegmentCount(track))
    let truncatedAtS: number | undefined
    for (const chunk of chunks) {
      const end = await encodeChunk(deps, { video, source, track, gainDb, chunk, onSegment, signal }, segments)
      truncatedAtS ??= end.truncatedAtS
    }
    if (!(await isSourceIntact(deps, { videoId, sourceNumber }, signal)))
      throw new MediaFailure('Encoding error', CHANGED_ON_DISK)
    const readS = truncatedAtS === undefined ? differenceS : Math.min(differenceS, truncatedAtS - video.plan.durationS)
    const isPublished = await claim.settle((tx) =>
      publish(tx, dub, { video, track, gainDb, segments, differenceS: readS, missingChunks: stored.length > 0 ? [] : chunks }),
    )
    if (!isPublished) return await removeSegments(deps, segments)
  } catch (error) {
    // Blobs whose rows may have been committed must stay; the sweep removes them if there are none.
    if (!isCommitOutcomeUnknown(error)) await removeSegments(deps, segments)
    if (!(error instanceof MediaFailure)) throw error
    deps.log.info({ videoId, sourceNumber, reason: error.message }, 'audio track: failed')
    return void (await claim.settle((tx) => failDub(tx, dub, error.message)))
  }
  void deps.signals.send('audio-changed', { videoId })
  deps.log.info({ videoId, generation, renditionId: dubIdOf(dub) }, 'audio track: ready')
}

type DubTrack = AudioTrackPlan & { dub: DubFile }

/** @throws MediaFailure when the file has no sound */
async function planTrack(sandbox: Sandbox, source: SealedSource, dub: Dub, plan: Plan, signal: AbortSignal): Promise<DubTrack> {
  const file = planVideo(await probeSource(sandbox, source, signal).catch(toNoSound))
  const { durationS, startS, isSeekable, isPiped, hasLateAudio, videoTrack, audioTrack } = file
  const read = { ...(startS !== undefined && { startS }), ...(isPiped && { isPiped }), ...(hasLateAudio && { hasLateAudio }) }
  const own = {
    sourceNumber: dub.sourceNumber,
    startS: dub.startS,
    plan: { ...read, durationS, isSeekable, videoTrack, audioTrack },
  }
  const named = { renditionId: dubIdOf(dub), language: dub.language, ...(dub.name !== null && { name: dub.name }) }
  const track = fitDub(own, named, plan)
  if (!track) throw new MediaFailure('Encoding error', NO_SOUND)
  return { ...track, dub: own }
}

function toNoSound(error: unknown): never {
  throw error instanceof MediaFailure ? new MediaFailure('Encoding error', NO_SOUND, { cause: error }) : error
}

async function measure(sandbox: Sandbox, source: SealedSource, plan: Plan, track: DubTrack, signal: AbortSignal) {
  if (!plan.normalizesLoudness) return undefined
  return measureGain(sandbox, source, { ...measuredAs(plan, track), signal })
}

type DubChunk = {
  video: GenerationWithKey
  source: SealedSource
  track: DubTrack
  gainDb: number | undefined
  chunk: Chunk
  onSegment(number: number): void
  signal: AbortSignal
}

/** As the chunk will be encoded again if one of its segments is damaged; from the file's start where no seek is exact. */
async function encodeChunk(
  deps: DubSchedulerDeps,
  { video, source, track, gainDb, chunk, onSegment, signal }: DubChunk,
  segments: NewSegment[],
): Promise<{ truncatedAtS?: number }> {
  const store = createSegmentWriter({ segments: deps.folders.segments }, video, 'audio')
  const request = { sandbox: deps.sandbox, source, plan: video.plan, gainDb, signal }
  for (const attempt of [
    { ...chunk, leadS: MIN_LEAD_S },
    { ...chunk, decodesFromStart: true },
  ]) {
    const encoded: { init: Buffer; number: number; bytes: Buffer }[] = []
    let init = Buffer.alloc(0)
    const sink = {
      onInit: (_: number, bytes: Buffer) => {
        init = Buffer.from(bytes)
      },
      onSegment: (_: number, number: number, bytes: Buffer) => {
        encoded.push({ init, number, bytes })
        onSegment(number)
      },
    }
    try {
      const end = await encodeAudioTrack({ ...request, chunk: attempt }, track, sink)
      for (const { init, number, bytes } of encoded) segments.push({ init, ...(await store(track.renditionId, number, bytes)) })
      return end
    } catch (error) {
      if (!(error instanceof InexactSeek)) throw error
    }
  }
  throw new Error('a run that began at the start of its file ended as if after a seek')
}

type Encoded = Pick<DubChunk, 'video' | 'track' | 'gainDb'> & {
  segments: readonly NewSegment[]
  differenceS: number
  /** Of a video that was silent until now. */
  missingChunks: readonly Chunk[]
}

/** False: what the video plays is not as it was, or the track is removed. It waits, and is encoded for what plays next. */
async function publish(
  tx: Db,
  dub: Dub,
  { video, track, gainDb, segments, differenceS, missingChunks }: Encoded,
): Promise<boolean> {
  const { videoId, generation } = video
  const played = await findPlayedGeneration(tx, videoId)
  const current = await findGeneration(tx, { videoId, generation })
  const isWanted = (await findDub(tx, dub)) !== undefined
  const isSame = played?.generation === generation && (await isFinished(tx, video))
  if (!current || !isWanted || !isSame || (await findLaterGeneration(tx, video)) !== undefined) {
    await updateDub(tx, dub, { attempts: dub.attempts })
    return false
  }
  const id = track.renditionId
  const plan = withAudioTracks(current.plan, [...audioTracksOf(current.plan), track])
  await insertCompleteRendition(tx, video, { id, gainDb: gainDb ?? null, segments, plan })
  await insertChunks(tx, { videoId, generation, state: 'done' }, missingChunks)
  await updateDub(tx, dub, { encoded: 1, differenceS, isDefault: 0 })
  if (dub.isDefault === 1) await makeDefault(tx, video, id)
  await addVideoEvents(tx, 'video:audio', [videoId], { audioId: id, language: dub.language, state: 'ready' })
  return true
}

async function makeDefault(tx: Db, video: GenerationWithKey, id: number): Promise<void> {
  const settings = await findAudioSettings(tx, video)
  const others = settings.map(({ isDefault: _, ...other }) => other).filter((track) => Object.keys(track).length > 1)
  await saveAudioSettings(tx, video, [...others, { id, isDefault: true }])
}

async function removeSegments({ folders }: DubSchedulerDeps, segments: readonly NewSegment[]): Promise<void> {
  for (const { file } of segments) await folders.segments.remove(file)
}
