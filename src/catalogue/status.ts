import type { Db } from '../db/database.ts'
import type { WebhookEvent } from '../webhooks/event.ts'
import { addVideoEvents } from '../webhooks/outbox.ts'
import type { GenerationKey } from './generation-key.ts'

/** A video's states as the contract spells them (wire-contract.md, section 1). */
export const VIDEO_STATUSES = ['PRE-Upload', 'Queued', 'Processing', 'ready', 'Not a media file', 'Encoding error'] as const
export type VideoStatus = (typeof VIDEO_STATUSES)[number]

/** The states from which each state can be entered. No video moves backwards; the only step after `ready` is a late failure of a chunk. */
const ENTERED_FROM: Record<VideoStatus, readonly VideoStatus[]> = {
  'PRE-Upload': [],
  Queued: ['PRE-Upload'],
  Processing: ['Queued'],
  ready: ['Processing'],
  'Not a media file': ['Queued', 'Processing'],
  'Encoding error': ['Queued', 'Processing', 'ready'],
}

/** The webhook event of entering a state. */
const EVENTS: Partial<Record<VideoStatus, WebhookEvent>> = {
  ready: 'video:ready',
  'Not a media file': 'video:failed',
  'Encoding error': 'video:failed',
}

/**
 * Moves a video forward and adds its webhook event, in the caller's transaction.
 * @param reason of a failure, in words for the owner
 * @returns false when the video is deleted, or in a state from which `to` cannot be entered: another change was first
 */
export async function moveStatus(tx: Db, videoId: string, to: VideoStatus, reason?: string): Promise<boolean> {
  const moved = await tx
    .updateTable('video')
    .set({ status: to, ...(reason === undefined ? {} : { statusReason: reason }) })
    .where('id', '=', videoId)
    .where('status', 'in', ENTERED_FROM[to])
    .where('deletedAtS', 'is', null)
    .executeTakeFirst()
  if (moved.numUpdatedRows === 0n) return false
  const event = EVENTS[to]
  if (event) await addVideoEvents(tx, event, [videoId])
  return true
}

/**
 * Has the work on a failed video begin again: the only step back, which an owner asks for.
 * @returns false when it has not failed, or is deleted
 */
export async function requeueFailed(tx: Db, videoId: string, to: 'Queued' | 'Processing'): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('video')
    .set({ status: to, statusReason: null })
    .where('id', '=', videoId)
    .where('status', 'in', ['Not a media file', 'Encoding error'])
    .where('deletedAtS', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/**
 * Adds a sentence for the owner to a generation's reason, which is its video's while that plays it. A sentence that it already has is not
 * repeated.
 */
export async function setStatusReason(tx: Db, { videoId, generation }: GenerationKey, reason: string): Promise<void> {
  const video = await tx
    .selectFrom('video')
    .select('statusReason')
    .where(({ and }) => and({ id: videoId, generation }))
    .where('deletedAtS', 'is', null)
    .executeTakeFirst()
  const own = tx.updateTable('generation').where('videoId', '=', videoId).where('number', '=', generation)
  if (video) {
    const statusReason = addSentence(video.statusReason, reason)
    await tx.updateTable('video').set({ statusReason }).where('id', '=', videoId).execute()
    await own.set({ reason: statusReason }).execute()
    return
  }
  const row = await tx
    .selectFrom('generation')
    .select('reason')
    .where(({ and }) => and({ videoId, number: generation }))
    .executeTakeFirst()
  if (row) await own.set({ reason: addSentence(row.reason, reason) }).execute()
}

function addSentence(before: string | null, sentence: string): string {
  if (before === null || before === '') return sentence
  return before.includes(sentence) ? before : `${before} ${sentence}`
}
