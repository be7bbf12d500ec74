import type { VideoStatus } from '../../../src/catalogue/status.ts'

type Look = { label: string; color: 'ok' | 'warn' | 'stop' | 'lamp' | 'gray' }

/** What an owner reads for each state of a video. */
export const STATUS_LOOKS: Readonly<Record<VideoStatus, Look>> = {
  'PRE-Upload': { label: 'Waiting for its file', color: 'gray' },
  Queued: { label: 'Queued', color: 'lamp' },
  Processing: { label: 'Processing', color: 'lamp' },
  ready: { label: 'Ready', color: 'ok' },
  'Not a media file': { label: 'Not a video', color: 'stop' },
  'Encoding error': { label: 'Failed', color: 'stop' },
}

export function lookOf(status: string): Look {
  return Object.entries(STATUS_LOOKS).find(([known]) => known === status)?.[1] ?? { label: status, color: 'gray' }
}

/** Whether the server still works on it, so that what is shown changes by itself. */
export function isUnderWay(status: string): boolean {
  return status === 'Queued' || status === 'Processing'
}
