/** Why a viewer is refused, as the player shows it (playback-protocol.md, section 9). */
export const REFUSALS = {
  'bad-request': { status: 400, message: 'The request is not well formed.' },
  'proof-stale': { status: 401, message: 'The proof is too old. Sign a new one with the newest nonce.' },
  'proof-replayed': { status: 401, message: 'The proof was used before. Sign a new one with the next number.' },
  'not-allowed': { status: 403, message: 'This was opened in another browser, or not by the player.' },
  'otp-used': { status: 403, message: 'This link was already used. Reload the page you came from to get a new one.' },
  'otp-expired': { status: 403, message: 'This link has expired. Reload the page you came from to get a new one.' },
  'otp-unknown': { status: 403, message: 'This link is not known. Reload the page you came from to get a new one.' },
  'site-not-allowed': { status: 403, message: 'This video may not be shown on this site. Watch it on the site it belongs to.' },
  'place-not-allowed': {
    status: 403,
    message: 'This video may not be watched from where you are. If you use a VPN, switch it off, then try again.',
  },
  'video-not-ready': { status: 409, message: 'The video is being prepared.' },
  'video-gone': { status: 403, message: 'This video was deleted.' },
  'session-ended': { status: 403, message: 'Playback has ended. Reload the page you came from to watch again.' },
  'file-gone': { status: 404, message: 'This file is not there any more.' },
  'segment-replaced': { status: 404, message: 'This part of the video was repaired. Its new address is in the playlist.' },
  'page-replaced': { status: 409, message: 'The video plays in another tab of this browser.' },
  'key-pace': { status: 429, message: 'The next part of the video can be played in a moment.' },
  'slow-down': { status: 429, message: 'Too many requests come from here. Wait a moment.' },
  'stream-limit': {
    status: 409,
    message: 'This viewer already watches on as many screens as allowed. Stop one of them, then try again.',
  },
  internal: { status: 500, message: 'Something went wrong on this server. Try again in a moment.' },
  busy: { status: 503, message: 'This part of the video is being prepared.' },
  unavailable: { status: 503, message: 'The server cannot start a video now. Try again in a moment.' },
} as const

export type RefusalCode = keyof typeof REFUSALS

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
export type RefusalDetails = {
  why?: string
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
    super(REFUSALS[code].message)
    this.code = code
    this.details = details
  }
}
