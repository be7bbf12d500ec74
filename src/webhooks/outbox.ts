import type { Db } from '../db/database.ts'
import type { WebhookEvent } from './event.ts'
import { type EventVideo, findEventVideos, insertDelivery, takeSequences } from './outbox-store.ts'

/**
 * Puts an event of each video into the outbox of every endpoint of its account that hears it, inside the transaction that makes it
 * true: both or neither. An account without such an endpoint pays one look into an index.
 * @param videoIds of one account; not yet tombstones, for a deleted video has lost its tags
 * @param more fields for the payload, which must be nobody's secret
 */
export async function addVideoEvents(
  tx: Db,
  event: WebhookEvent,
  videoIds: readonly string[],
  more: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  const hooks = await takeSequences(tx, event, videoIds)
  if (hooks.length === 0) return
  const videos = await findEventVideos(tx, videoIds)
  // By the wall clock: it tells the owner when. What came first is told by the sequence.
  const timeMs = Date.now()
  for (const hook of hooks) {
    for (const [index, video] of videos.entries()) {
      const sequence = hook.lastSequence - videoIds.length + 1 + index
      const body = { webhookId: hook.id, event, time: timeMs, sequence, payload: { ...payloadOf(video), ...more } }
      await insertDelivery(tx, hook, { sequence, event, timeMs, body: JSON.stringify(body) })
    }
  }
}

/** A delivery stays below 20 kB, whatever a video is called and however many tags it carries. */
const MAX_TAG_BYTES = 12_000

/** The words of the wire (wire-contract.md, section 7). */
function payloadOf({ id, title, uploadTimeS, tags, durationS, status, statusReason }: EventVideo) {
  const length = Math.round(durationS * 1000) / 1000
  const reason = statusReason === null ? {} : { statusReason }
  return { id, title, upload_time: uploadTimeS, tags: firstThatFit(tags, MAX_TAG_BYTES), length, status, ...reason }
}

function firstThatFit(tags: readonly string[], maxBytes: number): string[] {
  let bytes = 0
  return tags.filter((tag) => {
    bytes += Buffer.byteLength(JSON.stringify(tag)) + 1
    return bytes <= maxBytes
  })
}
