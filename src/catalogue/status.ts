import type { Db } from '../db/database.ts'
import type { WebhookEvent } from '../webhooks/event.ts'
import { addVideoEvents } from '../webhooks/outbox.ts'

/** A video's states as the contract spells them (wire-contract.md, section 1). */
export const VIDEO_STATUSES = ['PRE-Upload', 'Queued', 'Processing', 'ready', 'Not a media file', 'Encoding error'] as const
export type VideoStatus = (typeof VIDEO_STATUSES)[number]

/** From which states each can be entered. Nothing ever goes back; a late failure of a chunk is the one step after `ready`. */
const ENTERED_FROM: Record<VideoStatus, readonly VideoStatus[]> = {
  'PRE-Upload': [],
  Queued: ['PRE-Upload'],
  Processing: ['Queued'],
  ready: ['Processing'],
  'Not a media file': ['Queued', 'Processing'],
  'Encoding error': ['Queued', 'Processing', 'ready'],
}

/** What owners are told of when it is entered. */
const EVENTS: Partial<Record<VideoStatus, WebhookEvent>> = {
  ready: 'video:ready',
  'Not a media file': 'video:failed',
  'Encoding error': 'video:failed',
}

/**
 * Moves a video forward, with the event that its owner hears, inside the transaction that does the thing.
 * @param reason words for the owner, with a failure
 * @returns false when the video is not in a state that leads there, or is deleted: somebody else was first
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

/** Adds a sentence for the owner to a video without changing its state; once, however often it is said. */
export async function setStatusReason(tx: Db, videoId: string, reason: string): Promise<void> {
  const video = await tx.selectFrom('video').select('statusReason').where('id', '=', videoId).executeTakeFirst()
  const before = video?.statusReason ?? ''
  if (before.includes(reason)) return
  const statusReason = [before, reason].filter((sentence) => sentence !== '').join(' ')
  await tx.updateTable('video').set({ statusReason }).where('id', '=', videoId).where('deletedAtS', 'is', null).execute()
}
