import { LEASE_S } from '../lease.ts'

// How fast the keys of a video are released, in seconds of video: playback-protocol.md, section 6.

/** The speed at which a video may be watched. */
export const MAX_SPEED = 2

/** What a budget starts with, the most that it holds, and what it earns in a second of watching. */
export type Terms = { startS: number; capS: number; rate: number }

/** What is left of a budget, and when it last earned. */
export type Balance = { levelS: number; earnedAtS: number }

const MIN_START_S = 300
const MAX_START_S = 600
const MIN_CAP_S = 600
/** Of the budget of one viewer over all videos. */
const ALL_VIDEOS_S = 1200
/** As many videos as a viewer without a stream limit can watch at a time. */
const DEFAULT_STREAMS = 4

/** The budget for one video: the keys of a long one take half of its length at least. */
export function termsOfVideo(durationS: number): Terms {
  const startS = Math.min(durationS, Math.min(MAX_START_S, Math.max(MIN_START_S, durationS / 4)))
  return { startS, capS: Math.max(MIN_CAP_S, startS), rate: MAX_SPEED * Math.max(0.75, 1 - startS / durationS) }
}

/** The budget of one viewer over all videos. */
export function termsOfViewer(streamLimit: number | null): Terms {
  return { startS: ALL_VIDEOS_S, capS: ALL_VIDEOS_S, rate: MAX_SPEED * (streamLimit ?? DEFAULT_STREAMS) }
}

/** Adds what was earned since the last time. Silence earns one lease at most. */
export function earn(balance: Balance, { rate, capS }: Terms, nowS: number): void {
  const silenceS = Math.max(0, nowS - balance.earnedAtS)
  balance.levelS = Math.min(capS, balance.levelS + rate * Math.min(silenceS, LEASE_S))
  // The clocks of two servers differ a little: no time is earned twice.
  balance.earnedAtS = Math.max(balance.earnedAtS, nowS)
}

/** Sums of many parts of seconds are not exact. */
const ROUNDING_S = 1e-6

/** In how many seconds the budget holds this cost, if it earns all the time; 0: now. */
export function affordableInS({ levelS }: Balance, { rate }: Terms, costS: number): number {
  return levelS >= costS - ROUNDING_S ? 0 : (costS - levelS) / rate
}
