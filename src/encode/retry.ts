import { listGenerationBlobs } from '../catalogue/poster-store.ts'
import { requeueFailed } from '../catalogue/status.ts'
import { listGenerations } from '../catalogue/video-history-store.ts'
import { findVideo } from '../catalogue/video-store.ts'
import type { Db } from '../db/database.ts'
import { Failure, videoNotFound } from '../errors.ts'
import { findSource } from '../ingest/source-store.ts'
import { chooseEncoder } from './capacity.ts'
import { isSourceGone, removeGenerationFiles } from './fail-video.ts'
import { findGeneration, removeGeneration } from './generation-store.ts'
import { findLostDubs, leaveOutDubs } from './lost-dubs.ts'
import { insertPlanned, type RequestedDeps } from './next-generation.ts'

/** Has a failed video encoded again, or imported again if its file did not fit. */
export type Retry = (video: { accountId: string; videoId: string }, alsoInTransaction: (tx: Db) => Promise<void>) => Promise<void>

/**
 * Has a video encoded again that failed, from its uploaded file. What was encoded of it is removed: a new generation has a key and paths
 * of its own. One that was never planned is examined again.
 * @param alsoInTransaction the caller's record of it
 * @throws Failure `not-found`; `conflict` when it has not failed, or its file never arrived; `unavailable` without room
 */
export async function retryVideo(
  deps: RequestedDeps,
  { accountId, videoId }: { accountId: string; videoId: string },
  alsoInTransaction: (tx: Db) => Promise<void>,
): Promise<void> {
  const video = await findVideo(deps.db, accountId, videoId)
  if (!video || video.deletedAtS !== null) throw videoNotFound()
  if (!(await findSource(deps.db, videoId))?.wrappedKey || (await isSourceGone(deps, { videoId })))
    throw new Failure('conflict', 'The server has no file of this video. Upload or import it again.')
  if (!(await deps.hasRoom())) throw new Failure('unavailable', 'The disk of this server has no room for another encoding.')
  const failed = await findGeneration(deps.db, { videoId, generation: video.generation })
  const lostDubs = failed ? await findLostDubs(deps, videoId, failed.plan, new AbortController().signal) : []
  const encoder = await chooseEncoder(deps, failed?.plan ?? { isSeekable: false })
  const removed = await deps.write(async (tx) => {
    const generations = (await listGenerations(tx, videoId)).filter(({ keptUntilS }) => keptUntilS === null)
    const newest = generations.at(-1)
    if (!(await requeueFailed(tx, videoId, newest ? 'Processing' : 'Queued')))
      throw new Failure('conflict', 'Only a video that failed can be tried again.')
    const last = newest && (await findGeneration(tx, { videoId, generation: newest.number }))
    const old: { generation: number; posters: string[] }[] = []
    for (const { number: generation } of generations) {
      old.push({ generation, posters: await listGenerationBlobs(tx, { videoId, generation }) })
      await removeGeneration(tx, { videoId, generation })
    }
    if (last) await insertPlanned(deps, tx, { ...last, plan: await leaveOutDubs(tx, videoId, last.plan, lostDubs) }, { encoder })
    await deps.endVideoSessions(tx, [videoId], 'video-replaced')
    await alsoInTransaction(tx)
    return old
  })
  deps.log.info({ videoId }, 'video: tried again')
  const videoIds = [videoId]
  await deps.signals.send('work-cancelled', { videoIds, work: 'encode' })
  void deps.signals.send('session-ended', { videoIds, why: 'video-replaced' })
  for (const { generation, posters } of removed) await removeGenerationFiles(deps.folders, { videoId, generation }, posters)
  void deps.signals.send('work-queued', 'encode')
}
