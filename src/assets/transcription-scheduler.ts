import { randomBytes } from 'node:crypto'
import type { VideoFolders } from '../catalogue/deletion.ts'
import { wrapFileKey } from '../catalogue/file-key.ts'
import {
  beginTranscription,
  disableAutomatic,
  findUntranscribed,
  hasReviewedCaptions,
  listAccountsToTranscribe,
  refundTranscription,
  type Untranscribed,
  updateUntranscribed,
} from '../catalogue/transcription-store.ts'
import type { MasterKey } from '../crypto/master-key.ts'
import { sealBlob } from '../crypto/sealed-blob.ts'
import { newToken } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import { isCommitOutcomeUnknown, type Write } from '../db/write.ts'
import { findSealedSource } from '../encode/encode-deps.ts'
import { findGeneration, findPlayedGeneration, findTimelineStart } from '../encode/generation-store.ts'
import { Failure } from '../errors.ts'
import type { Claim } from '../jobs/claims.ts'
import { type CountedWorkDeps, startCountedWork } from '../jobs/counted-work.ts'
import type { Dispatcher } from '../jobs/dispatcher.ts'
import { createSavedProgress } from '../jobs/saved-progress.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import { addVideoEvents } from '../webhooks/outbox.ts'
import { findSpoken, type Transcriber, transcribe } from './transcribe.ts'

type TranscriptionDeps = CountedWorkDeps & {
  write: Write
  masterKey: MasterKey
  folders: VideoFolders
  sandbox: Sandbox
  transcriber: Transcriber
}

/** Makes captions of speech, one video at a time: the program takes as many cores as it likes. Accounts take turns. */
export function startTranscriptionScheduler(deps: TranscriptionDeps): Dispatcher {
  return startCountedWork<Untranscribed>(deps, {
    ...{ kind: 'transcription', name: 'transcription', problems: PROBLEMS },
    ...{ listAccounts: listAccountsToTranscribe, find: findUntranscribed },
    ...{ begin: beginTranscription, refund: refundTranscription, fail: failTranscription },
    run: (work, claim, signal) => run(deps, work, claim, signal),
  })
}

const PROBLEMS = {
  failed: 'The transcription failed 3 times. The log of this server says why; then request it again.',
  crashed: 'The server crashed during 3 attempts to transcribe. Request it again when the cause is fixed.',
}

async function failTranscription(tx: Db, { id, videoId, language }: Untranscribed, problem: string): Promise<void> {
  if (await updateUntranscribed(tx, id, { problem }))
    await addVideoEvents(tx, 'video:transcribed', [videoId], { fileId: id, language, error: problem })
}

async function run(deps: TranscriptionDeps, work: Untranscribed, claim: Claim, signal: AbortSignal): Promise<void> {
  try {
    await makeCaptions(deps, work, claim, signal)
  } catch (error) {
    // What the program says, or how long it takes, would be the same again.
    if (!(error instanceof Failure) || error.kind !== 'invalid') throw error
    deps.log.warn({ err: error, videoId: work.videoId }, 'transcription: failed')
    await claim.settle((tx) => failTranscription(tx, work, error.message))
  }
}

async function makeCaptions(
  deps: TranscriptionDeps,
  { id, videoId, language }: Untranscribed,
  claim: Claim,
  signal: AbortSignal,
) {
  const { db, sandbox, transcriber, folders, masterKey } = deps
  const { generation = 0 } = (await findPlayedGeneration(db, videoId)) ?? {}
  const played = await findGeneration(db, { videoId, generation })
  if (!played) return // deleted meanwhile
  const audioTrack = findSpoken(played.plan, language)
  if (!audioTrack) throw new Failure('invalid', 'The video has no audio.')
  const { dub } = audioTrack
  const source = await findSealedSource(deps, videoId, dub?.sourceNumber ?? played.sourceNumber)
  if (!source) return // deleted meanwhile
  const startS = (await findTimelineStart(db, videoId, played.sourceNumber)) + (dub?.startS ?? 0)
  const webVtt = await transcribe({
    ...{ sandbox, transcriber, source, plan: dub?.plan ?? played.plan, startS, language, signal },
    audioTrack: dub?.plan.audioTrack ?? audioTrack,
    onProgress: createSavedProgress(deps.log, 'transcription', (progress) =>
      deps.write((tx) => updateUntranscribed(tx, id, { progress })),
    ),
  })
  const key = randomBytes(32)
  const blob = `${videoId}/${newToken()}.sealed`
  await folders.files.put(blob, sealBlob(key, blob, webVtt))
  try {
    const isStored = await claim.settle(async (tx) => {
      // What people have written meanwhile stays.
      const isUnwanted = await hasReviewedCaptions(tx, videoId, language)
      if (!isUnwanted) await disableAutomatic(tx, videoId, language)
      const shown = isUnwanted ? { enabled: 0, hidden: 1 } : { enabled: 1 }
      const stored = { blob, sizeBytes: webVtt.length, wrappedKey: wrapFileKey(masterKey, blob, key), progress: 1 }
      if (!(await updateUntranscribed(tx, id, { ...stored, ...shown }))) return false
      await addVideoEvents(tx, 'video:transcribed', [videoId], { fileId: id, language })
      return true
    })
    if (isStored) deps.log.info({ videoId, language }, 'transcription: ready')
    else await folders.files.remove(blob)
  } catch (error) {
    // A blob whose row may have been committed must stay; the sweep removes it if there is no row.
    if (!isCommitOutcomeUnknown(error)) await folders.files.remove(blob)
    throw error
  }
}
