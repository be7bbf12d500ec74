/** Why an alert was raised. The numbers of each are in docs/operations.md. */
const PLAYBACK_CAUSES = ['keys-drawn', 'key-pace-ignored', 'many-places', 'otp-reused', 'rule-refused'] as const
const OPERATIONS_CAUSES = [
  'disk-nearly-full',
  'bucket-away',
  'bucket-back',
  'storage-nearly-used',
  'encode-failed',
  'webhook-disabled',
  'webhook-retries-late',
  'api-key-ends',
  'backup-old',
  'sandbox-missing',
  'encoder-missing',
  'worker-silent',
  'worker-suspended',
  'proxy-unknown',
  'bucket-not-direct',
  'playback-worse',
] as const
export const ALERT_CAUSES = [...PLAYBACK_CAUSES, ...OPERATIONS_CAUSES] as const
export type AlertCause = (typeof ALERT_CAUSES)[number]
export type OperationsCause = (typeof OPERATIONS_CAUSES)[number]

/** Whether it is about a viewer, and not about the installation. */
export function isAboutPlayback(cause: AlertCause): boolean {
  return PLAYBACK_CAUSES.some((known) => known === cause)
}
