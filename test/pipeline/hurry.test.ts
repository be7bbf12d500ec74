import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { makeFilm } from '../films.ts'
import { startReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'

test('until a film can be played, its other pictures do not take the cores that its first ones need', async () => {
  const reelgate = await startReelgate({ env: { REELGATE_ENCODERS: '2' }, wrapper: ['taskset', '-c', '0,1'] })
  const videoId = await reelgate.owner.upload('A film', await makeFilm({ seconds: 14, size: '640x360', sound: false }))
  const seen = new Set<string>()
  for (let isReady = false; !isReady; await pause(5)) {
    const sql = `select status, (select group_concat(first_segment order by first_segment) from chunk where video_id = id and state = 'running') as running from video where id = ?`
    const [film] = readRows<{ status: string; running: string | null }>(reelgate, sql, videoId)
    isReady = film?.status === 'ready'
    if (!isReady && film?.running) seen.add(film.running)
  }
  expect([...seen]).toEqual(['0'])
})
