import { MAX_SPEED } from '../../src/playback/keys/key-budget.ts'
import type { SessionBudgets } from '../../src/playback/keys/session-budgets.ts'
import { LEASE_S } from '../../src/playback/lease.ts'
import type { Beat } from '../../src/playback/serve.ts'

// What is missing in the beats of a program that only claims to play at the highest speed: decision 54.

export type BeatAt = Beat & { atS: number }

/** Beats arrive a little late. */
const JITTER_S = 1

/**
 * The longest time in seconds for which a session played at the highest speed without anything that people do: a pause, a seek, another
 * speed, a hidden tab (no beats for a lease), a wait (the position falls behind).
 */
export function longestSteadyPlayS(beats: readonly BeatAt[]): number {
  let longestS = 0
  let beganAtS: number | undefined
  let last: BeatAt | undefined
  for (const beat of beats) {
    if (!last || !isSteady(last, beat)) beganAtS = beat.atS
    longestS = Math.max(longestS, beat.atS - (beganAtS ?? beat.atS))
    last = beat
  }
  return longestS
}

function isSteady(last: BeatAt, beat: BeatAt): boolean {
  const passedS = beat.atS - last.atS
  return (
    [last, beat].every(({ state, rate }) => state === 'playing' && rate === MAX_SPEED) &&
    beat.leftAtS === undefined &&
    passedS <= LEASE_S &&
    beat.positionS - last.positionS >= MAX_SPEED * passedS - JITTER_S
  )
}

/** What a program does when a key is refused: it claims to play on, or to play as slowly as the player would. */
export type Program = 'claims to play on' | 'waits as the player does'

const WINDOW_S = 12
const BUFFER_S = 12
const BEAT_EVERY_S = 6

/**
 * A program that asks for the keys of a video in their order, each when a player at the highest speed would, and sends that player's
 * beats.
 * @param onBeat called with each of its beats
 */
export function collectKeys(
  program: Program,
  durationS: number,
  budgets: SessionBudgets,
  clock: { nowS: number },
  onBeat: (beat: Beat) => void,
): void {
  let windowCount = 0
  let positionS = 0
  while (positionS < durationS) {
    let rate = MAX_SPEED
    while (windowCount * WINDOW_S < Math.min(durationS, positionS + MAX_SPEED * BEAT_EVERY_S + BUFFER_S)) {
      const wait = budgets.takeWindow(windowCount)
      if (wait && program === 'waits as the player does') rate = wait.maxRate
      if (wait) break
      windowCount++
    }
    clock.nowS += BEAT_EVERY_S
    positionS = Math.min(durationS, positionS + rate * BEAT_EVERY_S)
    budgets.recordPlaying()
    onBeat({ state: 'playing', positionS, rate: MAX_SPEED })
  }
}
