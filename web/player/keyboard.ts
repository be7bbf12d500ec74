export type KeyAction =
  | { action: 'toggle-play' | 'toggle-mute' | 'toggle-fullscreen' | 'toggle-captions' | 'show-keys' }
  | { action: 'seek-by'; seconds: number }
  | { action: 'seek-to'; share: number }
  | { action: 'volume-by'; step: number }
  | { action: 'speed-by'; steps: 1 | -1 }

export type KeyPress = { key: string; ctrlKey: boolean; altKey: boolean; metaKey: boolean }

const ACTIONS: Readonly<Record<string, KeyAction>> = {
  ' ': { action: 'toggle-play' },
  enter: { action: 'toggle-play' },
  k: { action: 'toggle-play' },
  arrowleft: { action: 'seek-by', seconds: -5 },
  arrowright: { action: 'seek-by', seconds: 5 },
  j: { action: 'seek-by', seconds: -10 },
  l: { action: 'seek-by', seconds: 10 },
  arrowup: { action: 'volume-by', step: 0.05 },
  arrowdown: { action: 'volume-by', step: -0.05 },
  m: { action: 'toggle-mute' },
  f: { action: 'toggle-fullscreen' },
  c: { action: 'toggle-captions' },
  '<': { action: 'speed-by', steps: -1 },
  '>': { action: 'speed-by', steps: 1 },
  home: { action: 'seek-to', share: 0 },
  end: { action: 'seek-to', share: 1 },
  '?': { action: 'show-keys' },
}

/** The keys as the viewer's list shows them. */
export const KEY_LIST: readonly (readonly [keys: string, meaning: string])[] = [
  ['Space, K or Enter', 'Play or pause'],
  ['← →', '5 seconds back or ahead'],
  ['J L', '10 seconds back or ahead'],
  ['0 – 9', 'To a tenth of the video'],
  ['Home End', 'To the beginning or the end'],
  ['↑ ↓', 'Louder or quieter'],
  ['M', 'Sound off or on'],
  ['C', 'Captions'],
  ['< >', 'Slower or faster'],
  ['F', 'Full screen'],
]

/** What a key asks for; undefined for keys that belong to the browser or to nobody. */
export function keyAction(press: KeyPress): KeyAction | undefined {
  if (press.ctrlKey || press.altKey || press.metaKey) return undefined
  if (/^[0-9]$/.test(press.key)) return { action: 'seek-to', share: Number(press.key) / 10 }
  const key = press.key.toLowerCase()
  return Object.hasOwn(ACTIONS, key) ? ACTIONS[key] : undefined
}

const RATES = [0.5, 0.75, 1, 1.25, 1.5, 1.75, 2] as const

/** The speeds on offer, ascending, up to what the server's pace allows. */
export function offeredRates(maxRate: number, wanted: readonly number[] = RATES): readonly number[] {
  return wanted.filter((rate) => rate <= Math.max(1, maxRate)).sort((one, other) => one - other)
}

/** The next faster or slower offered speed; the same one at either end. */
export function steppedRate(rates: readonly number[], rate: number, steps: 1 | -1): number {
  const next = steps > 0 ? rates.find((offered) => offered > rate) : rates.findLast((offered) => offered < rate)
  return next ?? rate
}
