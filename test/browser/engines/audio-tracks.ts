import { expect, test } from 'vitest'
import { untilFinished } from '../../data-folder.ts'
import type { Reelgate } from '../../in-process.ts'
import { playerAddress } from '../player.ts'
import { makeLanguages } from '../tones.ts'
import type { Tab } from './engine.ts'
import { lookAt } from './player.ts'

/** The default track of the video, which is in English, and the next one. */
const [ENGLISH_ID, GERMAN_ID] = [2, 3]

/** Less than `audio-tracks` checks in Chromium: Firefox has no `AudioContext` that runs on machines without a sound device. */
export function testAudioTracks(location: () => { tab: Tab; reelgate: Reelgate }) {
  test('T-05: another audio track chosen by its key in mid-play is loaded, and the video plays on', async () => {
    const { tab, reelgate } = location()
    const videoId = await reelgate.owner.upload('Languages', await makeLanguages())
    await untilFinished(reelgate, videoId)
    await tab.goto(playerAddress(reelgate.url, await reelgate.owner.issueOtp(videoId)))
    const player = lookAt(tab)
    await player.shows('ready')
    await player.click('.big-play')
    await player.playsPast(0.3)
    const loaded = () => player.run(listLoadedRenditions, null)
    expect(await loaded()).toContain(ENGLISH_ID)
    expect(await loaded()).not.toContain(GERMAN_ID)
    await tab.press('a')
    await expect.poll(loaded).toContain(GERMAN_ID)
    await player.playsPast((await player.video()).timeS + 1)
    expect(await player.video()).toMatchObject({ paused: false })
  })
}

function listLoadedRenditions(): number[] {
  const names = performance.getEntriesByType('resource').map(({ name }) => /\/(\d+)\/\d+\.m4s$/.exec(name)?.[1])
  return [...new Set(names)].filter((id) => id !== undefined).map(Number)
}

declare const performance: { getEntriesByType(type: 'resource'): { name: string }[] }
