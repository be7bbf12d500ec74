import { performance } from 'node:perf_hooks'
import type { Db } from '../db/database.ts'
import { DATABASE_MARK } from '../db/mark.ts'
import type { Write } from '../db/write.ts'

/**
 * The playback clock, in whole seconds: `max(wall clock, saved mark)` at the start, from then on moved by the monotonic clock only.
 * It never goes back, so an expired OTP never revives and no session is stretched by a step of the wall clock (playback-protocol.md).
 */
export type PlaybackClock = {
  nowS(): number
  /** What was saved before this start, at most 5 s before the last one ended; 0 at the first. */
  savedAtStartS: number
  stop(): Promise<void>
}

const SAVE_EVERY_MS = 5_000

export async function startPlaybackClock(
  db: Db,
  write: Write,
  wallNowS: () => number,
  saved: (markS: number) => Promise<void> = async () => undefined,
): Promise<PlaybackClock> {
  const mark = await db.selectFrom('setting').select('value').where('name', '=', DATABASE_MARK).executeTakeFirst()
  const savedAtStartS = Number(mark?.value ?? 0)
  const startS = Math.max(wallNowS(), savedAtStartS)
  const startedMs = performance.now()
  const nowS = () => startS + Math.floor((performance.now() - startedMs) / 1000)

  let savedS = 0
  async function save() {
    if (nowS() === savedS) return
    savedS = nowS()
    const value = String(savedS)
    await write((tx) =>
      tx
        .insertInto('setting')
        .values({ name: DATABASE_MARK, value })
        .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
        .execute(),
    )
    await saved(Number(value))
  }

  await save()
  const timer = setInterval(() => save().catch(() => undefined), SAVE_EVERY_MS).unref()
  return {
    nowS,
    savedAtStartS,
    async stop() {
      clearInterval(timer)
      await save()
    },
  }
}
