/** Why an alert was raised. The numbers of each are in docs/operations.md. */
export const ALERT_CAUSES = ['keys-drawn', 'key-pace-ignored', 'many-places', 'otp-reused', 'rule-refused'] as const
export type AlertCause = (typeof ALERT_CAUSES)[number]
