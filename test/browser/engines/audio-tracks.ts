import { expect, test } from 'vitest'
import { untilFinished } from '../../data-folder.ts'
import type { Reelgate } from '../../in-process.ts'
import { audioOf, makeDub } from '../../pipeline/dubs.ts'
import { playerAddress } from '../player.ts'
import { makeLanguages, TONES } from '../tones.ts'
import type { Tab } from './engine.ts'
import { seek } from './in-page.ts'
import { lookAt } from './player.ts'

/** The default track of the video, which is in English, and the next one. */
const [ENGLISH_ID, GERMAN_ID] = [2, 3]

/** Less than `audio-tracks` checks in Chromium: Firefox has no `AudioContext` that runs on machines without a sound device. */
export function testAudioTracks(location: () => { tab: Tab; reelgate: Reelgate }) {
  test('T-05, T-17, T-25: another audio track chosen by its key in mid-play is loaded, and the video plays on; so does one that was added, and after its removal the default one', async () => {
    const { tab, reelgate } = location()
    const videoId = await reelgate.owner.upload('Languages', await makeLanguages(TONES.slice(0, 2)))
    await untilFinished(reelgate, videoId)
    const audio = audioOf({ owner: reelgate.owner, videoId })
    const dubId = await audio.add(await makeDub({ fromS: 0, toS: 40, seconds: 40 }))
    await audio.until(dubId, 'ready')
    await tab.goto(playerAddress(reelgate.url, await reelgate.owner.issueOtp(videoId)))
    const player = lookAt(tab)
    await player.shows('ready')
    await player.click('.big-play')
    await player.playsPast(0.3)
    const loaded = async () => (await player.run(listLoadedSegments, null)).map(({ rendition }) => rendition)
    const playsOn = async () => player.playsPast((await player.video()).timeS + 1)
    expect(await loaded()).toContain(ENGLISH_ID)
    for (const id of [GERMAN_ID, dubId]) {
      expect(await loaded()).not.toContain(id)
      await tab.press('a')
      await expect.poll(loaded).toContain(id)
      await playsOn()
    }
    expect((await audio.remove(dubId)).status).toBe(200)
    await player.run(seek, 34)
    const lateEnglish = async () =>
      (await player.run(listLoadedSegments, null)).some(({ rendition, number }) => rendition === ENGLISH_ID && number > 6)
    await expect.poll(lateEnglish).toBe(true)
    await player.playsPast(35)
    expect(await player.state()).toMatchObject({ state: 'playing', code: '' })
  })
}

function listLoadedSegments(): { rendition: number; number: number }[] {
  const names = performance.getEntriesByType('resource').map(({ name }) => /\/(\d+)\/(\d+)\.m4s$/.exec(name))
  return names.flatMap((found) => (found ? { rendition: Number(found[1]), number: Number(found[2]) } : []))
}

declare const performance: { getEntriesByType(type: 'resource'): { name: string }[] }
