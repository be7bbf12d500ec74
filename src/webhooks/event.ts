/** The events a webhook can subscribe to (wire-contract.md, section 7). */
export const WEBHOOK_EVENTS = [
  'video:ready',
  'video:readyall',
  'video:failed',
  'video:replaced',
  'video:deleted',
  'video:chapters',
  'video:transcribed',
  'video:audio',
  'otp:reused',
  'session:suspicious',
  'viewer:completed',
  'alert',
] as const
export type WebhookEvent = (typeof WEBHOOK_EVENTS)[number]
