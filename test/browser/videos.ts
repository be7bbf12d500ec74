import type { Browser } from 'playwright-core'
import { afterAll, beforeAll } from 'vitest'
import { untilFinished } from '../data-folder.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { makeVideo } from '../videos.ts'
import { startChromium } from './chromium.ts'

/** A video of one minute, small enough to be encoded in a moment: a moving picture, of ten frames a second, and a tone. */
export const makeSmallVideo = () => makeVideo({ seconds: 60, size: '320x180', rate: 10 })

/** The same in one dark colour, so that what else is on the screen can be found by its own. */
export const makeDarkVideo = () => makeVideo({ seconds: 60, size: '320x180', rate: 10, dark: true })

/** Uploads that video. Resolves once all of it is there. */
export async function addSmallVideo(reelgate: Reelgate, title: string): Promise<string> {
  const videoId = await reelgate.owner.upload(title, await makeSmallVideo())
  await untilFinished(reelgate, videoId)
  return videoId
}

/** For the tests of a file: a server with that video, and a browser, from its first test to its last. */
export function startWithSmallVideo() {
  let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
  let chromium: Browser
  beforeAll(async () => {
    reelgate = await startSharedReelgate({ video: await makeSmallVideo(), title: 'Small video' })
    chromium = await startChromium()
  })
  afterAll(async () => {
    await chromium?.close()
    await reelgate?.remove()
  })
  return {
    get reelgate() {
      return reelgate
    },
    get chromium() {
      return chromium
    },
  }
}
