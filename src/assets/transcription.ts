import type { StorageQuota } from '../accounts/storage-quota.ts'
import { type Actor, recordAuditEvent } from '../audit/audit-log.ts'
import type { CatalogueDeps, ListDeps } from '../catalogue/catalogue-deps.ts'
import { hasReviewedCaptions, insertTranscription } from '../catalogue/transcription-store.ts'
import { findVideo } from '../catalogue/video-store.ts'
import { Failure, videoNotFound } from '../errors.ts'
import type { Signals } from '../signals/signals.ts'
import { parseLanguage } from './caption.ts'
import type { Transcriber } from './transcribe.ts'
import { getFile, type VideoFile } from './video-file.ts'

export type TranscriptionRequestDeps = CatalogueDeps &
  ListDeps & {
    quota: StorageQuota
    signals: Pick<Signals, 'send'>
    /** Undefined: this server has no program for it. */
    transcriber: Transcriber | undefined
  }

/**
 * Requests captions in the language that is spoken, which the operator's program makes in the background. Durable when it resolves.
 * @returns the file; once made, it has a size
 * @throws Failure `not-found`; `conflict` without such a program, and where viewers get captions in this language that are not automatic
 */
export async function requestTranscription(
  deps: TranscriptionRequestDeps,
  { accountId, by, videoId, language }: { accountId: string; by: Actor; videoId: string; language: string },
): Promise<VideoFile> {
  const atS = deps.wallNowS()
  const video = await findVideo(deps.db, accountId, videoId)
  if (!video) throw videoNotFound()
  if (video.status === 'Not a media file' || (video.status === 'Encoding error' && video.generation === 0))
    throw new Failure('conflict', `The video has no audio that can be read (its status is ${video.status}). Upload another file.`)
  assertTranscribes(deps)
  await deps.quota.assertNotFull(accountId)
  const id = await deps.write(async (tx) => {
    if (!(await findVideo(tx, accountId, videoId))) throw videoNotFound()
    if (await hasReviewedCaptions(tx, videoId, language))
      throw new Failure('conflict', 'Viewers get captions in this language already. Hide or delete them first.')
    const details = { language }
    await recordAuditEvent(tx, { atS, accountId, by, kind: 'transcription:requested', subjects: [videoId], details })
    return insertTranscription(tx, { videoId, language, createdAtS: atS })
  })
  void deps.signals.send('work-queued', 'transcription')
  return getFile(deps, accountId, videoId, id)
}

/**
 * The language in which an account has its new videos transcribed.
 * @param language undefined: stays as it is; null or empty: none
 * @throws Failure `invalid`; `conflict` where this server has no program for it
 */
export function readTranscribeLanguage(
  deps: Pick<TranscriptionRequestDeps, 'transcriber'>,
  language: string | null | undefined,
): string | null | undefined {
  if (!language) return language === undefined ? undefined : null
  assertTranscribes(deps)
  return parseLanguage(language)
}

/** @throws Failure `conflict` */
function assertTranscribes({ transcriber }: Pick<TranscriptionRequestDeps, 'transcriber'>): void {
  if (!transcriber)
    throw new Failure('conflict', 'This server has no program that transcribes: its operator sets REELGATE_TRANSCRIBE_COMMAND.')
}
