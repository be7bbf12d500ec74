import { listAuditRowsOf } from '../audit/audit-store.ts'
import type { Db } from '../db/database.ts'
import type { VideoRow } from '../db/tables.ts'
import { videoNotFound } from '../errors.ts'
import { listAddedFiles, listGenerations } from './video-history-store.ts'
import { findVideo } from './video-store.ts'

export type HistoryDeps = { db: Db; slowQueryDb: Db }

/** What happened to a video. Audit events have their kind and their actor; what the server did by itself has no actor. */
type HistoryEvent = { atS: number; kind: string; actor: string | null; details: Record<string, unknown> | null }

const MAX_AUDIT_EVENTS = 200

/**
 * How a video came, was encoded and was changed, the newest first.
 * @throws Failure `not-found` when the account has no such video
 */
export async function listVideoHistory(
  { db, slowQueryDb }: HistoryDeps,
  accountId: string,
  videoId: string,
): Promise<{ video: Pick<VideoRow, 'status' | 'statusReason'>; events: HistoryEvent[] }> {
  const video = await findVideo(db, accountId, videoId)
  if (!video || video.deletedAtS !== null) throw videoNotFound()
  const generations = await listGenerations(db, videoId)
  const files = await listAddedFiles(db, videoId)
  const managed = await listAuditRowsOf(slowQueryDb, accountId, videoId, MAX_AUDIT_EVENTS)
  const events = [
    happened(video.uploadTimeS, 'video:created', null),
    ...generations.flatMap(({ number: generation, createdAtS, postersExtractedAtS, finishedAtS }) => [
      happened(createdAtS, 'encode:began', { generation }),
      happened(postersExtractedAtS, 'posters:extracted', { generation }),
      happened(finishedAtS, 'encode:finished', { generation }),
    ]),
    ...files.map(({ type, createdAtS, language, id }) => happened(createdAtS, `${type}:added`, { fileId: id, language })),
    ...managed.map(({ details, ...event }) => ({ ...event, details: details === null ? null : JSON.parse(details) })),
  ]
    .filter((event) => event !== undefined)
    .toSorted((a, b) => b.atS - a.atS)
  return { video, events }
}

function happened(atS: number | null, kind: string, details: HistoryEvent['details']): HistoryEvent | undefined {
  return atS === null ? undefined : { atS, kind, actor: null, details }
}
