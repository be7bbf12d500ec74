import { createHash } from 'node:crypto'
import { assertReplaceable, insertReplacement, takeNumber } from '../catalogue/replacement-store.ts'
import { moveStatus } from '../catalogue/status.ts'
import { setFileName } from '../catalogue/video-store.ts'
import { createFileHash, type Sealed } from '../crypto/sealed-file.ts'
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
import { findPolicy, spendPolicy } from './upload-policy-store.ts'

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
  const { key, accountId, videoId, isSpent, replaces } = await admitUpload(deps, fields)
  if (isSpent) return { key, sha256: await confirmSource(deps, { videoId, number: replaces || FIRST_SOURCE }, file) }
  assertSize(declaredBytes, deps.uploadMaxBytes)
  await assertRoom(deps, declaredBytes)
  if (replaces !== 0) await assertReplaceable(deps.db, accountId, videoId) // before all of it has been sent
  using reservation = deps.quota.receive({ accountId, videoId, replaces }) // until the file has a row
  await reservation.reserve(declaredBytes)
  const source = await receiveSource(deps, videoId, file, reservation)
  await acceptSource(deps, { policyKey: key, videoId, source, fileName, replaces: replaces !== 0 })
  return { key, sha256: source.sha256 }
}

/** `fileName`: as the client sent it, for display only. `replaces`: it is to replace what the video plays. */
type NewSource = { videoId: string; source: ReceivedSource; fileName: string; replaces?: boolean }

/**
 * Makes a received file the source of its video, which is `Queued` then; or what is to replace it, in the caller's transaction. Whatever
 * way a file comes, it comes through here.
 * @returns the number of the source
 * @throws Failure `conflict` when the video was deleted in the meantime, or cannot be replaced now
 */
export async function attachSource(
  deps: Pick<SourceDeps, 'masterKey' | 'wallNowS'>,
  tx: Db,
  { videoId, source, fileName, replaces }: NewSource,
  number: number,
): Promise<void> {
  if (replaces) {
    const as = { fileName: displayName(fileName), requestedAtS: deps.wallNowS() }
    await insertReplacement(tx, { videoId, kind: 'replace', sourceNumber: number, ...as })
    return insertReceivedSource(deps, tx, videoId, source, { number, fileName: as.fileName, receivedAtS: as.requestedAtS })
  }
  if (!(await moveStatus(tx, videoId, 'Queued')))
    throw new Failure('conflict', 'The video was deleted while its file was being sent.')
  await setFileName(tx, videoId, displayName(fileName))
  await insertReceivedSource(deps, tx, videoId, source)
}

const FIRST_SOURCE = 1

/**
 * Accepts a file that was sent with a policy: each policy is good for one. Durable when it resolves. Two concurrent uploads of the same
 * bytes both succeed.
 * @throws Failure `conflict` when another upload used the policy first, and as `attachSource`; the file is removed
 */
export async function acceptSource(
  deps: SourceDeps,
  { policyKey, ...received }: NewSource & { policyKey: string },
): Promise<void> {
  const { videoId, source, replaces } = received
  const spend = (tx: Db, number: number) => spendPolicy(tx, policyKey, { spentAtS: deps.nowS(), replaces: replaces ? number : 0 })
  const accepted = await giveSource(deps, received, spend).catch(async (error) => {
    if (!isCommitOutcomeUnknown(error)) await discardSource(deps, source)
    throw error
  })
  if (accepted) return
  await discardSource(deps, source)
  const winner = await findPolicy(deps.db, policyKey)
  if (winner && (await findSameSource(deps.db, { videoId, number: winner.replaces || FIRST_SOURCE }, source))) return
  throw new Failure('conflict', 'This policy was already used by another upload. Ask for a new one.')
}

/**
 * Gives a video the file that an upload brought. Durable when it resolves.
 * @param spend marks what the source came by as used, in the same transaction. False: it was used before, and nothing changes
 * @throws Failure `conflict` as `attachSource`
 */
export async function giveSource(
  deps: SourceDeps,
  received: NewSource,
  spend: (tx: Db, sourceNumber: number) => Promise<boolean>,
): Promise<boolean> {
  const { videoId, source, replaces } = received
  const isGiven = await deps.write(async (tx) => {
    const number = replaces ? await takeNumber(tx, videoId) : FIRST_SOURCE
    if (!(await spend(tx, number))) return false
    await attachSource(deps, tx, received, number)
    return true
  })
  if (!isGiven) return false
  deps.log.info({ videoId, sizeBytes: source.sizeBytes }, 'upload: received')
  void deps.signals.send('work-queued', 'encode')
  return true
}

/**
 * Reads a file that is sent again because the response to the first upload was lost. Nothing of it is stored.
 * @returns the SHA-256 of the video's source, which is the same file
 * @throws Failure `forbidden` when it is a different file
 */
async function confirmSource(
  { db }: Pick<SourceDeps, 'db'>,
  key: { videoId: string; number: number },
  bytes: AsyncIterable<Buffer>,
): Promise<Buffer> {
  const source = await findSource(db, key.videoId, key.number)
  const [hash, plainHash] = [createFileHash(), createHash('sha256')]
  let sizeBytes = 0
  for await (const chunk of bytes) {
    hash.update(chunk)
    plainHash.update(chunk)
    sizeBytes += chunk.length
    if (sizeBytes > (source?.sizeBytes ?? 0)) break
  }
  for (const sha256 of [hash.digest(), plainHash.digest()]) {
    const repeated = await findSameSource(db, key, { sizeBytes, sha256 }) // 0.2.0 kept the plain one
    if (repeated) return repeated.sha256
  }
  throw new Failure('forbidden', 'This policy was already used for another file. Ask for a new one.')
}

/** The source, if it is this file. */
async function findSameSource(
  db: Db,
  { videoId, number }: { videoId: string; number: number },
  { sizeBytes, sha256 }: Pick<Sealed, 'sizeBytes' | 'sha256'>,
) {
  const source = await findSource(db, videoId, number)
  return source?.sizeBytes === sizeBytes && source.sha256.equals(sha256) ? source : undefined
}
