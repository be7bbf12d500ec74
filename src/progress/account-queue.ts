import type { Db } from '../db/database.ts'
import { countSegments } from '../encode/generation-store.ts'
import { plannedSegmentCount } from '../encode/plan.ts'
import { listEncodingVideos, listImportingVideos, listWaitingVideos } from './account-queue-store.ts'
import { countChunks } from './progress-store.ts'

/** Work on a video that is not finished. */
export type QueuedVideo = {
  videoId: string
  title: string
  status: string
  state: 'importing' | 'waiting' | 'encoding'
  /** Of an import: what has arrived. */
  receivedBytes: number | null
  /** Of an encode: published segments divided by planned segments, 0 to 1. */
  part: number | null
  chunks: { done: number; all: number } | null
  /** Of an encode: seconds of video encoded in a second, since it began. */
  speed: number | null
  /** Of an encode of a video that does not play yet: in about how many seconds its beginning does, at the same speed. */
  playableS: number | null
  /** Of an encode: in about how many seconds it is finished, when the account's encodes go on as fast as so far, the oldest first. */
  remainingS: number | null
}

/** Of each state. */
const MAX_ROWS = 50

export type AccountQueueDeps = { slowQueryDb: Db; wallNowS: () => number }

/** What the server does, or has yet to do, with the account's videos: encodes first, then what waits, then imports. */
export async function listQueue({ slowQueryDb: db, wallNowS }: AccountQueueDeps, accountId: string): Promise<QueuedVideo[]> {
  // Read in the order in which a video moves on: one that does so between two of these is listed in its later state, not left out.
  const importing = await listImportingVideos(db, accountId, MAX_ROWS)
  const waiting = await listWaitingVideos(db, accountId, MAX_ROWS)
  const encoding = await Promise.all(
    (await listEncodingVideos(db, accountId, MAX_ROWS)).map(async ({ id, generation, plan, createdAtS, ...video }) => {
      const published = await countSegments(db, { videoId: id, generation })
      const part = Math.min(1, published / Math.max(1, plannedSegmentCount(plan)))
      const elapsedS = Math.max(1, wallNowS() - createdAtS)
      const speed = Math.round((100 * part * plan.durationS) / elapsedS) / 100
      const chunks = await countChunks(db, { videoId: id, generation })
      const isPlayable = video.status === 'ready'
      return { ...toQueued(id, video, 'encoding'), part, chunks, speed, createdAtS, durationS: plan.durationS, isPlayable }
    }),
  )
  const estimates = estimateTimes(encoding, wallNowS())
  const queued = [
    ...encoding.map(({ createdAtS: _, durationS: __, isPlayable: ___, ...video }, index) => ({ ...video, ...estimates[index] })),
    ...waiting.map(({ id, ...video }) => toQueued(id, video, 'waiting')),
    ...importing.map(({ id, receivedBytes, ...video }) => ({ ...toQueued(id, video, 'importing'), receivedBytes })),
  ]
  const listed = new Set<string>()
  return queued.filter(({ videoId }) => !listed.has(videoId) && listed.add(videoId))
}

type Encode = { createdAtS: number; durationS: number; part: number; isPlayable: boolean }
type Estimate = Pick<QueuedVideo, 'playableS' | 'remainingS'>

/** A video plays once its first segments are there. */
const BEGINNING_S = 4

/**
 * In how many seconds each of these plays and is finished, the oldest first; null: too little is encoded yet to say. The beginnings of all are
 * encoded before the rest of any.
 */
export function estimateTimes(encodes: readonly Encode[], nowS: number): Estimate[] {
  const elapsedS = nowS - Math.min(...encodes.map(({ createdAtS }) => createdAtS))
  const encodedS = encodes.reduce((sum, { part, durationS }) => sum + part * durationS, 0)
  if (elapsedS < 1 || encodedS === 0) return encodes.map(() => ({ playableS: null, remainingS: null }))
  const secondsFor = (videoS: number) => Math.round((videoS * elapsedS) / encodedS)
  let [beginningsS, aheadS] = [0, 0]
  return encodes.map(({ part, durationS, isPlayable }) => {
    aheadS += (1 - part) * durationS
    if (!isPlayable) beginningsS += Math.min(BEGINNING_S, durationS)
    return { playableS: isPlayable ? null : secondsFor(beginningsS), remainingS: secondsFor(aheadS) }
  })
}

function toQueued(videoId: string, { title, status }: { title: string; status: string }, state: QueuedVideo['state']) {
  return {
    videoId,
    title,
    status,
    state,
    receivedBytes: null,
    part: null,
    chunks: null,
    speed: null,
    playableS: null,
    remainingS: null,
  }
}
