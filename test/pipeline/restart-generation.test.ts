import { expect, test } from 'vitest'
import { hasFolder } from '../data-folder.ts'
import { startReelgate } from '../reelgate.ts'
import { changeRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'

test('a video that another encoder had begun starts again: new paths, new keys, its old session ended', async () => {
  const reelgate = await startReelgate({ video: await makeVideo({ seconds: 15, rate: 10 }) })
  const { owner, videoId } = reelgate
  const viewer = reelgate.newViewer()
  await viewer.redeem(await owner.issueOtp(videoId))
  const oldKey = Buffer.from(await (await viewer.key(0)).arrayBuffer())
  await reelgate.kill()

  // As after a kill of the other version, before the last chunk of video.
  changeRows(reelgate, `update generation set encoder = 'of another version', finished_at_s = null`)
  const last = `(select max(first_segment) from chunk where kind = 'video')`
  expect(changeRows(reelgate, `update chunk set state = 'pending' where kind = 'video' and first_segment = ${last}`)).toBe(1)
  const videoRenditions = `(select id from rendition where kind = 'video')`
  const lost = changeRows(reelgate, `delete from segment where number >= ${last} and rendition_id in ${videoRenditions}`)
  expect(lost).toBeGreaterThan(0)
  await reelgate.restart()

  const later = reelgate.newViewer()
  // A session that is opened before the server finds the other encoder's generation ends with it.
  const playsSecondGeneration = async () =>
    (await later.redeem(await owner.issueOtp(videoId))).playing && (await later.playlist('1')).includes(`/${videoId}/2/1/0.m4s`)
  await expect.poll(playsSecondGeneration).toBe(true)
  const { segments } = await later.download('1')
  expect(segments).toHaveLength(4)
  expect(Buffer.from(await (await later.key(0)).arrayBuffer())).not.toEqual(oldKey)
  expect(await hasFolder(reelgate, 'segments', `${videoId}/1`)).toBe(false)

  await viewer.openPage()
  viewer.newPage()
  const again = await viewer.reopen()
  expect(again.body).toMatchObject({ code: 'session-ended', why: 'video-replaced' })
})
