import type { BeatBody, DamageBody, QualityBody, RedeemBody, SessionBody } from '../../src/http/play/wire.ts'

// The server's schemas are the shapes; this side only reads them.
export type { RedeemBody, SessionBody as SessionAnswer }
export type Beat = BeatBody
export type Quality = QualityBody
export type Damage = DamageBody
export type PlayState = BeatBody['state']

/** Enough to distinguish our server's response from a captive portal's page. */
export function isSessionAnswer(value: unknown): value is SessionBody {
  if (typeof value !== 'object' || value === null) return false
  return 'session' in value && typeof value.session === 'string' && 'video' in value && typeof value.video === 'object'
}
