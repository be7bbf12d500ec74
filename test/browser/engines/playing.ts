import { expect, onTestFinished } from 'vitest'
import type { Reelgate } from '../../in-process.ts'
import type { sampledTests } from '../../sample.ts'
import { playerAddress } from '../player.ts'
import { startAlteredPlayer } from './altered-player.ts'
import type { Tab } from './engine.ts'
import { lookAt } from './player.ts'

const SLOW_BPS = 1_000_000
const SMALLEST = { forcedBitrate: 200 }

/** Keeps what the player asks of the screen and of lock screens; browsers without a screen give no lock. */
const RECORD_SESSION = `
window.locks = []
if (globalThis.WakeLock) {
  const request = WakeLock.prototype.request
  WakeLock.prototype.request = async function (type) {
    const lock = await request.call(this, type).catch(() => ({ released: false, async release() { this.released = true } }))
    window.locks.push(lock)
    return lock
  }
}
const setPositionState = MediaSession.prototype.setPositionState
MediaSession.prototype.setPositionState = function (position) {
  window.position = position
  setPositionState.call(this, position)
}
`

type Location = { tab: Tab; reelgate: Reelgate & { videoId: string } }

/** What `slow-network` and `controls` check in Chromium, through a proxy that every engine can use. */
export function testPlaying(name: string, sampled: ReturnType<typeof sampledTests>['test'], location: () => Location) {
  async function openAltered(prepare: (altered: ReturnType<typeof startAlteredPlayer>) => void) {
    const { tab, reelgate } = location()
    const altered = startAlteredPlayer(reelgate.url)
    onTestFinished(altered.close)
    prepare(altered)
    const otp = await reelgate.owner.issueOtp(reelgate.videoId, SMALLEST)
    await tab.goto(playerAddress(altered.url(), otp, '&loop=true'))
    const player = lookAt(tab)
    await player.shows('ready')
    return { altered, player }
  }

  sampled('P-17: on a slow network the beginning is loaded before the click, and a viewer who waits reads why', async () => {
    const { altered, player } = await openAltered(({ slowDown }) => slowDown(SLOW_BPS))
    const firstSegments = () => altered.requested.filter((path) => path.endsWith('/0.m4s')).sort()
    await expect.poll(firstSegments).toHaveLength(2)
    const loaded = firstSegments()
    expect(altered.requested.filter((path) => path.includes('/key/'))).toEqual([])

    const resume = altered.hold(/\/key\//)
    await player.click('.big-play')
    await player.shows('playing', 'slow-network')
    await player.keepPicture(`${name}-slow-network`)
    resume()
    await player.playsPast(0.3)
    await player.shows('playing', '')
    expect(firstSegments()).toEqual(loaded)
  })

  sampled('P-18: while a video plays the screen stays on, and lock screens show its poster, state and place', async () => {
    const { player } = await openAltered(({ alter }) => alter(RECORD_SESSION))
    const session = () => player.run(readSession, null)
    await player.click('.big-play')
    await player.playsPast(0.5)
    await expect.poll(async () => (await session()).isScreenHeld).toBe(true)
    expect(await session()).toMatchObject({ state: 'playing', title: 'Hello', artwork: 'image/jpeg' })
    await player.pause()
    const { timeS, durationS } = await player.video()
    await expect.poll(session).toMatchObject({ isScreenHeld: false, state: 'paused' })
    expect((await session()).position).toEqual({ duration: durationS, position: timeS, playbackRate: 1 })
  })
}

// What follows runs in the page, so it uses nothing of this module.

declare const window: { locks: readonly { released: boolean }[]; position?: unknown }
declare const navigator: {
  mediaSession: { playbackState: string; metadata: { title: string; artwork: readonly { src: string }[] } | null }
}

async function readSession() {
  const { playbackState, metadata } = navigator.mediaSession
  const [{ src } = { src: '' }] = metadata?.artwork ?? []
  return {
    isScreenHeld: window.locks.some(({ released }) => !released),
    state: playbackState,
    title: metadata?.title,
    artwork: (await fetch(src)).headers.get('Content-Type'),
    position: window.position,
  }
}
