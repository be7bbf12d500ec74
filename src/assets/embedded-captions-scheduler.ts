import { randomBytes } from 'node:crypto'
import type { Updateable } from 'kysely'
import type { Logger } from 'pino'
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
import type { Db } from '../db/database.ts'
import type { Tables } from '../db/tables.ts'
import { isCommitOutcomeUnknown } from '../db/write.ts'
import { findSealedSource } from '../encode/encode-deps.ts'
import { findGeneration, findPlayedGeneration } from '../encode/generation-store.ts'
import { createAttempts } from '../jobs/attempts.ts'
import type { Claim, Claims } from '../jobs/claims.ts'
import { type Dispatcher, type Job, startDispatcher } from '../jobs/dispatcher.ts'
import { createRoundRobin } from '../jobs/round-robin.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import type { Signals } from '../signals/signals.ts'
import { type ReadCaptions, readEmbeddedCaptions } from './read-embedded-captions.ts'

type EmbeddedCaptionsDeps = {
  db: Db
  /** A clock that never goes back. */
  nowS: () => number
  claims: Pick<Claims, 'claimNext'>
  signals: Pick<Signals, 'on'>
  masterKey: MasterKey
  folders: VideoFolders
  sandbox: Sandbox
  log: Logger
  /** Whether the disk has space for that many more bytes. */
  hasRoom(forBytes: number): Promise<boolean>
}

const POLL_INTERVAL_MS = 5_000
const FIRST_SOURCE = 1

/** Reads captions out of uploaded files, one file at a time: much of a Matroska has to be read for them. Accounts take turns. */
export function startEmbeddedCaptionsScheduler(deps: EmbeddedCaptionsDeps): Dispatcher {
  const follows = { signals: deps.signals, work: 'captions' } as const
  return startDispatcher({ slots: 1, claim: createClaim(deps), pollIntervalMs: POLL_INTERVAL_MS, follows, log: deps.log })
}

function createClaim(deps: EmbeddedCaptionsDeps) {
  const accounts = createRoundRobin()
  const attempt = createAttempts<UnreadCaptions>({
    name: 'captions',
    problems: PROBLEMS,
    refund: refundReadingCaptions,
    fail: (tx, { videoId }, problem) => failReadingCaptions(tx, videoId, problem),
    log: deps.log,
  })

  async function claim(urgentOnly: boolean): Promise<Job | undefined> {
    if (urgentOnly || !(await deps.hasRoom(0))) return undefined
    return deps.claims.claimNext({
      kind: 'captions',
      find: findNext,
      subjectOf: ({ videoId }) => videoId,
      begin: async (tx, unread) => ((await beginReadingCaptions(tx, unread)) ? unread : undefined),
      start(unread) {
        accounts.markServed(unread.accountId)
        return (claim, signal) => attempt(unread, claim, signal, () => readCaptions(deps, unread.videoId, claim, signal))
      },
    })
  }

  async function findNext() {
    const accountId = accounts.next(await listAccountsWithUnreadCaptions(deps.db, deps.nowS()))
    const unread = accountId === undefined ? undefined : await findUnreadCaptions(deps.db, accountId, deps.nowS())
    return accountId === undefined || !unread ? undefined : { ...unread, accountId }
  }

  return claim
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
