export type KeyAction =
  | {
      kind:
        | 'toggle-play'
        | 'toggle-mute'
        | 'toggle-fullscreen'
        | 'toggle-captions'
        | 'toggle-transcript'
        | 'next-audio'
        | 'show-keys'
    }
  | { kind: 'seek-by'; seconds: number }
  | { kind: 'seek-to'; share: number }
  | { kind: 'volume-by'; step: number }
  | { kind: 'speed-by'; steps: 1 | -1 }
  | { kind: 'frame-by'; frames: 1 | -1 }
  | { kind: 'chapter-by'; steps: 1 | -1 }

type KeyPress = { key: string; ctrlKey: boolean; altKey: boolean; metaKey: boolean }

const ACTIONS: Readonly<Record<string, KeyAction>> = {
  ' ': { kind: 'toggle-play' },
  enter: { kind: 'toggle-play' },
  k: { kind: 'toggle-play' },
  arrowleft: { kind: 'seek-by', seconds: -5 },
  arrowright: { kind: 'seek-by', seconds: 5 },
  j: { kind: 'seek-by', seconds: -10 },
  l: { kind: 'seek-by', seconds: 10 },
  arrowup: { kind: 'volume-by', step: 0.05 },
  arrowdown: { kind: 'volume-by', step: -0.05 },
  m: { kind: 'toggle-mute' },
  f: { kind: 'toggle-fullscreen' },
  c: { kind: 'toggle-captions' },
  a: { kind: 'next-audio' },
  t: { kind: 'toggle-transcript' },
  '<': { kind: 'speed-by', steps: -1 },
  '>': { kind: 'speed-by', steps: 1 },
  ',': { kind: 'frame-by', frames: -1 },
  '.': { kind: 'frame-by', frames: 1 },
  n: { kind: 'chapter-by', steps: 1 },
  p: { kind: 'chapter-by', steps: -1 },
  home: { kind: 'seek-to', share: 0 },
  end: { kind: 'seek-to', share: 1 },
  '?': { kind: 'show-keys' },
}

/** The action of a key; undefined for keys of the browser and keys without an action. */
export function actionForKey(press: KeyPress): KeyAction | undefined {
  if (press.ctrlKey || press.altKey || press.metaKey) return undefined
  if (/^[0-9]$/.test(press.key)) return { kind: 'seek-to', share: Number(press.key) / 10 }
  const key = press.key.toLowerCase()
  return Object.hasOwn(ACTIONS, key) ? ACTIONS[key] : undefined
}

const RATES = [0.5, 0.75, 1, 1.25, 1.5, 1.75, 2] as const

/** The speeds on offer, ascending, up to what the server's pace allows. */
export function selectRates(maxRate: number, rates: readonly number[] = RATES): readonly number[] {
  return rates.filter((rate) => rate <= Math.max(1, maxRate)).sort((one, other) => one - other)
}

/** The next faster or slower offered speed; the same one at either end. */
export function stepRate(rates: readonly number[], rate: number, steps: 1 | -1): number {
  const next = steps > 0 ? rates.find((offered) => offered > rate) : rates.findLast((offered) => offered < rate)
  return next ?? rate
}

/** How far within a frame a step comes to be, as a share of it: away from its edges, which browsers round. */
const WITHIN_FRAME = { min: 0.25, max: 0.75 }

/**
 * A time within the next or the previous frame; within the same one at either end of the video.
 * @param frameRate as a playlist has it, in frames per second with three decimals
 */
export function stepFrame(timeS: number, frames: 1 | -1, frameRate: number, durationS: number): number {
  const rate = exactRate(frameRate)
  const at = timeS * rate
  const shown = Math.floor(at + 0.01) // a seek to where a frame begins is rounded to a microsecond
  const last = Math.max(0, Math.floor(durationS * rate + 0.01) - 1)
  const next = clamp(Math.min(shown, last) + frames, 0, last)
  return (next + clamp(at - shown, WITHIN_FRAME.min, WITHIN_FRAME.max)) / rate
}

/** 29.970 is 30000/1001: three decimals would be a frame off after hours. */
function exactRate(frameRate: number): number {
  const whole = Math.round(frameRate * 1.001)
  return Math.abs(whole / 1.001 - frameRate) < 0.001 ? whole / 1.001 : frameRate
}

function clamp(value: number, min: number, max: number): number {
  return Math.min(max, Math.max(min, value))
}
