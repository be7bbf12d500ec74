import type { SessionBudgets } from '../../src/playback/keys/session-budgets.ts'
import type { Beat } from '../../src/playback/serve.ts'
import type { Chance } from '../seeded-random.ts'

// People who watch, on a clock that is moved. The player is a model of ours: playback-protocol.md, section 6, "Player".

const WINDOW_S = 12
const SEGMENT_S = 4
const STEP_S = 0.1
const BUFFER_S = 12
const BUFFER_AFTER_SEEK_S = 4
const AFTER_SEEK_S = 2.5
const BEAT_EVERY_S = 6
const CHANGES_EVERY_S = 1
const SPEEDS = [0.75, 1, 1.25, 1.5, 1.75, 2]

/** What a viewer does besides watching. */
export type Habit =
  | 'changes the speed'
  | 'pauses'
  | 'seeks in bursts'
  | 'lets the tab sleep'
  | 'watches again'
  | 'has a bad network'
export const HABITS: readonly Habit[] = [
  'changes the speed',
  'pauses',
  'seeks in bursts',
  'lets the tab sleep',
  'watches again',
  'has a bad network',
]

export type Trace = { durationS: number; speed: number; habits: readonly Habit[] }

type Clock = { nowS: number }

/** @param onBeat called with each beat that arrives
 * @returns the longest time in seconds for which the picture stood still because a key was not released yet */
export function watch(
  trace: Trace,
  budgets: SessionBudgets,
  clock: Clock,
  chance: Chance,
  onBeat: (beat: Beat) => void = () => undefined,
): number {
  const player = new Player(trace, budgets, clock, chance)
  player.onBeat = onBeat
  const endS = clock.nowS + 2 * trace.durationS
  while (clock.nowS < endS && !player.hasEnded) {
    clock.nowS += STEP_S
    player.step()
  }
  return player.longestWaitS
}

/** People who watch at the same time. @returns the longest wait of each, as `watch` */
export function watchTogether(
  people: readonly { trace: Trace; budgets: SessionBudgets; startsAfterS: number }[],
  clock: Clock,
  chance: Chance,
): number[] {
  const endS = clock.nowS + 2 * Math.max(...people.map(({ trace, startsAfterS }) => trace.durationS + startsAfterS))
  const players = people.map(
    ({ trace, budgets, startsAfterS }) => new Player(trace, budgets, clock, chance, clock.nowS + startsAfterS),
  )
  while (clock.nowS < endS && players.some(({ hasEnded }) => !hasEnded)) {
    clock.nowS += STEP_S
    for (const player of players) if (!player.hasEnded) player.step()
  }
  return players.map(({ longestWaitS }) => longestWaitS)
}

class Player {
  longestWaitS = 0
  onBeat: (beat: Beat) => void = () => undefined
  hasEnded = false
  readonly #trace: Trace
  readonly #budgets: SessionBudgets
  readonly #clock: Clock
  readonly #chance: Chance
  readonly #keys = new Set<number>()
  #positionS = 0
  #bufferedToS = 0
  #speed: number
  /** The speed that the last refusal allows, until the key is there. */
  #maxRate: number | undefined
  #requestAgainAtS = 0
  #lastReportS: number
  #lastBeatS: number
  #lastChangeBeatS = Number.NEGATIVE_INFINITY
  /** Whether it has seeked since the last beat, and where it played before. */
  #hasSeeked = false
  #leftAtS: number | undefined
  #seekedAtS = Number.NEGATIVE_INFINITY
  #awayUntilS: number
  #waitS = 0
  #nextActionAtS: number
  /** Seeks of a burst that are still to come. */
  #seeksLeft = 0

  constructor(trace: Trace, budgets: SessionBudgets, clock: Clock, chance: Chance, startsAtS = clock.nowS) {
    this.#trace = trace
    this.#budgets = budgets
    this.#clock = clock
    this.#chance = chance
    this.#speed = trace.speed
    this.#awayUntilS = startsAtS
    this.#lastReportS = startsAtS
    this.#lastBeatS = startsAtS
    this.#nextActionAtS = startsAtS + this.#nextPauseS()
  }

  /** What happens until now: call it after each step of the clock. */
  step(): void {
    const { nowS } = this.#clock
    if (nowS < this.#awayUntilS) return
    if (nowS >= this.#nextActionAtS) this.#act(nowS)
    this.#buffer(nowS)
    this.#play()
    this.#report(nowS)
  }

  #nextPauseS(): number {
    return this.#trace.habits.includes('seeks in bursts') ? this.#chance.between(90, 150) : this.#chance.between(20, 300)
  }

  #act(nowS: number): void {
    const { habits, durationS } = this.#trace
    const chance = this.#chance
    const habit = this.#seeksLeft > 0 ? 'seeks in bursts' : habits[Math.floor(chance.between(0, habits.length))]
    this.#nextActionAtS = nowS + this.#nextPauseS()
    if (habit === 'changes the speed') this.#speed = SPEEDS[Math.floor(chance.between(0, SPEEDS.length))] ?? 1
    if (habit === 'pauses') this.#awayUntilS = nowS + chance.between(2, 600)
    if (habit === 'lets the tab sleep') this.#awayUntilS = nowS + chance.between(60, 3600)
    if (habit === 'watches again') this.#seek(Math.max(0, this.#positionS - chance.between(10, 300)))
    if (habit !== 'seeks in bursts') return
    if (this.#seeksLeft === 0) this.#seeksLeft = Math.floor(chance.between(1, 9))
    this.#seeksLeft--
    this.#seek(chance.between(0, durationS - 1))
    if (this.#seeksLeft > 0) this.#nextActionAtS = nowS + chance.between(1, 4)
  }

  #seek(toS: number): void {
    if (!this.#hasSeeked) this.#leftAtS = this.#positionS
    this.#hasSeeked = true
    this.#positionS = toS
    this.#bufferedToS = Math.floor(toS / SEGMENT_S) * SEGMENT_S
    this.#seekedAtS = this.#clock.nowS
    this.#requestAgainAtS = 0
    this.#maxRate = undefined
    this.#waitS = 0
  }

  #buffer(nowS: number): void {
    const aheadS = nowS - this.#seekedAtS < AFTER_SEEK_S ? BUFFER_AFTER_SEEK_S : BUFFER_S
    while (this.#bufferedToS - this.#positionS < aheadS && this.#bufferedToS < this.#trace.durationS) {
      const window = Math.floor(this.#bufferedToS / WINDOW_S)
      if (!this.#keys.has(window) && !this.#request(window, nowS)) return
      this.#bufferedToS += SEGMENT_S
    }
  }

  #request(window: number, nowS: number): boolean {
    if (nowS < this.#requestAgainAtS) return false
    this.#lastReportS = nowS
    const wait = this.#budgets.takeWindow(window)
    this.#maxRate = wait?.maxRate
    if (!wait) this.#keys.add(window)
    const isSlow = this.#trace.habits.includes('has a bad network')
    this.#requestAgainAtS = nowS + (wait ? wait.waitMs / 1000 : 0) + (isSlow ? this.#chance.between(0, 0.5) : 0)
    return !wait
  }

  #play(): void {
    const { durationS } = this.#trace
    const rate = Math.min(this.#speed, this.#maxRate ?? Number.POSITIVE_INFINITY)
    const playableToS = Math.min(this.#bufferedToS, durationS)
    this.#positionS = Math.min(playableToS, this.#positionS + rate * STEP_S)
    this.hasEnded = this.#positionS >= durationS
    const waits = this.#positionS >= playableToS && !this.hasEnded && this.#maxRate !== undefined
    this.#waitS = waits ? this.#waitS + STEP_S : 0
    this.longestWaitS = Math.max(this.longestWaitS, this.#waitS)
  }

  /**
   * A beat, skipped once if a key was requested, and one after a seek, for a burst once a second: `web/player/beats.ts`. On a bad
   * network one of three is lost.
   */
  #report(nowS: number): void {
    const isAfterSeek = this.#hasSeeked && nowS - this.#lastChangeBeatS >= CHANGES_EVERY_S
    const isDue = nowS - this.#lastReportS >= BEAT_EVERY_S || nowS - this.#lastBeatS >= 2 * BEAT_EVERY_S
    if (!isAfterSeek && !isDue) return
    if (this.#hasSeeked) this.#lastChangeBeatS = nowS
    this.#lastReportS = nowS
    this.#lastBeatS = nowS
    const beat: Beat = { state: 'playing', positionS: this.#positionS, rate: this.#speed }
    if (this.#leftAtS !== undefined) beat.leftAtS = this.#leftAtS
    this.#hasSeeked = false
    this.#leftAtS = undefined
    if (!this.#trace.habits.includes('has a bad network') || this.#chance.next() > 1 / 3) {
      this.#budgets.recordPlaying()
      this.onBeat(beat)
    }
  }
}
