import type { Page } from 'playwright-core'
import { afterAll, expect, test } from 'vitest'
import { sampleOf } from '../sample.ts'
import { findColour, type Spot } from './frame-pixels.ts'
import { lookAtPlayer, openTab, type Player, playerAddress } from './player.ts'
import { startSite } from './site.ts'
import { startWithSmallVideo } from './videos.ts'

// iPhones have no full screen but that of the bare video. None of our engines is like that: this one replaces them in Chromium.
const STAND_IN = `{
  delete Document.prototype.fullscreenEnabled
  for (const name of ['requestFullscreen', 'webkitRequestFullscreen', 'webkitRequestFullScreen']) delete Element.prototype[name]
  globalThis.bareVideos = 0
  HTMLVideoElement.prototype.webkitEnterFullscreen = function () {
    bareVideos += 1
    this.dispatchEvent(new Event('webkitbeginfullscreen'))
  }
}`
const MARK = { type: 'text', text: 'Ada', color: '0xff00ff', size: '40', x: '40%', y: '40%' }
const MARKED = { annotate: JSON.stringify([MARK]) }

const shared = startWithSmallVideo()
const site = startSite()
afterAll(() => site.close())

const EMBEDS = [
  {
    embed: 'the frame and api.js',
    html: (otp: string) => `<script src="${shared.reelgate.url}/v2/api.js"></script>${frame(otp)}`,
    selector: 'iframe',
  },
  {
    embed: 'the element',
    html: (otp: string) =>
      `<script src="${shared.reelgate.url}/v2/player.js"></script><reelgate-player otp="${otp}" loop="true"></reelgate-player>`,
    selector: 'reelgate-player',
  },
] as const

/** What covers the frame and moves what is fixed in it, as on other people's pages. */
const AROUND =
  'style="transform: translateX(20px); overflow: hidden; width: 480px; height: 270px; position: relative; z-index: 1"'
const BANNER = '<div style="position: fixed; inset: 0; z-index: 2147483647; pointer-events: none; border: 9px solid lime"></div>'

test.each(sampleOf('ways to fill the viewport', EMBEDS, 1))(
  'P-05: on an iPhone $embed fills the viewport, with the watermark on it, and goes back',
  async ({ html, selector }) => {
    const { page, player } = await openPage(
      `<div ${AROUND}>${html(await shared.reelgate.owner.issueOtp(shared.reelgate.videoId, MARKED))}</div>${BANNER}`,
    )
    await page.evaluate(
      `window.changes = [], VdoPlayer.getInstance(document.querySelector('${selector}')).api.addEventListener('fullscreenChange', (is) => changes.push(is))`,
    )
    const before = await frameBox(player)
    await player.play()
    await player.playsPast(0.5)
    await page.mouse.move(200, 200)
    await player.press('enter fullscreen mode')
    await expect.poll(() => frameBox(player)).toEqual({ x: 0, y: 0, ...page.viewportSize() })
    const mark = async () => findColour(await player.screenshot(`iphone-${selector}`), [255, 0, 255])
    const { width } = page.viewportSize() ?? { width: 0 }
    await expect.poll(mark).toSatisfy(({ pixels, leftPx }: Spot) => pixels > 100 && Math.abs(leftPx - 0.4 * width) < 10)
    await player.press('exit fullscreen mode')
    await expect.poll(() => frameBox(player)).toEqual(before)

    await page.keyboard.press('f')
    await expect.poll(() => frameBox(player)).toMatchObject({ x: 0, y: 0 })
    await page.keyboard.press('Escape')
    await expect.poll(() => frameBox(player)).toEqual(before)
    expect(await page.evaluate('changes')).toEqual([true, false, true, false])

    // The page's own button.
    const call = (isWanted: boolean) =>
      page.evaluate(`VdoPlayer.getInstance(document.querySelector('${selector}')).api.setFullscreen(${isWanted})`)
    expect(await call(true)).toBe(true)
    await player.frame.getByRole('button', { name: 'exit fullscreen mode' }).waitFor()
    expect(await call(false)).toBe(false)
    expect(await frameBox(player)).toEqual(before)
    expect(player.complaints).toEqual([])
  },
)

test('P-12: on an iPhone a double tap in the middle fills the viewport and goes back, and one on a side seeks', async () => {
  const otp = await shared.reelgate.owner.issueOtp(shared.reelgate.videoId, MARKED)
  const { page, player } = await openPage(`<script src="${shared.reelgate.url}/v2/api.js"></script>${frame(otp)}`)
  await page.evaluate(`void VdoPlayer.getInstance(document.querySelector('iframe'))`)
  const before = await frameBox(player)
  await player.play()
  await player.playsPast(0.5)
  await player.tapPicture(0.5, 2)
  await expect.poll(() => frameBox(player)).toEqual({ x: 0, y: 0, ...page.viewportSize() })
  await player.tapPicture(0.9, 2)
  await player.playsPast(10)
  await player.tapPicture(0.5, 3) // the third is a tap of its own, which shows or hides the bar
  await expect.poll(() => frameBox(player)).toEqual(before)
  expect((await player.video()).paused).toBe(false)
  expect(await player.frame.evaluate('bareVideos')).toBe(0)
  expect(player.complaints).toEqual([])
})

/** As docs/embedding.md says it to pages without our scripts. */
const LISTENER = `<script>
const player = document.querySelector('iframe')
window.asked = []
addEventListener('message', ({ data, source, origin }) => {
  if (source !== player.contentWindow || data.reelgate !== 'fullscreen') return
  asked.push(data.isFullscreen)
  player.classList.toggle('fills-page', data.isFullscreen)
  source.postMessage({ reelgate: 'fullscreen', isFullscreen: data.isFullscreen }, origin)
})
</script><style>.fills-page { position: fixed; inset: 0; width: 100%; height: 100%; border: 0 }</style>`

test('P-05: on an iPhone a player in a plain frame asks the page to fill the viewport, and never shows the bare video with a watermark', async () => {
  const otp = await shared.reelgate.owner.issueOtp(shared.reelgate.videoId, MARKED)
  const { page, player } = await openPage(frame(otp) + LISTENER)
  await player.shows('ready')
  await player.press('enter fullscreen mode')
  await expect.poll(() => frameBox(player)).toEqual({ x: 0, y: 0, ...page.viewportSize() })
  await player.press('exit fullscreen mode')
  await expect.poll(() => page.evaluate('asked')).toEqual([true, false])

  const { player: unheard } = await openPage(frame(await shared.reelgate.owner.issueOtp(shared.reelgate.videoId, MARKED)))
  await unheard.shows('ready')
  await unheard.press('enter fullscreen mode')
  await unheard.frame.getByRole('button', { name: 'enter fullscreen mode' }).waitFor({ state: 'hidden' })
  expect(await unheard.frame.evaluate('bareVideos')).toBe(0)
})

test.each(sampleOf('iPhones without a watermark', ['a frame', 'a tab'], 1))(
  'P-05: on an iPhone a video without a watermark in %s that nothing else fills is shown by the browser, and plays on',
  async (location) => {
    const otp = await shared.reelgate.owner.issueOtp(shared.reelgate.videoId)
    const { player } =
      location === 'a frame' ? await openPage(frame(otp)) : await openTabOf(playerAddress(shared.reelgate.url, otp, '&loop=true'))
    await player.play()
    await player.playsPast(0.5)
    await player.page.keyboard.press('f')
    await expect.poll(() => player.frame.evaluate('bareVideos')).toBe(1)
    expect(await player.video()).toMatchObject({ paused: false })
  },
)

test('a browser whose frame may not use full screen shows no button for it', async () => {
  const page = await openTab(await shared.chromium.newContext())
  await page.goto(
    site.put(
      `<iframe src="${playerAddress(shared.reelgate.url, await shared.reelgate.owner.issueOtp(shared.reelgate.videoId))}"></iframe>`,
    ),
  )
  const player = playerIn(page)
  await player.shows('ready')
  expect(await player.frame.getByRole('button', { name: 'enter fullscreen mode' }).isVisible()).toBe(false)
})

const frame = (otp: string) =>
  `<iframe src="${playerAddress(shared.reelgate.url, otp, '&loop=true')}" width="480" height="270" allow="encrypted-media; autoplay; fullscreen"></iframe>`

async function openTabOf(address: string): Promise<{ page: Page; player: Player }> {
  const page = await openTab(await shared.chromium.newContext())
  await page.addInitScript(STAND_IN)
  await page.goto(address)
  return { page, player: lookAtPlayer(page) }
}

async function openPage(body: string): Promise<{ page: Page; player: Player }> {
  const { page } = await openTabOf(site.put(body))
  return { page, player: playerIn(page) }
}

function playerIn(page: Page): Player {
  const framed = page.frames().at(1)
  if (!framed) throw new Error('The page has no frame')
  return lookAtPlayer(page, framed)
}

async function frameBox({ frame: framed }: Player) {
  return (await framed.frameElement()).boundingBox()
}
