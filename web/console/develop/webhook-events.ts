import type { WebhookEvent } from '../../../src/webhooks/event.ts'

/** What an owner reads for each event. */
export const EVENTS: Readonly<Record<WebhookEvent, string>> = {
  'video:ready': 'A video can be played',
  'video:readyall': 'A video is encoded whole',
  'video:failed': 'A video could not be encoded',
  'video:replaced': 'A video plays another file',
  'video:deleted': 'A video was deleted',
  'video:chapters': 'The chapters of a video were changed',
  'video:transcribed': 'Captions were made of the speech of a video, or could not be',
  'video:audio': 'An added audio track can be played, or has failed',
  'otp:reused': 'An OTP was used a second time',
  'session:suspicious': 'Suspicious playback',
  'viewer:completed': 'A viewer watched 90 % of a video',
  alert: 'Every alert',
}

export const ALL_EVENTS = '*'

export function describeEvent(event: string): string {
  if (event === ALL_EVENTS) return 'All but alerts'
  return Object.entries(EVENTS).find(([name]) => name === event)?.[1] ?? event
}
