import { REFUSALS, type RefusalCode } from '../error-catalogue.ts'

/** Why a session ended; kept for a day, to be shown to its viewer. */
export const END_REASONS = [
  'viewer-left',
  'idle',
  'time',
  'stopped',
  'video-deleted',
  'account-disabled',
  'video-replaced',
  'otp-reused',
  'taken',
] as const
export type EndReason = (typeof END_REASONS)[number]

/** Facts that go with a refusal. */
type RefusalDetails = {
  why?: string
  /** The formats that its browser cannot decode. */
  lacks?: readonly string[]
  /** When to retry. */
  waitMs?: number
  /** The highest speed at which the next key comes in time. */
  maxRate?: number
  /** For the `Retry-After` header, in seconds. */
  retryAfterS?: number
}

/** A viewer's request that is refused. */
export class PlaybackRefusal extends Error {
  readonly code: RefusalCode
  readonly details: RefusalDetails
  constructor(code: RefusalCode, details: RefusalDetails = {}) {
    super(REFUSALS[code].sentence)
    this.code = code
    this.details = details
  }
}
