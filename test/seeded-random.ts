/** Chance that can be repeated: the seed is printed, and `REELGATE_SEED` sets it. */
export type Chance = {
  /** At least 0, below 1. */ next(): number /** From `low` to below `high`. */
  between(low: number, high: number): number
}

/** Whether this is `npm run test:long`: long suites run whole instead of as a seeded sample. */
export const isLong = process.env.REELGATE_LONG === '1'

/** How often a thing of chance is tried in a short run and in a long one. */
export function rounds(short: number, long: number): number {
  return isLong ? long : short
}

/** @param fixedSeed for a run that is the same each time, unless `REELGATE_SEED` is set */
export function newChance(name: string, fixedSeed?: number): Chance {
  const seed = Number(process.env.REELGATE_SEED ?? fixedSeed ?? Math.floor(Math.random() * 2 ** 31))
  process.stderr.write(`${name}: REELGATE_SEED=${seed}\n`)
  return chanceOf(seed)
}

/** The same each time. */
export function chanceOf(seed: number): Chance {
  let state = seed
  // mulberry32
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return { next, between: (low, high) => low + (high - low) * next() }
}
