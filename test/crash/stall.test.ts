import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { listFiles, listSegments, untilFinished } from '../data-folder.ts'
import { startReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { answerOf } from '../viewer.ts'

test('F-32: a server that is stopped for five seconds continues: sessions play, no stream slot is lost to another, no chunk is begun twice', async () => {
  const reelgate = await startReelgate({ video: await makeVideo() })
  const { owner, videoId: playing } = reelgate
  const [viewer, rival] = [reelgate.newViewer(), reelgate.newViewer()]
  for (const browser of [viewer, rival]) await browser.redeem(await owner.issueOtp(playing, { userId: 'ann', streamLimit: 1 }))
  const otp = await owner.issueOtp(playing)
  const waiting = reelgate.newViewer()
  await waiting.openPage()

  const videoId = await owner.upload('being encoded', await makeVideo({ seconds: 24, size: '160x90' }))
  await expect.poll(() => runsOf(videoId).length, { interval: 10 }).toBeGreaterThan(0)
  expect((await viewer.key(0)).status).toBe(200)
  process.kill(reelgate.pid, 'SIGSTOP')
  const asked = [answerOf(rival.key(0)), waiting.redeem(otp), viewer.key(0), owner.list()] as const
  await pause(5000) // the fault itself
  process.kill(reelgate.pid, 'SIGCONT')
  const [second, redeemed, key, list] = await Promise.all(asked)
  expect(redeemed.playing).toBe(true)
  expect(key.status).toBe(200)
  expect(list.count).toBe(2)
  expect(second).toContain('stream-limit')
  expect((await viewer.key(0)).status).toBe(200)

  await untilFinished(reelgate, videoId)
  expect(readRows(reelgate, 'select attempt from chunk where video_id = ? and attempt <> 1', videoId)).toEqual([])
  const files = (await listFiles(reelgate, `segments/${videoId}`)).filter((name) => name.endsWith('.m4s'))
  expect(files).toHaveLength(listSegments(reelgate, videoId).length)
  expect((await fetch(`${reelgate.url}/readyz`)).status).toBe(200)

  function runsOf(id: string) {
    return readRows(reelgate, `select 1 from chunk where video_id = ? and state = 'running'`, id)
  }
})
