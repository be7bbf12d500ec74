import { expect, test } from 'vitest'
import { untilFinished } from '../../data-folder.ts'
import type { Reelgate } from '../../in-process.ts'
import { playerAddress } from '../player.ts'
import { ENGLISH, GERMAN, judgeSwitch, makeLanguages, readTones, recordTones, TONES } from '../tones.ts'
import type { Tab } from './engine.ts'
import { lookAt } from './player.ts'

/** What `audio-tracks` checks in Chromium. */
export function testAudioTracks(location: () => { tab: Tab; reelgate: Reelgate }) {
  test('T-05: another audio track chosen by its key in mid-play is audible within a second, without a gap', async () => {
    const { tab, reelgate } = location()
    const videoId = await reelgate.owner.upload('Languages', await makeLanguages())
    await untilFinished(reelgate, videoId)
    await tab.goto(playerAddress(reelgate.url, await reelgate.owner.issueOtp(videoId)))
    const player = lookAt(tab)
    await player.shows('ready')
    await player.click('.big-play')
    await player.playsPast(0.3)
    await player.run(
      recordTones,
      TONES.map(({ hz }) => hz),
    )
    const sounding = () => player.run(readTones, null)
    await expect.poll(async () => (await sounding()).at(-1)?.tone).toBe(ENGLISH)
    const fromS = (await sounding()).at(-1)?.atS ?? 0
    await tab.press('a')
    await expect.poll(async () => (await sounding()).at(-1)?.tone).toBe(GERMAN)
    await player.playsPast((await player.video()).timeS + 1)
    const { gapS, wrongS } = judgeSwitch(await sounding(), fromS, GERMAN)
    console.log('switch of audio tracks', { gapS, wrongS })
    expect(gapS).toBeLessThan(0.25)
    expect(wrongS).toBeLessThan(1)
  })
}
