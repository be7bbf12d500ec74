import { createHash } from 'node:crypto'
import { moveStatus } from '../catalogue/status.ts'
import { setFileName } from '../catalogue/video-store.ts'
import type { Sealed } from '../crypto/sealed-file.ts'
import type { Db } from '../db/database.ts'
import { isCommitOutcomeUnknown } from '../db/write.ts'
import { Failure } from '../errors.ts'
import {
  assertRoom,
  assertSize,
  discardSource,
  displayName,
  insertReceivedSource,
  type ReceivedSource,
  receiveSource,
  type SourceDeps,
} from './source.ts'
import { findSource } from './source-store.ts'
import { admitUpload } from './upload-policy.ts'
import { spendPolicy } from './upload-policy-store.ts'

// The rule of an upload, whatever way it comes: a policy is spent once, the same file sent again is confirmed, what is received
// counts towards the account's limit, and what is not accepted leaves nothing.

/** A file on its way in. */
export type IncomingUpload = {
  /** What the policy has signed, by lower-case names. */
  fields: ReadonlyMap<string, string>
  /** As the client sent it, for display only. */
  fileName: string
  /** Ends once all of the upload has arrived; throws when the rest will not come. */
  file: AsyncIterable<Buffer>
  /** How large the file is at least, as far as its sender says so; 0 otherwise. */
  declaredBytes: number
}

/**
 * Makes a file the source of its policy's video, or confirms that it already is: then nothing of it is stored. Durable when it resolves.
 * @returns the policy's key, and the SHA-256 of the source
 * @throws Failure `forbidden` for a policy or fields that are not as issued, or another file than the first; `too-large`;
 *   `unavailable` without room; `over-quota`; `conflict` as `acceptSource` does; and what `file` throws. Nothing is left on disk then
 */
export async function receiveUpload(
  deps: SourceDeps,
  { fields, fileName, file, declaredBytes }: IncomingUpload,
): Promise<{ key: string; sha256: Buffer }> {
  const { key, accountId, videoId, isSpent } = await admitUpload(deps, fields)
  if (isSpent) return { key, sha256: await confirmSource(deps, videoId, file) }
  assertSize(declaredBytes, deps.uploadMaxBytes)
  await assertRoom(deps, declaredBytes)
  using reservation = deps.quota.receive({ accountId, videoId }) // until the file has a row
  await reservation.reserve(declaredBytes)
  const source = await receiveSource(deps, videoId, file, reservation)
  await acceptSource(deps, { policyKey: key, videoId, source, fileName })
  return { key, sha256: source.sha256 }
}

type ReceivedUpload = { policyKey: string; videoId: string; source: ReceivedSource; fileName: string }

/**
 * Gives a video its source: each policy is good for one source. Durable when it resolves; the video is `Queued` then.
 * Two concurrent uploads of the same bytes both succeed.
 * @param upload.fileName as the client sent it, for display only
 * @throws Failure `conflict` when another upload used the policy first, or the video was deleted in the meantime; the file is removed
 */
export async function acceptSource(deps: SourceDeps, { policyKey, videoId, source, fileName }: ReceivedUpload): Promise<void> {
  const accepted = await giveSource(deps, { videoId, source, fileName }, (tx) => spendPolicy(tx, policyKey, deps.nowS())).catch(
    async (error) => {
      if (!isCommitOutcomeUnknown(error)) await discardSource(deps, source)
      throw error
    },
  )
  if (accepted) return
  await discardSource(deps, source)
  const winner = await findSource(deps.db, videoId)
  if (winner && isSameSource(winner, source)) return
  throw new Failure('conflict', 'This policy was already used by another upload. Ask for a new one.')
}

/**
 * Gives a video its source, whatever way that came. Durable when it resolves; the video is `Queued` then.
 * @param spend marks what the source came by as used, in the same transaction. False: it was used before, and nothing changes
 * @throws Failure `conflict` when the video was deleted in the meantime
 */
export async function giveSource(
  deps: SourceDeps,
  { videoId, source, fileName }: Omit<ReceivedUpload, 'policyKey'>,
  spend: (tx: Db) => Promise<boolean>,
): Promise<boolean> {
  const given = await deps.write(async (tx) => {
    if (!(await spend(tx))) return false
    if (!(await moveStatus(tx, videoId, 'Queued')))
      throw new Failure('conflict', 'The video was deleted while its file was being sent.')
    await setFileName(tx, videoId, displayName(fileName))
    await insertReceivedSource(deps, tx, videoId, source)
    return true
  })
  if (!given) return false
  deps.log.info({ videoId, sizeBytes: source.sizeBytes }, 'upload: received')
  void deps.signals.send('work-queued', 'encode')
  return true
}

/**
 * Reads a file that is sent again because the response to the first upload was lost. Nothing of it is stored.
 * @returns the SHA-256 of the video's source, which is the same file
 * @throws Failure `forbidden` when it is a different file
 */
async function confirmSource({ db }: Pick<SourceDeps, 'db'>, videoId: string, bytes: AsyncIterable<Buffer>): Promise<Buffer> {
  const source = await findSource(db, videoId)
  const hash = createHash('sha256')
  let sizeBytes = 0
  for await (const chunk of bytes) {
    hash.update(chunk)
    sizeBytes += chunk.length
    if (sizeBytes > (source?.sizeBytes ?? 0)) break
  }
  const repeated = { sizeBytes, sha256: hash.digest() }
  if (source && isSameSource(source, repeated)) return source.sha256
  throw new Failure('forbidden', 'This policy was already used for another file. Ask for a new one.')
}

function isSameSource(one: Pick<Sealed, 'sizeBytes' | 'sha256'>, other: Pick<Sealed, 'sizeBytes' | 'sha256'>): boolean {
  return one.sizeBytes === other.sizeBytes && one.sha256.equals(other.sha256)
}
