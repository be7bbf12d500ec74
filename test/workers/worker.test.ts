import { expect, test } from 'vitest'
import { untilFinished } from '../data-folder.ts'
import { startReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { addWorker, startWorker } from './worker-process.ts'

// A server without encoders of its own, and a worker in a process of its own that reaches it over HTTP on this machine.

const WITHOUT_ENCODERS = { REELGATE_ENCODERS: '0' }

test('J01: a worker encodes a video to the end, and it plays', async () => {
  const reelgate = await startReelgate({ env: WITHOUT_ENCODERS })
  startWorker(reelgate.url, await addWorker(reelgate, 'office'))
  const videoId = await reelgate.owner.upload('A video', await makeVideo({ seconds: 14 }))
  await untilFinished(reelgate, videoId)
  expect(await reelgate.owner.video(videoId)).toMatchObject({ status: 'ready' })
  const viewer = reelgate.newViewer()
  expect(await viewer.redeem(await reelgate.owner.issueOtp(videoId))).toMatchObject({ playing: true })
  expect((await viewer.key(0)).status).toBe(200)
  const chunks = readRows(reelgate, 'select state, worker_id is not null as by_worker from chunk where video_id = ?', videoId)
  expect(chunks.length).toBeGreaterThan(2)
  expect(new Set(chunks.map(({ state, by_worker }) => `${state} ${by_worker}`))).toEqual(new Set(['done 1']))
})
