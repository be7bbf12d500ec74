import { addInterval, encodeIntervals } from '../../src/viewers/intervals.ts'
import type { Reelgate } from '../in-process.ts'
import { changeRows, readRows } from '../rows.ts'

/** As if a viewer had watched the first seconds of the video today. */
export function haveWatched(reelgate: Reelgate, userId: string, seconds: number): void {
  const [account] = readRows<{ id: string }>(reelgate, 'select id from account')
  const nowS = Math.floor(Date.now() / 1000)
  const watched = [encodeIntervals(addInterval([], 0, seconds)), seconds]
  const key = [account?.id ?? '', userId, reelgate.videoId]
  const day = Math.floor(nowS / 86_400)
  changeRows(
    reelgate,
    'insert into viewing (account_id, user_id, video_id, intervals, watched_s, position_s, began_at_s, last_at_s) values (?, ?, ?, ?, ?, ?, ?, ?)',
    ...key,
    ...watched,
    seconds,
    nowS,
    nowS,
  )
  changeRows(
    reelgate,
    'insert into viewing_day (account_id, user_id, video_id, intervals, watched_s, day) values (?, ?, ?, ?, ?, ?)',
    ...key,
    ...watched,
    day,
  )
}
