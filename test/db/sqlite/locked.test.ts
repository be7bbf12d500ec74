import { join } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { untilFinished } from '../../data-folder.ts'
import { startReelgate } from '../../reelgate.ts'
import { readRows } from '../../rows.ts'
import { makeVideo } from '../../videos.ts'

test('F-16: while another program locks the database, lists and playback continue and writes are rejected with a sentence; then everything continues', async () => {
  const reelgate = await startReelgate({ video: await makeVideo() })
  const { owner, videoId: video } = reelgate
  const later = await owner.upload('in mid-encode', await makeVideo({ seconds: 20, size: '320x240' }))
  const viewer = reelgate.newViewer()
  expect(await viewer.redeem(await owner.issueOtp(video))).toMatchObject({ playing: true })
  const next = await owner.issueOtp(video)

  const other = new SqliteDatabase(join(reelgate.dataDir, 'reelgate.db'))
  onTestFinished(() => void other.close())
  other.exec('begin immediate')
  let isRefused = false
  const refused = owner.call('POST', `/api/videos/${video}/otp`, { body: {} }).finally(() => {
    isRefused = true
  })
  const nextViewer = reelgate.newViewer()
  const refusedRedeem = nextViewer.redeem(next)
  // Each of these is answered while the write still waits.
  expect((await owner.list()).count).toBe(2)
  expect((await owner.video(video)).status).toBe('ready')
  expect(await viewer.playlist('main')).toContain('#EXTM3U')
  expect(isRefused).toBe(false)
  const answer = await refused
  expect(answer.status).toBe(503)
  expect(answer.headers.get('retry-after')).toMatch(/^\d+$/)
  expect(await answer.json()).toMatchObject({ message: expect.stringContaining('in use by another program') })
  expect(await refusedRedeem).toMatchObject({ status: 503, body: { code: 'unavailable' } })
  other.exec('rollback')

  expect(await nextViewer.redeem(next)).toMatchObject({ playing: true })
  expect(await owner.issueOtp(video)).toHaveLength(64)
  await untilFinished(reelgate, later)
  expect(readRows(reelgate, 'select 1 from otp')).toHaveLength(3)
})
