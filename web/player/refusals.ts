import type { EndReason } from '../../src/playback/refusal.ts'

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

type SentenceKey =
  | `refusal.${Exclude<RefusalCode, 'session-ended'>}`
  | `refusal.ended.${EndReason}`
  | `waiting.${WaitingCode | 'retry'}`
  | `action.${Action}`

/** Whole sentences with `{placeholders}`, so that a translation replaces the table and nothing else. */
const SENTENCES = {
  'refusal.not-allowed': 'This video was opened in another browser.',
  'refusal.otp-used': 'This link was already used.',
  'refusal.otp-expired': 'This link has expired.',
  'refusal.otp-unknown': 'This link is not valid.',
  'refusal.site-not-allowed': 'This video may not be shown on this site. Watch it on the site it belongs to.',
  'refusal.place-not-allowed':
    'This video may not be watched from where you are. If you use a VPN, switch it off, then try again.',
  'refusal.video-gone': 'This video is no longer available. Go back to the page you came from, or ask the owner of this site.',
  'refusal.video-failed': 'This video could not be prepared for playing. Please contact the owner of this site.',
  'refusal.page-replaced': 'This video is playing in another tab or window.',
  'refusal.stream-limit': 'You are already watching on as many screens as allowed. Stop one of them, then try again.',
  'refusal.internal': 'Something went wrong while playing this video.',
  'refusal.network': 'The server does not answer. Check your connection, then try again.',
  'refusal.insecure-page': 'This video plays only on a secure page. Open {page} with https:// in front.',
  'refusal.sandboxed-frame':
    'This site shows the video in a sandboxed frame, where it cannot play. The site’s owner can add allow-same-origin to the sandbox of the frame.',
  'refusal.unsupported-browser':
    'This browser cannot play this video: it lacks {lacks}. Use a current Chrome, Edge, Firefox or Safari.',
  'refusal.watermark-blocked': 'Playback stopped because something on this page hides your watermark.',
  'refusal.ended.viewer-left': 'This video was closed a while ago.',
  'refusal.ended.idle': 'This video was paused for a long time.',
  'refusal.ended.time': 'The time for watching this video is over.',
  'refusal.ended.stopped': 'The owner of this video has stopped playback. Ask the owner of this site if you may watch on.',
  'refusal.ended.video-deleted':
    'This video is no longer available. Go back to the page you came from, or ask the owner of this site.',
  'refusal.ended.account-disabled': 'This video is not available at the moment. Try again later, or ask the owner of this site.',
  'refusal.ended.video-replaced': 'A new version of this video is ready.',
  'refusal.ended.otp-reused': 'This link was opened a second time, so playback was stopped.',
  'refusal.ended.taken': 'You started a video on another screen, so this one stopped.',
  'waiting.video-not-ready': 'This video is being prepared. It can be played here as soon as it is ready.',
  'waiting.busy': 'Waiting for the server to prepare this part of the video.',
  'waiting.unavailable': 'The server cannot start videos at the moment. Trying again.',
  'waiting.slow-down': 'The server is busy. Playback continues by itself.',
  'waiting.key-pace': 'You are ahead of the video. Playback continues in a moment.',
  'waiting.stream-limit': 'Still playing on another screen. It continues here when that one is closed.',
  'waiting.retry': 'Trying again in {seconds} s',
  'waiting.network': 'The server does not answer. Playback continues when it does.',
  'waiting.slow-network': 'Your connection is slow. Playback continues as soon as enough is loaded.',
  'waiting.offline': 'You are offline. Playback continues when the connection is back.',
  'action.try-again': 'Try again',
  'action.play-here': 'Play here',
  'action.reload': 'Reload',
  'action.continue': 'Continue',
} as const satisfies Record<SentenceKey, string>

/** Whether it is a reason that has a sentence. */
export function isEndReason(why: unknown): why is EndReason {
  return `refusal.ended.${why}` in SENTENCES
}

/** Where a new OTP of the same video would play: the sentence that follows the reason, unless a button gets one. */
const NEW_OTP_REMEDIES: ReadonlyMap<RefusalCode | EndReason, string> = new Map<RefusalCode | EndReason, string>([
  ['not-allowed', 'Open it from the page you came from to watch it here.'],
  ['otp-used', 'Reload the page you came from to get a new one.'],
  ['otp-expired', 'Reload the page you came from to get a new one.'],
  ['otp-unknown', 'Reload the page you came from to get a new one.'],
  ['viewer-left', 'Reload the page you came from to continue.'],
  ['idle', 'Reload the page you came from to continue.'],
  ['time', 'Reload the page you came from to watch on.'],
  ['video-replaced', 'Reload the page you came from to watch it.'],
  ['otp-reused', 'Reload the page you came from to get a new one.'],
  ['taken', 'Reload the page you came from to watch here.'],
])

const FORMAT_NAMES = { h264: 'H.264 video', aac: 'AAC audio' } as const

/** What the server says that a browser lacks, in words; empty: nothing that is known here. */
export function formatNames(codes: unknown): string {
  const known = Object.entries(FORMAT_NAMES).filter(([code]) => Array.isArray(codes) && codes.includes(code))
  return known.map(([, name]) => name).join(' and ')
}

/**
 * The sentences for a refusal: `refusal.<code>`, or `refusal.ended.<why>` for a session that ended, and what helps.
 * @param mayAskForOtp whether there is a button that gets a new OTP
 */
export function refusalSentence(refusal: Refusal, mayAskForOtp = false): string {
  const { code, why = 'time', page = 'it', lacks } = refusal
  const reason = code === 'session-ended' ? SENTENCES[`refusal.ended.${why}`] : SENTENCES[`refusal.${code}`]
  const remedy = mayAskForOtp ? undefined : findNewOtpRemedy(refusal)
  return [reason.replace('{page}', page).replace('{lacks}', lacks || 'a decoder'), ...(remedy ? [remedy] : [])].join(' ')
}

export function waitingSentence(waiting: Waiting): string {
  return SENTENCES[`waiting.${waiting.code}`]
}

/** The countdown below the sentence; empty when there is none. */
export function retrySentence({ retryInS }: Waiting): string {
  return retryInS === undefined ? '' : SENTENCES['waiting.retry'].replace('{seconds}', String(retryInS))
}

/**
 * What can be done and the words for it; undefined: nothing in this frame.
 * @param mayAskForOtp whether there is a page around that can give a new OTP
 */
export function refusalAction(refusal: Refusal, mayAskForOtp = false): { action: Action; label: string } | undefined {
  const action = mayAskForOtp && needsNewOtp(refusal) ? 'continue' : ACTIONS[refusal.code]
  return action && { action, label: SENTENCES[`action.${action}`] }
}

/** Whether a new OTP of the same video would play. */
export function needsNewOtp(refusal: Refusal): boolean {
  return findNewOtpRemedy(refusal) !== undefined
}

function findNewOtpRemedy({ code, why = 'time' }: Refusal): string | undefined {
  return NEW_OTP_REMEDIES.get(code === 'session-ended' ? why : code)
}

/** Whether playback can continue from its buffers when the viewer tries again. Every other refusal drops them. */
export function mayResume({ code }: Refusal): boolean {
  return ACTIONS[code] === 'try-again'
}
