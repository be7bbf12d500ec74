import type { ServerKey } from './proof.ts'
import { readTheme, type Theme } from './theme.ts'

/** What the server wrote into the page. `rootPath` leads from the page to the installation's root: `../` or `../../`. */
export type PageValues = ServerKey & { proofNonce: string; ticket: string; rootPath: string }

/** What the embedder wrote into the address. Everything that has not the form it should have counts as absent. */
export type PlayerOptions = {
  otp?: string
  /** From `playbackInfo`: 32 lower-case hex. */
  videoId?: string
  session?: string
  theme: Theme
  captionLanguage?: string
  /** A language tag. */
  language?: string
  /** Seconds, from `t`. */
  startAtS?: number
  litemode: boolean
  autoplay: boolean
  loop: boolean
  controls: 'on' | 'off' | 'native'
  showsTitle: boolean
  transcript: boolean
  /** Ids of the lessons in their order, that of this video among them or not; empty: the player offers none. */
  lessons: readonly string[]
}

/** @throws Error when the page is not one of ours */
export function parsePageValues(json: string): PageValues {
  const value: unknown = JSON.parse(json)
  if (typeof value !== 'object' || value === null) throw new Error('The page carries no values')
  const values: Record<string, unknown> = { ...value }
  const read = (name: keyof PageValues): string => {
    const text = values[name]
    if (typeof text !== 'string') throw new Error(`The page lacks its ${name}`)
    return text
  }
  return {
    proofNonce: read('proofNonce'),
    serverKey: read('serverKey'),
    serverKeyId: read('serverKeyId'),
    ticket: read('ticket'),
    rootPath: read('rootPath'),
  }
}

export function parseOptions(search: string): PlayerOptions {
  const query = new URLSearchParams(search)
  const controls = query.get('controls')
  return {
    otp: matching(query.get('otp'), /^[A-Za-z0-9]{64}$/),
    videoId: readVideoId(query.get('playbackInfo')),
    session: matching(query.get('session'), /^[A-Za-z0-9_-]{22}$/),
    theme: readTheme(Object.fromEntries(query)),
    captionLanguage: matching(query.get('ccLanguage'), /^[A-Za-z0-9-]{2,35}$/),
    language: matching(query.get('lang'), /^[A-Za-z0-9-]{2,35}$/),
    startAtS: readSeconds(query.get('t')),
    litemode: isOn(query.get('litemode')),
    autoplay: isOn(query.get('autoplay')),
    loop: isOn(query.get('loop')),
    controls: controls === 'off' || controls === 'native' ? controls : 'on',
    showsTitle: isOn(query.get('title') ?? 'on'),
    transcript: isOn(query.get('transcript')),
    lessons: (query.get('next') ?? '').split(/[\s,]+/).filter((id) => VIDEO_ID.test(id)),
  }
}

const VIDEO_ID = /^[0-9a-f]{32}$/

/** `90`, `90.5` or `90s`. */
function readSeconds(text: string | null): number | undefined {
  const [, seconds] = /^(\d{1,6}(?:\.\d+)?)s?$/.exec(text ?? '') ?? []
  return seconds === undefined ? undefined : Number(seconds)
}

/** The address after redeem: the session's id instead of the OTP, every other option kept. Begins with `?`. */
export function searchOfSession(search: string, session: string): string {
  const query = new URLSearchParams(search)
  query.delete('otp')
  query.delete('playbackInfo')
  query.delete('session')
  return `?${new URLSearchParams([['session', session], ...query])}`
}

function isOn(value: string | null): boolean {
  return value !== null && value !== 'false' && value !== '0' && value !== 'off'
}

function matching(value: string | null, form: RegExp): string | undefined {
  return value !== null && form.test(value) ? value : undefined
}

function readVideoId(playbackInfo: string | null): string | undefined {
  if (playbackInfo === null) return undefined
  try {
    // `+` of standard base64 arrives as a space when the embedder did not encode it.
    const value: unknown = JSON.parse(atob(playbackInfo.replaceAll(' ', '+')))
    const videoId = typeof value === 'object' && value !== null && 'videoId' in value ? value.videoId : undefined
    return typeof videoId === 'string' ? matching(videoId, VIDEO_ID) : undefined
  } catch {
    return undefined // the OTP names the video; a mangled hint is no reason to refuse
  }
}
