import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { untilFinished } from '../../data-folder.ts'
import { startSharedReelgate } from '../../in-process.ts'
import { playerAddress } from '../player.ts'
import { COMMENTARY, ENGLISH, GERMAN, makeLanguages, TONES } from '../tones.ts'
import { startFirefox } from './firefox.ts'
import { lookAt } from './player.ts'
import { startSoundDevice } from './sound-device.ts'
import { startWebKit } from './webkit.ts'

// Which language is audible at a sound device, in the engines in which a page cannot record it. `audio-tracks` records it in Chromium.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let device: Awaited<ReturnType<typeof startSoundDevice>>

beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeLanguages(), title: 'Languages' })
  await untilFinished(reelgate, reelgate.videoId)
  device = await startSoundDevice()
  vi.stubEnv('PULSE_SERVER', device.server)
})

afterAll(async () => {
  vi.unstubAllEnvs()
  await device?.close()
  await reelgate?.remove()
})

test.each([
  { name: 'Firefox', start: startFirefox },
  { name: 'WebKit', start: startWebKit },
])(
  'T-05: in $name the former language is audible for less than a second once the chosen one has come',
  async ({ name, start }) => {
    const engine = await start()
    try {
      const tab = await engine.openProfile()
      await tab.goto(playerAddress(reelgate.url, await reelgate.owner.issueOtp(reelgate.videoId)))
      const player = lookAt(tab)
      await player.shows('ready')
      const { recorded, stop } = await device.listen(TONES.map(({ hz }) => hz))
      await player.click('.big-play')
      await expect.poll(() => recorded.at(-1)?.tone).toBe(ENGLISH)
      for (const tone of [GERMAN, COMMENTARY, ENGLISH]) {
        const pressedAtMs = Date.now()
        await tab.press('a')
        await expect.poll(() => isAlone(tone, recorded.slice(-A_SECOND))).toBe(true)
        const since = recorded.filter(({ atMs }) => atMs >= pressedAtMs)
        const lastFormer = since.findLast((stretch) => stretch.tone !== tone && stretch.tone !== -1)
        const loadedAtMs = await player.run(findFirstSound, pressedAtMs)
        const [formerMs, loadedMs] = [lastFormer?.atMs ?? pressedAtMs, loadedAtMs].map((atMs) => Math.round(atMs - pressedAtMs))
        const silentMs = longestSilenceMs(since)
        process.stderr.write(`${name}: ${formerMs} ms of the former language, ${loadedMs} until it came, ${silentMs} silent\n`)
        expect((lastFormer?.atMs ?? 0) - loadedAtMs).toBeLessThan(1000)
      }
      await stop()
    } finally {
      await engine.close()
    }
  },
)

const A_SECOND = 50

/** A slow machine plays with silence in between. */
function isAlone(tone: number, recorded: readonly { tone: number }[]): boolean {
  return (
    recorded.some((stretch) => stretch.tone === tone) && recorded.every((stretch) => stretch.tone === tone || stretch.tone === -1)
  )
}

function longestSilenceMs(recorded: readonly { atMs: number; tone: number }[]): number {
  let [longest, lastAtMs] = [0, recorded[0]?.atMs ?? 0]
  for (const { atMs, tone } of recorded) {
    if (tone === -1) continue
    longest = Math.max(longest, atMs - lastAtMs)
    lastAtMs = atMs
  }
  return longest
}

/** Runs in the page. @returns when the first segment that was asked for after a moment, and has no picture, was there */
function findFirstSound(afterMs: number): number {
  const sound = performance
    .getEntriesByType('resource')
    .find(({ name, startTime }) => performance.timeOrigin + startTime >= afterMs && /\/[234]\/\d+\.m4s$/.test(name))
  return sound ? performance.timeOrigin + sound.responseEnd : afterMs
}

declare const performance: {
  readonly timeOrigin: number
  getEntriesByType(type: 'resource'): { name: string; startTime: number; responseEnd: number }[]
}
