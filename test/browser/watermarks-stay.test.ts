import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSharedReelgate } from '../in-process.ts'
import { sampleOf } from '../sample.ts'
import { startChromium } from './chromium.ts'
import { findColour, type Rgb } from './frame-pixels.ts'
import { lookAtPlayer, openPlayer, openTab, type Player, playerAddress } from './player.ts'
import { makeDarkVideo } from './videos.ts'

// Scripts in the page against the viewer's mark: the attack table of the playback facts, section 8. The video is of one dark colour,
// so that what is green or magenta on the screen is a mark.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
let host: Server
let video: string
let annotate: Record<string, unknown>[]
const askedBy: string[] = []

const GREEN: Rgb = [0, 255, 0]
const MAGENTA: Rgb = [255, 0, 255]

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-marks-'))
  try {
    const logoFile = join(folder, 'logo.png')
    const solid = ['-f', 'lavfi', '-i', 'color=c=0xff00ff:size=64x64', '-frames:v', '1']
    await promisify(execFile)('ffmpeg', ['-nostdin', '-v', 'error', ...solid, logoFile])
    const logo = await readFile(logoFile)
    host = createServer((request, response) => {
      askedBy.push(request.headers['user-agent'] ?? '')
      response.end(logo)
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => host.once('listening', resolve))
    const { port } = host.address() as AddressInfo
    annotate = [
      { type: 'rtext', text: 'moving', interval: 600, color: '0x888888' },
      { type: 'text', text: '████', size: 24, color: '0x00ff00', x: '10%', y: '20%' },
      { type: 'image', url: `http://127.0.0.1:${port}/logo.png`, x: '70%', y: '20%' },
    ]
    reelgate = await startSharedReelgate({
      video: await makeDarkVideo(),
      env: { REELGATE_OUTBOUND_ALLOW: `127.0.0.1:${port}` },
    })
    video = reelgate.videoId
    chromium = await startChromium()
  } finally {
    await rm(folder, { recursive: true })
  }
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
  host?.close()
})

/** Known to every attack. */
const NAMES = `
  const container = document.querySelector('media-controller')
  const mark = container.lastElementChild
  const video = document.querySelector('video')
`

/**
 * Measures in the video's own time, so that a slow machine changes nothing: from the attack on, the longest stretch of frames shown without
 * the marks over them.
 */
const WATCH = `
  const watched = globalThis.watched = { bareS: 0, badSince: undefined }
  const intact = () => {
    const last = container.lastElementChild
    const [a, b] = [last.getBoundingClientRect(), video.getBoundingClientRect()]
    const style = getComputedStyle(last)
    return container.contains(video) && last.localName === 'div' && last.childElementCount === 0 && last.getAttribute('aria-hidden') === 'true'
      && last.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && style.opacity === '1'
      && Math.abs(a.left - b.left) < 2 && Math.abs(a.width - b.width) < 2 && Math.abs(a.top - b.top) < 2
      && document.fullscreenElement !== video && !video.matches(':popover-open')
  }
  const look = (_nowMs, { mediaTime }) => {
    if (intact()) watched.badSince = undefined
    else {
      watched.badSince ??= mediaTime
      watched.bareS = Math.max(watched.bareS, mediaTime - watched.badSince)
    }
    video.requestVideoFrameCallback(look)
  }
  video.requestVideoFrameCallback(look)
`

/** What a script in the page may do: each is undone by the player. */
const UNDONE: readonly (readonly [string, string])[] = [
  ['removed', 'mark.remove()'],
  ['their style edited', "mark.style.setProperty('display', 'none', 'important')"],
  ['their style replaced', "mark.setAttribute('style', 'display:none')"],
  ['their style taken away', "mark.removeAttribute('style')"],
  [
    'a style sheet',
    `document.head.append(Object.assign(document.createElement('style'), { textContent: \`media-controller > div:last-child {
      display: none !important; opacity: 0 !important; visibility: hidden !important; translate: 9999px !important;
      scale: 0 !important; clip-path: inset(50%) !important; mask: linear-gradient(#0000, #0000) !important; z-index: -1 !important }\` }))`,
  ],
  ['hidden and inert', 'mark.hidden = true; mark.inert = true'],
  ['another slot, class and part', "mark.slot = 'media'; mark.className = 'none'; mark.part = 'none'"],
  ['a popover of their own', "mark.popover = 'manual'; mark.showPopover(); mark.hidePopover()"],
  [
    'a custom property and a real one',
    "mark.style.setProperty('--x', '1'); mark.style.setProperty('mask', 'linear-gradient(#0000, #0000)', 'important')",
  ],
  ['an animation', "mark.animate({ opacity: 0, transform: 'scale(0)' }, { duration: 1e9, fill: 'both' })"],
  ['every animation ended', 'document.getAnimations().forEach((one) => one.finish())'],
  [
    'something laid over them',
    `const cover = document.createElement('div')
     cover.style.cssText = 'position: absolute; inset: 0; background: #203040; z-index: 2147483647'
     container.append(cover)`,
  ],
  [
    'removed over and over',
    'for (let times = 0; times < 5; times++) setTimeout(() => container.lastElementChild.remove(), times * 20)',
  ],
  ['every timer ended', 'for (let id = 0; id < 1e5; id++) clearInterval(id); mark.remove()'],
  ['observers replaced', 'MutationObserver.prototype.observe = () => {}; mark.remove()'],
]

test('P15: whatever a script does to the marks, the video shows no more than a second without them', async () => {
  for (const [name, attack] of sampleOf('attacks that are undone', UNDONE, 2)) {
    const player = await watchVideo()
    await player.page.evaluate(`{ ${NAMES} ${WATCH} ${attack} }`)
    const { timeS } = await player.video()
    await player.playsPast(timeS + 0.2)
    await expect.poll(() => player.page.evaluate('watched.badSince === undefined'), { message: name }).toBe(true)
    expect(await player.page.evaluate('watched.bareS'), name).toBeLessThanOrEqual(1)
    await expectMarks(player, `after-${name.replaceAll(' ', '-')}`)
    await player.page.close()
  }
})

test('P15: marks, of which Reelgate alone requested the image, fill the screen with the video, and come back there too', async () => {
  const player = await watchVideo()
  await player.page.keyboard.press('f')
  await player.frame.waitForSelector('media-controller:fullscreen')
  await expectMarks(player, 'full-screen')
  await player.page.evaluate(`{ ${NAMES} ${WATCH} mark.remove() }`)
  const { timeS } = await player.video()
  await player.playsPast(timeS + 0.2)
  expect(await player.page.evaluate('watched.bareS')).toBeLessThanOrEqual(1)
  await expectMarks(player, 'full-screen-after')
  expect(askedBy).toEqual(['Reelgate'])
})

const STOPPED_FOR: [string, string][] = [
  ['takes the video out of the player', 'document.body.append(video)'],
  ['floats the video above the page', "video.popover = 'manual'; video.showPopover()"],
  ['asks for the bare video in full screen', 'video.requestFullscreen()'],
  ['enlarges the video under them', "video.style.transform = 'scale(3)'"],
  ['takes the video out of a hidden player', "container.style.display = 'none'; document.body.append(video)"],
  ['floats the video of a hidden player', "container.style.opacity = 0; video.popover = 'manual'; video.showPopover()"],
  [
    'asks for full screen of a box around the video',
    "const box = document.createElement('div'); box.slot = 'media'; container.prepend(box); box.append(video); box.requestFullscreen()",
  ],
  [
    'removes them for longer than they are restored',
    'setInterval(() => container.querySelector("div[aria-hidden]")?.remove(), 20)',
  ],
  [
    'plays a hidden video over and over',
    "container.style.visibility = 'hidden'; setInterval(() => video.play().catch(() => {}), 20)",
  ],
  ['breaks what marks are made with', "Element.prototype.attachShadow = () => { throw new Error('no marks') }; mark.remove()"],
]

test.each(sampleOf('attacks that stop the video', STOPPED_FOR, 1))(
  'P15: the video stops within a second, and stays stopped, when a script %s',
  async (_, attack) => {
    const player = await watchVideo()
    await player.page.evaluate(`{ ${NAMES} ${WATCH} ${attack} }`)
    await player.shows('refused', 'watermark-blocked')
    expect(await player.page.evaluate('watched.bareS')).toBeLessThanOrEqual(1)
    await player.page.evaluate("document.querySelector('video').play().catch(() => {}); undefined")
    expect(await player.video()).toMatchObject({ widthPx: 0, framesDecoded: 0 }) // there is nothing left to play
    expect(await player.sentence()).toBe('Playback stopped because something on this page hides your watermark.')
  },
)

test('P-02: a video that is not drawn waits, its marks are back before it plays on, and one that was paused stays paused', async () => {
  const player = await watchVideo()
  await player.page.evaluate(`{ ${NAMES} ${WATCH} container.style.display = 'none' }`)
  await player.until(({ paused }) => paused)
  await player.page.evaluate(`{ ${NAMES} mark.remove(); container.style.display = '' }`)
  await player.playsPast((await player.video()).timeS + 0.3)
  expect(await player.page.evaluate('watched')).toEqual({ bareS: 0 })
  await expectMarks(player, 'drawn-again')

  await player.page.keyboard.press('k')
  await player.until(({ paused }) => paused)
  // Hidden and shown for longer than two checks.
  for (const display of ['none', ''])
    await player.page.evaluate(
      `{ ${NAMES} container.style.display = '${display}'; new Promise((shown) => setTimeout(shown, 1200)) }`,
    )
  expect(await player.video()).toMatchObject({ paused: true })
})

test('P-02: where the browser plays on only after a click, a video that is drawn again shows its button', async () => {
  const player = await watchVideo()
  await player.page.evaluate(`{ ${NAMES}
    const { play } = HTMLMediaElement.prototype
    HTMLMediaElement.prototype.play = () => Promise.reject(new DOMException('It needs a click.', 'NotAllowedError'))
    addEventListener('pointerdown', () => { HTMLMediaElement.prototype.play = play }, { capture: true })
    container.style.display = 'none' }`)
  await player.until(({ paused }) => paused)
  await player.page.evaluate(`{ ${NAMES} container.style.display = '' }`)
  await player.shows('ready')
  const { timeS } = await player.video()
  await player.play()
  await player.playsPast(timeS + 0.2)
  await player.shows('playing')
  await expectMarks(player, 'after-the-click')
})

test('P15: a small window of the browser never gets the bare video', async () => {
  const player = await watchVideo()
  const outcome = await player.page.evaluate(`{
    const video = document.querySelector('video')
    video.disablePictureInPicture = false
    video.requestPictureInPicture().then(() => 'floats', (error) => error.name)
  }`)
  const { timeS } = await player.video()
  if (outcome === 'floats') await player.until(({ paused }) => paused)
  else await player.playsPast(timeS + 0.2)
  expect(await player.page.evaluate('document.pictureInPictureElement')).toBeNull()
  await expectMarks(player, 'small-window')
})

const WISHES = [
  { motion: 'no-preference', gliding: true },
  { motion: 'reduce', gliding: false },
] as const

test.each(sampleOf('wishes about motion', WISHES, 1))(
  'a moving mark of a viewer whose wish about motion is "$motion" glides: $gliding',
  async ({ motion, gliding }) => {
    const page = await openTab(await chromium.newContext({ reducedMotion: motion }))
    await page.addInitScript(`
    const attachShadow = Element.prototype.attachShadow
    globalThis.glides = 0
    globalThis.places = new Set()
    Element.prototype.attachShadow = function (how) {
      const root = attachShadow.call(this, how)
      if (how.mode !== 'closed') return root
      root.addEventListener('transitionend', ({ propertyName }) => { if (propertyName === 'translate') glides++ })
      new MutationObserver(() => places.add(root.firstElementChild.style.translate)).observe(root, { subtree: true, attributes: true })
      return root
    }`)
    const player = lookAtPlayer(page)
    await page.goto(playerAddress(reelgate.url, await reelgate.owner.issueOtp(video, { annotate })))
    await player.play()
    await expect.poll(() => page.evaluate(gliding ? 'glides > 1' : 'places.size > 4')).toBe(true)
    expect(await page.evaluate('glides > 0')).toBe(gliding)
  },
)

async function watchVideo(): Promise<Player> {
  const browser = await chromium.newContext()
  const player = await openPlayer(browser, playerAddress(reelgate.url, await reelgate.owner.issueOtp(video, { annotate })))
  await player.play()
  await player.playsPast(0.3)
  return player
}

async function expectMarks(player: Player, name: string): Promise<void> {
  const png = await player.screenshot(`marks-${name}`)
  const [text, image] = await Promise.all([findColour(png, GREEN), findColour(png, MAGENTA)])
  expect(text.pixels).toBeGreaterThan(500)
  expect(image.pixels).toBeGreaterThan(3000)
}
