import { test as vitestTest } from 'vitest'
import { type Chance, isLong, newChance } from './seeded-random.ts'

type Run<T extends unknown[]> = (...row: T) => Promise<void> | void

/** What a file of sampled tests uses in place of vitest's `test`. */
export type SampledTest = {
  (name: string, run: Run<[]>, timeoutMs?: number): void
  /** Each row is a test of its own: the sample has some of them. */
  each<T>(rows: readonly T[]): (name: string, run: Run<[T]>, timeoutMs?: number) => void
}

/**
 * For suites that are too long for every run: `npm test` makes a seeded sample of their tests, and `npm run test:long` makes all.
 * @returns `draw`, to be called once, after the last test of the file
 */
export function sampledTests(suite: string, size: number): { test: SampledTest; draw(): void } {
  const tests: (() => void)[] = []
  const plain = (name: string, run: Run<[]>, timeout?: number) => void tests.push(() => vitestTest(name, { timeout }, run))
  const each: SampledTest['each'] = (rows) => (name, run, timeout) => {
    for (const row of rows) tests.push(() => vitestTest.for([row])(name, { timeout }, (given) => run(given)))
  }
  return {
    test: Object.assign(plain, { each }),
    draw() {
      for (const register of sampleOf(suite, tests, size)) register()
    },
  }
}

/** All of these, or in a short run a seeded sample of them, in their order. */
export function sampleOf<T>(suite: string, all: readonly T[], size: number): T[] {
  return isLong ? [...all] : drawSome(all, size, newChance(suite))
}

/** So many of these, in their order. */
export function drawSome<T>(all: readonly T[], size: number, chance: Chance): T[] {
  const drawn = all.map((_, index) => ({ index, lot: chance.next() })).sort((a, b) => a.lot - b.lot)
  const chosen = new Set(drawn.slice(0, size).map(({ index }) => index))
  return all.filter((_, index) => chosen.has(index))
}
