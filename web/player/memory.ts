// What this browser remembers of its viewer, for the next video or the next visit. Where storage is denied, nothing.

const SETTINGS = 'reelgate-settings'
const POSITIONS = 'reelgate-places'
const MAX_POSITIONS = 200
/** Nearer to an end of the video than this is no place to go on from. */
const MARGIN_S = 10

/** `captionStyle`: as it was stored, for `parseCaptionStyle`. */
type Settings = {
  rate?: number /** A language. */
  audio?: string /** '': off */
  captions?: string
  captionStyle?: Readonly<Record<string, unknown>>
}

export function readSettings(): Settings {
  const { rate, audio, captions, captionStyle } = read(SETTINGS)
  return {
    ...(typeof rate === 'number' ? { rate } : {}),
    ...(typeof audio === 'string' ? { audio } : {}),
    ...(typeof captions === 'string' ? { captions } : {}),
    ...(typeof captionStyle === 'object' && captionStyle !== null ? { captionStyle: { ...captionStyle } } : {}),
  }
}

export function rememberSettings(changes: Settings): void {
  write(SETTINGS, { ...readSettings(), ...changes })
}

/** Where the viewer left the video, in seconds; undefined at its beginning or end. */
export function readPosition(videoId: string): number | undefined {
  const position = read(POSITIONS)[videoId]
  return typeof position === 'number' && position > 0 ? position : undefined
}

export function rememberPosition(videoId: string, atS: number, durationS: number): void {
  const { [videoId]: _, ...others } = read(POSITIONS)
  const newest = Object.entries(others).slice(-MAX_POSITIONS + 1)
  const isWithin = atS > MARGIN_S && atS < durationS - MARGIN_S
  write(POSITIONS, Object.fromEntries(isWithin ? [...newest, [videoId, Math.round(atS)]] : newest))
}

function read(name: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(name) ?? '{}')
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

function write(name: string, value: object): void {
  try {
    localStorage.setItem(name, JSON.stringify(value))
  } catch {
    // full or denied: remembered on this page alone
  }
}
