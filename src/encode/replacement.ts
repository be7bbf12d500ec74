import type { EndVideoSessions } from '../catalogue/deletion.ts'
import { assertNoReplacement, assertReplaceable, findReplacement, insertReplacement } from '../catalogue/replacement-store.ts'
import { findVideo } from '../catalogue/video-store.ts'
import type { Db } from '../db/database.ts'
import { Failure, videoNotFound } from '../errors.ts'
import { removeImport } from '../ingest/import-store.ts'
import type { VideoDeps } from './encode-deps.ts'
import { type ExchangeDeps, exchange, removeKept } from './exchange.ts'
import { dropReplacement, isSourceGone, type RemovedFiles, removeFiles } from './fail-video.ts'
import { findGeneration, findLaterGeneration, isFinished, listEndedKept, listKept, renditionSizes } from './generation-store.ts'
import type { RequestedDeps } from './next-generation.ts'
import { assertPart, isCutTo, type Part } from './trim.ts'

// What an owner does with what replaces a video, and with what it replaced.

type OwnedVideo = { accountId: string; videoId: string }
export type ReplacementDeps = ExchangeDeps &
  Pick<VideoDeps, 'db' | 'slowQueryDb' | 'write'> & { endVideoSessions: EndVideoSessions }

export type TrimDeps = ReplacementDeps & Pick<RequestedDeps, 'hasRoom'>

/** The caller's record of what it does, in the same transaction. */
type AlsoInTransaction = (tx: Db) => Promise<void>

type Trim = Part & { isUnchanged: boolean }

/**
 * Cancels the replacement that is being made, or forgets why one failed. Durable when it resolves.
 * @throws Failure `not-found`; `conflict` when there is none, as when the video plays it by now
 */
export async function cancelReplacement(
  deps: ReplacementDeps,
  { accountId, videoId }: OwnedVideo,
  alsoInTransaction: AlsoInTransaction,
): Promise<void> {
  const removed = await deps.write(async (tx) => {
    if (!(await findVideo(tx, accountId, videoId))) throw videoNotFound()
    const replacement = await findReplacement(tx, videoId)
    if (!replacement) throw new Failure('conflict', 'Nothing is to replace this video. If it plays already, undo that.')
    if (replacement.sourceNumber === null) await removeImport(tx, videoId)
    await alsoInTransaction(tx)
    return dropReplacement(tx, replacement)
  })
  void deps.signals.send('keys-destroyed', undefined)
  for (const work of ['encode', 'import'] as const) await deps.signals.send('work-cancelled', { videoIds: [videoId], work })
  await removeFiles(deps.folders, removed)
}

/**
 * Has a video made again from a part of its file, which replaces it once it is complete; nothing when that is what it plays. Durable when it
 * resolves.
 * @param part in seconds of the whole file, however it is trimmed now; without an end: to the file's end
 * @throws Failure `not-found`; `invalid` for a part that is not within the file; `conflict` as `assertReplaceable`, or without the file;
 *   `unavailable` without room
 */
export async function trimVideo(
  deps: TrimDeps,
  { accountId, videoId }: OwnedVideo,
  { startS = 0, endS }: { startS?: number | undefined; endS?: number | undefined },
  alsoInTransaction: AlsoInTransaction,
): Promise<Trim> {
  await assertReplaceable(deps.db, accountId, videoId)
  if (!(await deps.hasRoom()))
    throw new Failure('unavailable', 'The disk of this server has no room for another encoding of this video.')
  if (await isSourceGone(deps, { videoId }))
    throw new Failure('conflict', 'The file of this video was lost on this server’s disk. Replace it with another.')
  const trim = await deps.write(async (tx): Promise<Trim> => {
    const { generation = 0 } = (await findVideo(tx, accountId, videoId)) ?? {}
    const played = await findGeneration(tx, { videoId, generation })
    if (!played) throw videoNotFound()
    const { plan, sourceNumber } = played
    const ofS = plan.cut?.ofS ?? plan.durationS
    const part = { startS, endS: endS ?? ofS }
    assertPart(part, ofS)
    if (isCutTo(plan, part)) return { ...part, isUnchanged: true }
    await insertReplacement(tx, { videoId, kind: 'trim', sourceNumber, ...part, requestedAtS: deps.wallNowS() })
    await alsoInTransaction(tx)
    return { ...part, isUnchanged: false }
  })
  if (!trim.isUnchanged) void deps.signals.send('work-queued', 'encode')
  return trim
}

/**
 * Makes a video play again what was replaced last. Durable when it resolves; what played until now is kept in turn, so that this can be
 * undone as well.
 * @throws Failure `not-found`; `conflict` when nothing is kept, or while the video is being encoded
 */
export async function undoReplacement(
  deps: ReplacementDeps,
  { accountId, videoId }: OwnedVideo,
  alsoInTransaction: AlsoInTransaction,
): Promise<void> {
  const before = await findVideo(deps.db, accountId, videoId)
  if (!before) throw videoNotFound()
  const sizes = await renditionSizes(deps.slowQueryDb, { videoId, generation: before.generation })
  const playedBytes = sizes.values().reduce((sum, sizeBytes) => sum + sizeBytes, 0)
  const cleanUp = await deps.write(async (tx) => {
    const video = await findVideo(tx, accountId, videoId)
    if (!video) throw videoNotFound()
    const played = { videoId, generation: video.generation }
    const [kept] = await listKept(tx, videoId)
    if (!kept)
      throw new Failure('conflict', 'Nothing is kept of this video that could play again: what was replaced is kept for 7 days.')
    await assertNoReplacement(tx, videoId)
    const isEncoding = (await findLaterGeneration(tx, played)) !== undefined || !(await isFinished(tx, played))
    if (isEncoding || played.generation !== before.generation)
      throw new Failure('conflict', 'This video is being encoded. Try again when that is finished.')
    await alsoInTransaction(tx)
    return exchange(deps, tx, kept, { by: 'undo', playedBytes })
  })
  await cleanUp()
}

/**
 * Deletes everything that is kept of a video's former files: from here on it cannot be decrypted. Sessions that still play it end.
 * @returns how many generations
 * @throws Failure `not-found`
 */
export async function deleteKept(
  deps: ReplacementDeps,
  { accountId, videoId }: OwnedVideo,
  alsoInTransaction: AlsoInTransaction,
): Promise<number> {
  const removed = await deps.write.makingRoom(async (tx) => {
    if (!(await findVideo(tx, accountId, videoId))) throw videoNotFound()
    const removed = await removeAll(deps, tx, await listKept(tx, videoId))
    if (removed.length > 0) await alsoInTransaction(tx)
    return removed
  })
  await cleanUp(deps, removed)
  return removed.length
}

const BATCH_SIZE = 100

/** Deletes what has been kept for long enough; in the trash, too. */
export async function deleteEndedKept(deps: ReplacementDeps): Promise<void> {
  const nowS = deps.wallNowS()
  for (;;) {
    const ended = await listEndedKept(deps.db, nowS, BATCH_SIZE)
    for (const videoId of new Set(ended.map((row) => row.videoId))) {
      const removed = await deps.write.makingRoom(async (tx) => {
        const kept = await listKept(tx, videoId)
        return removeAll(
          deps,
          tx,
          kept.filter(({ keptUntilS }) => keptUntilS <= nowS),
        )
      })
      await cleanUp(deps, removed)
    }
    if (ended.length < BATCH_SIZE) return
  }
}

async function removeAll(
  deps: ReplacementDeps,
  tx: Db,
  kept: Awaited<ReturnType<typeof listKept>>,
): Promise<(RemovedFiles & { generation: number })[]> {
  const removed = []
  for (const generation of kept) {
    await deps.endVideoSessions(tx, [generation.videoId], 'video-replaced', generation.generation)
    removed.push({ ...(await removeKept(tx, generation)), generation: generation.generation })
  }
  return removed
}

async function cleanUp(deps: ReplacementDeps, removed: readonly (RemovedFiles & { generation: number })[]): Promise<void> {
  if (removed.length > 0) void deps.signals.send('keys-destroyed', undefined)
  for (const files of removed) {
    const { videoId, generation } = files
    void deps.signals.send('session-ended', { videoIds: [videoId], generation, why: 'video-replaced' })
    deps.log.info({ videoId, generation }, 'video: what was replaced is deleted')
    await removeFiles(deps.folders, files)
  }
}
