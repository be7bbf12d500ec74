import { randomBytes } from 'node:crypto'
import type { Updateable } from 'kysely'
import type { VideoFolders } from '../catalogue/deletion.ts'
import {
  beginReadingCaptions,
  failReadingCaptions,
  findUnreadCaptions,
  finishReadingCaptions,
  listAccountsWithUnreadCaptions,
  listUnreadTracks,
  refundReadingCaptions,
  type UnreadCaptions,
} from '../catalogue/embedded-captions-store.ts'
import { wrapFileKey } from '../catalogue/file-key.ts'
import type { MasterKey } from '../crypto/master-key.ts'
import { sealBlob } from '../crypto/sealed-blob.ts'
import { newToken } from '../crypto/secret.ts'
import type { Tables } from '../db/tables.ts'
import { isCommitOutcomeUnknown } from '../db/write.ts'
import { findSealedSource } from '../encode/encode-deps.ts'
import { findGeneration, findPlayedGeneration } from '../encode/generation-store.ts'
import type { Claim } from '../jobs/claims.ts'
import { type CountedWorkDeps, startCountedWork } from '../jobs/counted-work.ts'
import type { Dispatcher } from '../jobs/dispatcher.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import { type ReadCaptions, readEmbeddedCaptions } from './read-embedded-captions.ts'

type EmbeddedCaptionsDeps = CountedWorkDeps & {
  masterKey: MasterKey
  folders: VideoFolders
  sandbox: Sandbox
}

const FIRST_SOURCE = 1

/** Reads captions out of uploaded files, one file at a time: much of a Matroska has to be read for them. Accounts take turns. */
export function startEmbeddedCaptionsScheduler(deps: EmbeddedCaptionsDeps): Dispatcher {
  return startCountedWork<UnreadCaptions>(deps, {
    ...{ kind: 'captions', name: 'captions', problems: PROBLEMS },
    ...{ listAccounts: listAccountsWithUnreadCaptions, find: findUnreadCaptions },
    ...{ begin: beginReadingCaptions, refund: refundReadingCaptions },
    fail: (tx, { videoId }, problem) => failReadingCaptions(tx, videoId, problem),
    run: ({ videoId }, claim, signal) => readCaptions(deps, videoId, claim, signal),
  })
}

const PROBLEMS = {
  failed: 'These captions could not be read out of the file on this server. Its log says why.',
  crashed: 'These captions could not be read out of the file: the server crashed during 3 attempts.',
}
const REPLACED = 'These captions were not read out of the file before another one replaced it.'

async function readCaptions(deps: EmbeddedCaptionsDeps, videoId: string, claim: Claim, signal: AbortSignal): Promise<void> {
  const { db, sandbox } = deps
  const tracks = await listUnreadTracks(db, videoId)
  const { generation = 0 } = (await findPlayedGeneration(db, videoId)) ?? {}
  const played = await findGeneration(db, { videoId, generation })
  if (!played) return // deleted meanwhile
  const source = played.sourceNumber === FIRST_SOURCE ? await findSealedSource(deps, videoId, FIRST_SOURCE) : undefined
  if (!source) return void (await claim.settle((tx) => failReadingCaptions(tx, videoId, REPLACED)))
  const read = await readEmbeddedCaptions({ sandbox, source, plan: played.plan, signal }, tracks)
  const outcomes: Outcome[] = []
  try {
    for (const [index, { id }] of tracks.entries()) outcomes.push({ id, ...(await seal(deps, videoId, read[index])) })
    const unwanted = await claim.settle(async (tx) => {
      const unwanted: Outcome[] = []
      for (const outcome of outcomes) if (!(await finishReadingCaptions(tx, outcome.id, outcome.columns))) unwanted.push(outcome)
      return unwanted
    })
    await removeBlobs(deps, unwanted ?? outcomes)
    deps.log.info({ videoId, trackCount: outcomes.length }, 'captions: read out of the file')
  } catch (error) {
    // A blob whose row may have been committed must stay; the sweep removes it if there is no row.
    if (!isCommitOutcomeUnknown(error)) await removeBlobs(deps, outcomes)
    throw error
  }
}

/** What becomes of the row of a track, and the blob that was written for it. */
type Outcome = { id: number; columns: Updateable<Tables['file']>; blob?: string }

async function seal(
  { folders, masterKey }: EmbeddedCaptionsDeps,
  videoId: string,
  read: ReadCaptions | undefined,
): Promise<Omit<Outcome, 'id'>> {
  if (!read) throw new Error('a track of captions was not read')
  if ('problem' in read) return { columns: { problem: read.problem } }
  const { webVtt } = read
  const key = randomBytes(32)
  const blob = `${videoId}/${newToken()}.sealed`
  await folders.files.put(blob, sealBlob(key, blob, webVtt))
  return { blob, columns: { blob, sizeBytes: webVtt.length, wrappedKey: wrapFileKey(masterKey, blob, key) } }
}

async function removeBlobs({ folders }: EmbeddedCaptionsDeps, outcomes: readonly Outcome[]): Promise<void> {
  for (const { blob } of outcomes) if (blob !== undefined) await folders.files.remove(blob)
}
