import type { Messages } from './english.ts'

/** The labels of media-chrome's own elements: what it calls them, and their name here. */
export const BAR_LABELS = {
  mute: 'mute',
  Mute: 'mute',
  unmute: 'unmute',
  Unmute: 'unmute',
  volume: 'volume',
  seek: 'seek',
  'closed captions': 'closed-captions',
  'Enable captions': 'show-captions',
  'Disable captions': 'hide-captions',
  'enter fullscreen mode': 'enter-full-screen',
  'Enter fullscreen mode': 'enter-full-screen',
  'exit fullscreen mode': 'exit-full-screen',
  'Exit fullscreen mode': 'exit-full-screen',
  'playback time': 'playback-time',
  '{currentTime} of {totalTime}': 'time-of',
  'video not loaded, unknown time.': 'unknown-time',
  'media loading': 'media-loading',
  'video player': 'video-player',
  'chapter: {chapterName}': 'chapter-is',
  hour: 'hour',
  hours: 'hours',
  minute: 'minute',
  minutes: 'minutes',
  second: 'second',
  seconds: 'seconds',
} as const
type BarLabel = (typeof BAR_LABELS)[keyof typeof BAR_LABELS]

/** What the file of a language has. */
export type Language = { messages: Messages; bar: Readonly<Record<BarLabel, string>> }
