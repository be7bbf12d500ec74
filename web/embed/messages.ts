// What a page and the player in its frame send each other (wire-contract.md, section 8). No message carries a key, a proof, an OTP or an
// address, and none makes the player send a request that the viewer's own clicks would not.

/**
 * To the other window, before there is a connection. A page says `hello`, the player `ready` when it starts and after each `hello`; these
 * two go to any origin. `connect` goes to the player's origin alone, with the port that carries everything else.
 */
export type Greeting = { reelgate: 'hello' } | { reelgate: 'ready'; pageLoad: string } | { reelgate: 'connect' }

export type TimeRange = readonly [startS: number, endS: number]

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
  buffered: readonly TimeRange[]
  played: readonly TimeRange[]
  seekable: readonly TimeRange[]
}

export type SettableProperty = 'currentTime' | 'muted' | 'volume' | 'playbackRate' | 'loop'

export type PlayerMethod = 'play' | 'pause' | 'getMetaData' | 'updatePlayerConfig'

/** Page to player, through the port. */
export type PageMessage =
  | { call: number; method: PlayerMethod; argument?: unknown }
  | { set: SettableProperty; value: number | boolean }

/** Player to page. `loaded`: the loading events so far, for listeners that are added later. */
export type PlayerMessage =
  | { event?: string; state: VideoState; loaded: readonly string[] }
  | { answer: number; value?: unknown; error?: { name: string; message: string } }

/** Width ÷ height, and seconds. */
export type MetaData = { title: string; duration: number; aspectRatio: number }

export function isGreeting(data: unknown): data is Greeting {
  return typeof data === 'object' && data !== null && 'reelgate' in data
}
