import { performance } from 'node:perf_hooks'
import type { Database } from '../db/database.ts'
import { HIGH_WATER_MARK } from '../db/high-water-mark.ts'
import { findSetting, saveSetting } from '../db/setting.ts'

/**
 * The playback clock, in whole seconds: `max(wall clock, saved high-water mark)` at the start, from then on moved by the monotonic clock only.
 * It never goes back, so an expired OTP never revives and no session is stretched by a step of the wall clock (playback-protocol.md).
 * When the database has a clock, that is the wall clock, and it is read regularly: when it is ahead, this clock follows it.
 */
export type PlaybackClock = {
  nowS(): number
  /** The same with its fraction, for what is counted in less than seconds. */
  preciseNowS(): number
  /** What was saved before this start, at most 5 s before the last one ended; 0 at the first. */
  savedAtStartS: number
  stop(): Promise<void>
}

const SAVE_EVERY_MS = 5_000
const READ_EVERY_MS = 60_000

export async function startPlaybackClock(
  { db, write, serverClockS }: Pick<Database, 'db' | 'write' | 'serverClockS'>,
  wallNowS: () => number,
  saved: (markS: number) => Promise<void> = async () => undefined,
): Promise<PlaybackClock> {
  const savedAtStartS = Number((await findSetting(db, HIGH_WATER_MARK)) ?? 0)
  const startedMs = performance.now()
  const precisePassedS = () => (performance.now() - startedMs) / 1000
  let startS = Math.max(serverClockS ? await serverClockS() : wallNowS(), savedAtStartS)
  const nowS = () => Math.floor(startS + precisePassedS())

  async function follow(readS: () => Promise<number>) {
    const atS = await readS()
    startS = Math.max(startS, atS - precisePassedS())
  }

  let savedS = 0
  async function save() {
    if (nowS() === savedS) return
    savedS = nowS()
    const value = savedS
    await write((tx) => saveSetting(tx, HIGH_WATER_MARK, String(value)))
    await saved(value)
  }

  await save()
  // A failure is retried the next time: the database may be unavailable.
  const timers = [setInterval(() => save().catch(() => undefined), SAVE_EVERY_MS).unref()]
  if (serverClockS) timers.push(setInterval(() => follow(serverClockS).catch(() => undefined), READ_EVERY_MS).unref())
  return {
    nowS,
    preciseNowS: () => startS + precisePassedS(),
    savedAtStartS,
    async stop() {
      timers.forEach(clearInterval)
      await save()
    },
  }
}
