import type { Logger } from 'pino'
import { recordAuditEvent } from '../audit/audit-log.ts'
import type { VideoFolders } from '../catalogue/deletion.ts'
import type { MasterKey } from '../crypto/master-key.ts'
import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { checkResult } from '../encode/check/check-result.ts'
import type { ResultSegment } from '../encode/check/result.ts'
import { findChunkOfWorker, forgetWorker, type VideoChunk } from '../encode/chunk-store.ts'
import { findGenerationWithKey, findSealedSource } from '../encode/encode-deps.ts'
import { findGain, findInit, findSegment } from '../encode/generation-store.ts'
import { InexactSeek } from '../encode/media-failure.ts'
import { audioTracksOf, type Plan } from '../encode/plan.ts'
import { type GenerationWithKey, segmentDecipher } from '../encode/publication.ts'
import { readSegment } from '../encode/segment-file.ts'
import { Failure, isHostFailure } from '../errors.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import type { Worker } from './worker.ts'
import { listWorkers } from './worker-store.ts'

type RecheckDeps = {
  db: Db
  slowQueryDb: Db
  write: Write
  nowS: () => number
  masterKey: MasterKey
  folders: VideoFolders
  sandbox: Sandbox
  reencrypt(videoId: string, alsoInTransaction: (tx: Db, accountId: string) => Promise<void>): Promise<void>
  log: Logger
}

const LOOK_EVERY_MS = 60_000

/**
 * Compares all that a trusted worker had published before it was suspended: until then one segment in twenty of it was. A chunk that is
 * right is no longer the worker's in its row, so a server that is restarted goes on where it stopped. A video with a wrong one is encoded again.
 * @param opened stops it
 * @returns to be called when one was suspended
 */
export function startRecheck(deps: RecheckDeps, opened: AsyncDisposableStack): () => void {
  const stopping = new AbortController()
  let looking: Promise<void> | undefined
  const look = () => {
    looking ??= recheckAll(deps, stopping.signal)
      .catch((error) => {
        if (!stopping.signal.aborted) deps.log.error({ err: error }, 'worker: checking what it published failed')
      })
      .finally(() => {
        looking = undefined
      })
  }
  const timer = setInterval(look, LOOK_EVERY_MS)
  look()
  opened.defer(async () => {
    clearInterval(timer)
    stopping.abort()
    await looking
  })
  return look
}

async function recheckAll(deps: RecheckDeps, signal: AbortSignal): Promise<void> {
  for (const worker of await listWorkers(deps.db))
    if (worker.trusted === 1 && worker.suspendedReason !== null) await recheckWorker(deps, worker, signal)
}

async function recheckWorker(deps: RecheckDeps, worker: Worker, signal: AbortSignal): Promise<void> {
  /** Their turn comes with the next look. */
  const postponed: string[] = []
  for (;;) {
    signal.throwIfAborted()
    const chunk = await findChunkOfWorker(deps.slowQueryDb, worker.id, postponed)
    if (!chunk) return
    if (await recheckChunk(deps, worker, chunk, signal)) await deps.write((tx) => forgetWorker(tx, chunk))
    else postponed.push(chunk.videoId)
  }
}

/** False: it cannot be compared now, or its video not be encoded again. */
async function recheckChunk(deps: RecheckDeps, { name }: Worker, chunk: VideoChunk, signal: AbortSignal): Promise<boolean> {
  const { videoId, kind, firstSegment } = chunk
  const where = { worker: name, videoId, kind, firstSegment }
  try {
    const reason = await findFault(deps, chunk, signal)
    if (reason === undefined) return true
    deps.log.error({ ...where, reason }, 'worker: what it had published is wrong')
    return await encodeAgain(deps, videoId)
  } catch (error) {
    if (signal.aborted || isHostFailure(error)) throw error
    deps.log.error({ ...where, err: error }, 'worker: what it had published cannot be compared now')
    return false
  }
}

/** What is wrong with a chunk that was published. Undefined: nothing, or it is gone. */
async function findFault(deps: RecheckDeps, chunk: VideoChunk, signal: AbortSignal): Promise<string | undefined> {
  const { db, sandbox } = deps
  const video = await findGenerationWithKey(deps, chunk)
  const source = video && (await findSealedSource(deps, chunk.videoId, video.sourceNumber))
  if (!video || !source) return undefined
  const { plan, encoder } = video
  const segments = await listPublished(deps, video, chunk)
  if (segments === 'damaged') return undefined // its repair compares it with its hash, and encodes it here
  const inits = new Map<number, Buffer>()
  for (const id of renditionsOf(plan, chunk.kind)) {
    const init = await findInit(db, video, id)
    if (init) inits.set(id, init)
  }
  const gainOf = ({ renditionId }: { renditionId: number }) => findGain(db, video, renditionId)
  try {
    const verdict = await checkResult({ sandbox, encoder, source, plan, chunk, inits, segments, findGain: gainOf, signal })
    return verdict.ok ? undefined : verdict.reason
  } catch (error) {
    if (error instanceof InexactSeek) return 'the source cannot be compared with it'
    throw error
  }
}

async function listPublished(
  { db, folders }: RecheckDeps,
  video: GenerationWithKey,
  { kind, firstSegment, segmentCount }: VideoChunk,
): Promise<ResultSegment[] | 'damaged'> {
  const decrypt = segmentDecipher(video, kind)
  const segments: ResultSegment[] = []
  for (const renditionId of renditionsOf(video.plan, kind))
    for (let number = firstSegment; number < firstSegment + segmentCount; number++) {
      const expected = await findSegment(db, video, renditionId, number)
      if (!expected) return 'damaged'
      const read = await readSegment(folders.segments, expected)
      if ('fault' in read) return 'damaged'
      const clear = decrypt(renditionId, number, read.bytes)
      segments.push({ renditionId, number, sizeBytes: clear.length, read: async () => clear })
    }
  return segments
}

function renditionsOf(plan: Plan, kind: VideoChunk['kind']): number[] {
  if (kind === 'video') return (plan.videoTrack?.renditions ?? []).map(({ id }) => id)
  return audioTracksOf(plan).flatMap(({ renditionId, dub }) => (dub === undefined ? [renditionId] : []))
}

/** False: not now, such as while it is encoded. */
async function encodeAgain({ reencrypt, nowS, log }: RecheckDeps, videoId: string): Promise<boolean> {
  const event = { atS: nowS(), by: 'server', kind: 'video:reencrypted', subjects: [videoId] } as const
  try {
    await reencrypt(videoId, (tx, accountId) => recordAuditEvent(tx, { ...event, accountId }))
    return true
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    log.warn({ videoId, why: error.message }, 'worker: a video with a wrong segment cannot be encoded again now')
    return false
  }
}
