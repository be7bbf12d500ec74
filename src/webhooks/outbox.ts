import type { Db } from '../db/database.ts'
import type { WebhookEvent } from './event.ts'
import { type EventVideo, findEventVideos, insertDelivery, takeSequence, takeSequences } from './outbox-store.ts'

/**
 * Adds a delivery of the event for each video and each subscribed webhook of its account, in the transaction that causes the event, so
 * that there is neither without the other. Without a subscribed webhook this costs one index look-up.
 * @param videoIds of one account; not yet tombstones, because a deleted video has lost its tags
 * @param extraFields of the payload; no secrets
 */
export async function addVideoEvents(
  tx: Db,
  event: WebhookEvent,
  videoIds: readonly string[],
  extraFields: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  const webhooks = await takeSequences(tx, event, videoIds)
  if (webhooks.length === 0) return
  const videos = await findEventVideos(tx, videoIds)
  // The wall clock, because owners read it. The order is given by the sequence.
  const timeMs = Date.now()
  for (const webhook of webhooks) {
    for (const [index, video] of videos.entries()) {
      const sequence = webhook.lastSequence - videoIds.length + 1 + index
      const body = { hookId: webhook.id, event, time: timeMs, sequence, payload: { ...toPayload(video), ...extraFields } }
      await insertDelivery(tx, webhook, { sequence, event, timeMs, body: JSON.stringify(body) })
    }
  }
}

/**
 * Adds a delivery of an event that is about no video for each webhook of an account that names the event, in the transaction that causes
 * it. Those for all events do not get it: an alert repeats what other events say.
 */
export async function addAccountEvent(
  tx: Db,
  event: WebhookEvent,
  accountId: string,
  payload: Readonly<Record<string, unknown>>,
): Promise<void> {
  const timeMs = Date.now()
  for (const webhook of await takeSequence(tx, event, accountId)) {
    const sequence = webhook.lastSequence
    const body = { hookId: webhook.id, event, time: timeMs, sequence, payload }
    await insertDelivery(tx, webhook, { sequence, event, timeMs, body: JSON.stringify(body) })
  }
}

/** Keeps a delivery below 20 kB, however long a video's title and its own fields, and however many its tags. */
const MAX_TAG_BYTES = 12_000

/** With the field names of wire-contract.md, section 7. */
function toPayload({ id, title, uploadTimeS, tags, durationS, status, ...rest }: EventVideo) {
  const length = Math.round(durationS * 1000) / 1000
  const { statusReason, externalId, metadata, uploadReference, duplicateOf } = rest
  const reason = statusReason === null ? {} : { statusReason }
  const reference = uploadReference === null ? {} : { reference: uploadReference }
  const pairs: unknown = metadata === null ? undefined : JSON.parse(metadata)
  const own = {
    ...(duplicateOf !== null && { duplicateOf }),
    ...(externalId !== null && { externalId }),
    ...(pairs !== undefined && { metadata: pairs }),
    ...reference,
  }
  const maxTagBytes = MAX_TAG_BYTES - Buffer.byteLength(JSON.stringify(own))
  return { id, title, upload_time: uploadTimeS, tags: takeWithinBytes(tags, maxTagBytes), length, status, ...reason, ...own }
}

function takeWithinBytes(tags: readonly string[], maxBytes: number): string[] {
  let bytes = 0
  return tags.filter((tag) => {
    bytes += Buffer.byteLength(JSON.stringify(tag)) + 1
    return bytes <= maxBytes
  })
}
