import type { Db } from '../db/sqlite.ts'
import type { HookRow, VideoRow } from '../db/tables.ts'
import type { HookEvent } from './event.ts'

export type HearingHook = Pick<HookRow, 'id' | 'lastSequence' | 'disabledReason'>

/** The endpoints that hear an event of these videos, of one account. Each has a number for each of them; the last is `lastSequence`. */
export async function takeSequences(tx: Db, event: HookEvent, videoIds: readonly string[]): Promise<HearingHook[]> {
  return tx
    .updateTable('hook')
    .set((hook) => ({ lastSequence: hook('lastSequence', '+', videoIds.length) }))
    .where('accountId', 'in', (of) => of.selectFrom('video').select('accountId').where('id', 'in', videoIds))
    .where((hook) => hook.or([hook('event', 'is', null), hook('event', '=', event)]))
    .returning(['id', 'lastSequence', 'disabledReason'])
    .execute()
}

export type EventVideo = Pick<VideoRow, 'id' | 'title' | 'uploadTimeS' | 'durationS' | 'status'> & { tags: string[] }

/** More are never told. */
const MAX_TAGS = 1_000

export async function findEventVideos(db: Db, videoIds: readonly string[]): Promise<EventVideo[]> {
  const rows = await db
    .selectFrom('video')
    .select(['id', 'position', 'title', 'uploadTimeS', 'durationS', 'status'])
    .where('id', 'in', videoIds)
    .orderBy('position')
    .execute()
  const videos: EventVideo[] = []
  for (const { position, ...video } of rows) videos.push({ ...video, tags: await firstTags(db, position) })
  return videos
}

async function firstTags(db: Db, position: number): Promise<string[]> {
  const rows = await db
    .selectFrom('videoTag')
    .select('name')
    .where('position', '=', position)
    .orderBy('ordinal')
    .limit(MAX_TAGS)
    .execute()
  return rows.map(({ name }) => name)
}

/** What an endpoint that is switched off misses is listed as failed, so that its owner can have it replayed. */
export async function insertDelivery(
  tx: Db,
  { id: hookId, disabledReason }: HearingHook,
  delivery: { sequence: number; event: HookEvent; timeMs: number; body: string },
): Promise<void> {
  const state =
    disabledReason === null
      ? ({ state: 'waiting' } as const)
      : ({ state: 'failed', problem: disabledReason, finishedAtS: Math.floor(delivery.timeMs / 1000) } as const)
  await tx
    .insertInto('delivery')
    .values({ hookId, ...delivery, ...state })
    .execute()
}
