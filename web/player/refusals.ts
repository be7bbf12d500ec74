import type { EndReason } from '../../src/playback/refusal.ts'
import { ENGLISH, type TextKey } from '../languages/english.ts'
import { listWords, message } from './language.ts'

/** Every reason that stops the player. The first two rows come from the server, the third is found in the browser, its first reason by both. */
export const REFUSAL_CODES = [
  ...(['not-allowed', 'otp-used', 'otp-expired', 'otp-unknown', 'site-not-allowed', 'place-not-allowed'] as const),
  ...(['video-gone', 'video-failed', 'session-ended', 'page-replaced', 'stream-limit', 'internal'] as const),
  ...(['unsupported-browser', 'network', 'insecure-page', 'sandboxed-frame', 'watermark-blocked'] as const),
] as const
export type RefusalCode = (typeof REFUSAL_CODES)[number]

/** Waiting that ends by itself. */
export const WAITING_CODES = [
  ...(['video-not-ready', 'busy', 'unavailable', 'slow-down', 'key-pace', 'stream-limit', 'network', 'offline'] as const),
  'slow-network',
] as const
type WaitingCode = (typeof WAITING_CODES)[number]

/**
 * `why` belongs to `session-ended`, `page` (an address) to `insecure-page`, `lacks` (in words) to `unsupported-browser`, `waitMs` (until a
 * screen is free) to `stream-limit`.
 */
export type Refusal = { code: RefusalCode; why?: EndReason; page?: string; lacks?: string; waitMs?: number }
/** `progress` 0..1 of the video's preparation; `maxRate`: the highest speed at which the next key comes in time; `retryInS`: shown. */
export type Waiting = { code: WaitingCode; progress?: number; maxRate?: number; retryInS?: number }

/** The one thing a viewer can do in this frame. Where there is none, the sentence names the remedy, which is outside of it. */
type Action = 'try-again' | 'play-here' | 'reload' | 'continue'

const ACTIONS: Partial<Record<RefusalCode, Action>> = {
  'place-not-allowed': 'try-again',
  'page-replaced': 'play-here',
  'stream-limit': 'try-again',
  internal: 'reload',
  network: 'try-again',
  'watermark-blocked': 'reload',
}

/** Whether it is a reason that has a sentence. */
export function isEndReason(why: unknown): why is EndReason {
  return `refusal.ended.${why}` in ENGLISH
}

/** Where a new OTP of the same video would play: the sentence that follows the reason, unless a button gets one. */
const NEW_OTP_REMEDIES: ReadonlyMap<RefusalCode | EndReason, TextKey> = new Map<RefusalCode | EndReason, TextKey>([
  ['not-allowed', 'remedy.open-there'],
  ['otp-used', 'remedy.new-link'],
  ['otp-expired', 'remedy.new-link'],
  ['otp-unknown', 'remedy.new-link'],
  ['viewer-left', 'remedy.continue'],
  ['idle', 'remedy.continue'],
  ['time', 'remedy.watch-on'],
  ['video-replaced', 'remedy.watch-it'],
  ['otp-reused', 'remedy.new-link'],
  ['taken', 'remedy.watch-here'],
])

const FORMATS = ['h264', 'aac'] as const

/** What the server says that a browser lacks, in words; empty: nothing that is known here. */
export function formatNames(codes: unknown): string {
  return listWords(FORMATS.filter((code) => Array.isArray(codes) && codes.includes(code)).map((code) => message(`lacks.${code}`)))
}

/**
 * The sentences for a refusal: `refusal.<code>`, or `refusal.ended.<why>` for a session that ended, and what helps.
 * @param mayAskForOtp whether there is a button that gets a new OTP
 */
export function refusalSentence(refusal: Refusal, mayAskForOtp = false): string {
  const { code, why = 'time', page = '', lacks } = refusal
  const values = { page, lacks: lacks || message('lacks.decoder') }
  const remedy = mayAskForOtp ? undefined : findNewOtpRemedy(refusal)
  const reason = message(code === 'session-ended' ? `refusal.ended.${why}` : `refusal.${code}`, values)
  return [reason, ...(remedy ? [message(remedy)] : [])].join(' ')
}

export function waitingSentence(waiting: Waiting): string {
  return message(`waiting.${waiting.code}`)
}

/** The countdown below the sentence; empty when there is none. */
export function retrySentence({ retryInS }: Waiting): string {
  return retryInS === undefined ? '' : message('waiting.retry', { seconds: retryInS })
}

/**
 * What can be done and the words for it; undefined: nothing in this frame.
 * @param mayAskForOtp whether there is a page around that can give a new OTP
 */
export function refusalAction(refusal: Refusal, mayAskForOtp = false): { action: Action; label: string } | undefined {
  const action = mayAskForOtp && needsNewOtp(refusal) ? 'continue' : ACTIONS[refusal.code]
  return action && { action, label: message(`action.${action}`) }
}

/** Whether a new OTP of the same video would play. */
export function needsNewOtp(refusal: Refusal): boolean {
  return findNewOtpRemedy(refusal) !== undefined
}

function findNewOtpRemedy({ code, why = 'time' }: Refusal): TextKey | undefined {
  return NEW_OTP_REMEDIES.get(code === 'session-ended' ? why : code)
}

/** Whether playback can continue from its buffers when the viewer tries again. Every other refusal drops them. */
export function mayResume({ code }: Refusal): boolean {
  return ACTIONS[code] === 'try-again'
}
