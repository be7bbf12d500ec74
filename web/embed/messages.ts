// What a page and the player in its frame send each other (wire-contract.md, section 8). No message carries a key, a proof, an OTP or an
// address, and none makes the player send a request that the viewer's own clicks would not.

import type { ApiEvents, ThemeOption, VideoEventName } from './reelgate.d.ts'

/**
 * To the other window, before there is a connection. A page says `hello`, the player `ready` when it starts and after each `hello`; these
 * two go to any origin. `connect` goes to the player's origin alone, with the port that carries everything else. `otpNeeded`: to a page that
 * uses none of our scripts, when the viewer asks for a new OTP. `fullscreen` asks the page to make the frame as large as its viewport, or no
 * longer; the page answers with the same message how it is now. Pages without our scripts may do that, too.
 */
export type Greeting =
  | { reelgate: 'hello' | 'otpNeeded' }
  | { reelgate: 'ready'; pageLoad: string }
  | { reelgate: 'connect'; left?: Position }
  | { reelgate: 'fullscreen'; isFullscreen: boolean }

/** Where a viewer left a video, in seconds: for the next session, where the frame may store nothing. */
export type Position = { videoId: string; atS: number }

/** How the player looks, as far as the page decides; also options of the player's address. The player checks each value. */
export const THEME_OPTIONS = [
  'primaryColor',
  'surfaceColor',
  'borderRadius',
  'fontFamily',
] as const satisfies readonly ThemeOption[]

export type TimeRange = readonly [startS: number, endS: number]

/** Events of `video`: those of a video element. */
export const VIDEO_EVENTS = [
  ...(['loadstart', 'progress', 'suspend', 'abort', 'error', 'emptied', 'stalled'] as const),
  ...(['loadedmetadata', 'loadeddata', 'canplay', 'canplaythrough', 'playing', 'waiting'] as const),
  ...(['seeking', 'seeked', 'ended', 'durationchange', 'timeupdate', 'play', 'pause', 'ratechange'] as const),
  ...(['resize', 'volumechange'] as const),
] as const satisfies readonly VideoEventName[]

/** Properties of the video element, as they are when the message leaves the player. */
export type VideoState = {
  currentTime: number
  duration: number
  paused: boolean
  ended: boolean
  seeking: boolean
  muted: boolean
  volume: number
  playbackRate: number
  loop: boolean
  defaultPlaybackRate: number
  preservesPitch: boolean
  readyState: number
  networkState: number
  videoWidth: number
  videoHeight: number
  error: { code: number; message: string } | null
  buffered: readonly TimeRange[]
  played: readonly TimeRange[]
  seekable: readonly TimeRange[]
}

export const SETTABLE_PROPERTIES = [
  ...(['currentTime', 'muted', 'volume', 'playbackRate', 'loop'] as const),
  ...(['defaultPlaybackRate', 'preservesPitch'] as const),
] as const
export type SettableProperty = (typeof SETTABLE_PROPERTIES)[number]

export type PlayerMethod =
  | ('play' | 'pause' | 'getMetaData' | 'updatePlayerConfig' | 'untilReady')
  | ('getTotalPlayed' | 'getTotalCovered' | 'getTotalCoveredArray')
  | ('getCaptionLanguages' | 'setCaptionLanguage' | 'hideCaptions' | 'setTranscript')
  | ('getAudioTracks' | 'setAudioTrack')
  | ('getVideoQualities' | 'setVideoQuality' | 'enableAdaptiveVideo' | 'getChapters')

/** Page to player, through the port. */
export type PageMessage =
  | { call: number; method: PlayerMethod; argument?: unknown }
  | { set: SettableProperty; value: number | boolean }

/** Player to page. `videoState`: after the call, whose event comes later. `loaded`: the loading events so far, for listeners that are added later. */
export type PlayerMessage =
  | { event?: string; state: VideoState; loaded: readonly string[] }
  | { apiEvent: ApiEvent }
  /** Before `otpNeeded`. */
  | { left: Position }
  /** The viewer asks for it by a click: a page that gives none is reloaded. */
  | { asksForOtp: true }
  | { answer: number; value?: unknown; videoState?: VideoState; error?: { name: string; message: string } }

/** Full screen is the page's own: the frame's, not the video's. */
type ReportedName = Exclude<keyof ApiEvents, 'fullscreenChange'>

export type ApiEvent = { [Name in ReportedName]: { name: Name; value: ApiEvents[Name] } }[ReportedName]

export function isPosition(value: unknown): value is Position {
  return typeof value === 'object' && value !== null && 'atS' in value && Number.isFinite(value.atS) && 'videoId' in value
}

export function isGreeting(data: unknown): data is Greeting {
  return typeof data === 'object' && data !== null && 'reelgate' in data
}
