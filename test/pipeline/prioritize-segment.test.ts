import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'

test('until a video can be played, its other frames do not take the cores that its first ones need', async () => {
  const reelgate = await startReelgate({ env: { REELGATE_ENCODERS: '2' }, wrapper: ['taskset', '-c', '0,1'] })
  const videoId = await reelgate.owner.upload('A video', await makeVideo({ seconds: 14, size: '640x360', audioTrack: false }))
  const seen = new Set<string>()
  for (let isReady = false; !isReady; await pause(5)) {
    const sql = `select status, first_segment from video left join chunk on video_id = id and state = 'running' where id = ? order by 2`
    const runs = readRows<{ status: string; first_segment: number | null }>(reelgate, sql, videoId)
    isReady = runs[0]?.status === 'ready'
    const running = runs.map(({ first_segment }) => first_segment).filter((segment) => segment !== null)
    if (!isReady && running.length > 0) seen.add(running.join())
  }
  expect([...seen]).toEqual(['0'])
})
