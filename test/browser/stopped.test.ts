import { expect, test } from 'vitest'
import { openPlayer, playerAddress } from './player.ts'
import { startWithSmallVideo } from './videos.ts'

const shared = startWithSmallVideo()

test('a player whose owner stops it says so by itself, and has nothing left to play', async () => {
  const otp = await shared.reelgate.owner.issueOtp(shared.reelgate.videoId, { userId: 'ann' })
  const player = await openPlayer(await shared.chromium.newContext(), playerAddress(shared.reelgate.url, otp))
  await player.shows('ready')
  await player.play()
  await player.playsPast(1)
  expect((await shared.reelgate.owner.call('DELETE', '/api/sessions?userId=ann')).status).toBe(200)
  await player.shows('refused', 'session-ended.stopped')
  expect(await player.sentence()).toBe(
    'The owner of this video has stopped playback. Ask the owner of this site if you may watch on.',
  )
  expect((await player.video()).durationS).toBeNaN()
  await player.keepPicture('stopped')
})
