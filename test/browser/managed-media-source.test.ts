import { expect, test } from 'vitest'
import { lookAtPlayer, openTab, playerAddress } from './player.ts'
import { startWithSmallVideo } from './videos.ts'

// Safari on iPhones has ManagedMediaSource in place of MediaSource, and none of our engines has it: this one replaces it in Chromium.

const shared = startWithSmallVideo()

/** It lets the player load until each of its buffers has something, then only when the test says so. */
const STAND_IN = `{
  const { MediaSource, SourceBuffer } = globalThis
  delete globalThis.MediaSource
  globalThis.ManagedSourceBuffer = SourceBuffer
  globalThis.ManagedMediaSource = class ManagedMediaSource extends MediaSource {
    streaming = false
    constructor() {
      super()
      globalThis.source = this
      this.addEventListener('sourceopen', () => this.stream(true))
    }
    addSourceBuffer(type) {
      const buffer = super.addSourceBuffer(type)
      buffer.addEventListener('updateend', () => {
        if (this.hasBegun || [...this.sourceBuffers].some(({ buffered }) => buffered.length === 0)) return
        this.hasBegun = true
        this.stream(false)
      })
      return buffer
    }
    stream(isOn) {
      this.streaming = isOn
      this.dispatchEvent(new Event(isOn ? 'startstreaming' : 'endstreaming'))
    }
  }
}`

test('a browser with nothing but ManagedMediaSource plays, and loads on when the browser lets it', async () => {
  const page = await openTab(await shared.chromium.newContext())
  await page.addInitScript(STAND_IN)
  const player = lookAtPlayer(page)
  const redeemed = page.waitForRequest((request) => request.url().endsWith('/play/redeem'))
  await page.goto(playerAddress(shared.reelgate.url, await shared.reelgate.owner.issueOtp(shared.reelgate.videoId)))
  expect((await redeemed).postDataJSON().support).toEqual({ mse: false, managed: true, h264: true, aac: true })
  await player.play()
  await player.playsPast(0.5)
  expect(await page.evaluate("document.querySelector('video').disableRemotePlayback")).toBe(true) // else Safari opens no such source

  expect(await page.evaluate('source.streaming')).toBe(false)
  const HAVE_FUTURE_DATA = 3
  await expect.poll(() => page.evaluate("document.querySelector('video').readyState")).toBeLessThan(HAVE_FUTURE_DATA)
  const { timeS } = await player.video() // the end of what it has
  await page.evaluate('source.stream(true)')
  await player.playsPast(timeS + 0.5)
  expect(player.complaints).toEqual([])
})
