import type { Mark } from './marks.ts'

/** The answer to `redeem` and to `page`. @see playback protocol, section 2 */
export type SessionAnswer = {
  session: string
  pageId: string
  video: { id: string; title: string; durationS: number; aspectRatio: number | string | null }
  playlist: string
  marks: Mark[]
  resumeAtS: number
  beatEveryMs: number
  leaseMs: number
  maxSpeed: number
  endsAtS: number
  idleEndsS: number
  /** Where the OTP forces one: hold the rendition whose bitrate is nearest. */
  forcedBitrateKbps?: number | null
}

export type RedeemBody = {
  otp: string
  videoId?: string
  publicKey: string
  ticket: string
  ancestors?: string[]
  support?: { mse: boolean; managed: boolean }
}

export type PlayState = 'playing' | 'stalled' | 'paused' | 'ended'
export type Beat = { state: PlayState; positionS: number; rate: number; bufferS: number }

/** Enough to tell our server's answer from a captive portal's page. */
export function isSessionAnswer(value: unknown): value is SessionAnswer {
  if (typeof value !== 'object' || value === null) return false
  return 'session' in value && typeof value.session === 'string' && 'video' in value && typeof value.video === 'object'
}
