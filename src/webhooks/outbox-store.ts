import { sql } from 'kysely'
import type { Db } from '../db/database.ts'
import { prepared } from '../db/prepared.ts'
import type { DeliveryRow, VideoRow, WebhookRow } from '../db/tables.ts'
import type { WebhookEvent } from './event.ts'

export type SubscribedWebhook = Pick<WebhookRow, 'id' | 'lastSequence' | 'disabledReason'>

/** The endpoints that receive an event of these videos of one account. Each has a sequence number for each video; the last is `lastSequence`. */
export async function takeSequences(tx: Db, event: WebhookEvent, videoIds: readonly string[]): Promise<SubscribedWebhook[]> {
  return tx
    .updateTable('webhook')
    .set((webhook) => ({ lastSequence: webhook('lastSequence', '+', videoIds.length) }))
    .where('accountId', 'in', (of) => of.selectFrom('video').select('accountId').where('id', 'in', videoIds))
    .where((webhook) => webhook.or([webhook('event', 'is', null), webhook('event', '=', event)]))
    .returning(['id', 'lastSequence', 'disabledReason'])
    .execute()
}

/** The endpoints of an account that name this event, each with its number for it: `lastSequence`. */
export async function takeSequence(tx: Db, event: WebhookEvent, accountId: string): Promise<SubscribedWebhook[]> {
  return tx
    .updateTable('webhook')
    .set((webhook) => ({ lastSequence: webhook('lastSequence', '+', 1) }))
    .where(({ and }) => and({ accountId, event }))
    .returning(['id', 'lastSequence', 'disabledReason'])
    .execute()
}

const EVENT_COLUMNS = [
  'id',
  'title',
  'uploadTimeS',
  'durationS',
  'status',
  'statusReason',
  'externalId',
  'metadata',
  'uploadReference',
] as const

export type EventVideo = Pick<VideoRow, (typeof EVENT_COLUMNS)[number]> & {
  /** Null: none, or one that is deleted. */
  duplicateOf: string | null
  tags: string[]
}

/** More are never sent. */
const MAX_TAGS = 1_000

export async function findEventVideos(db: Db, videoIds: readonly string[]): Promise<EventVideo[]> {
  const rows = await db
    .selectFrom('video')
    .select([...EVENT_COLUMNS, 'position'])
    .select(({ selectFrom }) =>
      selectFrom('video as other')
        .select('other.id')
        .whereRef('other.id', '=', 'video.duplicateOf')
        .where(sql<boolean>`coalesce(other.deleted_at_s, 0) = 0`)
        .as('duplicateOf'),
    )
    .where('id', 'in', videoIds)
    .orderBy('position')
    .execute()
  const videos: EventVideo[] = []
  for (const { position, ...video } of rows) {
    const tags = await firstTags(db, { position })
    videos.push({ ...video, tags: tags.rows.map(({ name }) => name) })
  }
  return videos
}

const firstTags = prepared<{ position: number }>()((db, value) =>
  db.selectFrom('videoTag').select('name').where('position', '=', value('position')).orderBy('ordinal').limit(MAX_TAGS),
)

// Prepared, as the tags are: hundreds of videos deleted in one call are thousands of these in one transaction.
const insert = prepared<Omit<DeliveryRow, 'attempts' | 'dueAtS' | 'triedAtS' | 'status'>>()((db, value) =>
  db.insertInto('delivery').values({
    webhookId: value('webhookId'),
    sequence: value('sequence'),
    event: value('event'),
    timeMs: value('timeMs'),
    body: value('body'),
    state: value('state'),
    problem: value('problem'),
    finishedAtS: value('finishedAtS'),
  }),
)

/** What an endpoint that is switched off misses is listed as failed, so that its owner can have it replayed. */
export async function insertDelivery(
  tx: Db,
  { id: webhookId, disabledReason }: SubscribedWebhook,
  delivery: { sequence: number; event: WebhookEvent; timeMs: number; body: string },
): Promise<void> {
  const state =
    disabledReason === null
      ? ({ state: 'waiting', problem: null, finishedAtS: null } as const)
      : ({ state: 'failed', problem: disabledReason, finishedAtS: Math.floor(delivery.timeMs / 1000) } as const)
  await insert(tx, { webhookId, ...delivery, ...state })
}
