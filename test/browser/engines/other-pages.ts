import { expect, onTestFinished } from 'vitest'
import type { Reelgate } from '../../in-process.ts'
import { readRows } from '../../rows.ts'
import { type SampledTest, sampleOf } from '../../sample.ts'
import { makeSound, makeVideo } from '../../videos.ts'
import { findColour } from '../frame-pixels.ts'
import { playerAddress } from '../player.ts'
import { startAlteredPlayer } from './altered-player.ts'
import type { Tab } from './engine.ts'
import { readSearch } from './in-page.ts'
import { lookAt } from './player.ts'

const MAGENTA = [255, 0, 255] as const
const WATERMARK = { type: 'text', text: 'Ada', alpha: '1', color: '0xff00ff', size: '40', x: '40%', y: '20%' }

/** What pages do to a player whose tab, accordion or modal is closed, as a style of `selector`. */
const HIDDEN = [
  { selector: '#tab', style: 'display: none' },
  { selector: '#tab', style: 'visibility: hidden' },
  { selector: '#tab', style: 'opacity: 0' },
  { selector: '#tab', style: 'content-visibility: hidden' },
  { selector: '#tab', style: 'content-visibility: auto; margin-top: 9999px' },
  { selector: '#tab', style: 'height: 0; overflow: hidden' },
  { selector: 'iframe', style: 'width: 0; height: 0' },
  { selector: 'iframe', style: 'height: 0' },
  { selector: 'iframe', style: 'width: 10px; height: 4px' },
  { selector: 'details', style: 'closed' },
  { selector: 'dialog', style: 'closed' },
] as const

const REMOVED = [
  { removed: 'iframe', element: false },
  { removed: 'reelgate-player', element: true },
  { removed: '#tab', element: true },
] as const

/** What browsers are without, as a script, and how the player names it. */
const LACKING = [
  { lacking: `isSupported = (type) => !type.includes('avc1')`, named: 'H.264 video' },
  { lacking: `isSupported = (type) => !type.includes('mp4a')`, named: 'AAC audio' },
  { lacking: `isSupported = (type) => !/avc1|mp4a/.test(type)`, named: 'H.264 video and AAC audio' },
  { lacking: 'delete globalThis.MediaSource, delete globalThis.ManagedMediaSource', named: 'Media Source Extensions' },
] as const

/** What a browser need not decode, to play the videos that have no track of it. */
const NOT_NEEDED = [
  {
    is: 'a silent video',
    makeFile: () => makeVideo({ audioTrack: false }),
    lacking: `isSupported = (type) => !type.includes('mp4a')`,
  },
  { is: 'an audio file', makeFile: () => makeSound(3), lacking: `isSupported = (type) => !type.includes('avc1')` },
] as const

/** Before a script of `LACKING` or `NOT_NEEDED`. */
const ASK_SCRIPT = `let isSupported = () => true
for (const source of [globalThis.MediaSource, globalThis.ManagedMediaSource]) {
  const { isTypeSupported } = source ?? {}
  if (source) source.isTypeSupported = (type) => isSupported(type) && isTypeSupported.call(source, type)
}
`

/** Where the page is opened, and with what; it is asked for when the tests run. */
export type OtherPagesSetup = {
  tab: Tab
  reelgate: Reelgate & { videoId: string }
  /** @returns the address of the page with this body and these headers */
  putPage(body: string, host: string, headers?: Record<string, string>): string
}

/** A player in pages that hide, show and remove its frame, and with extensions. */
export function testOtherPages(name: string, test: SampledTest, location: () => OtherPagesSetup) {
  /** @param host `127.0.0.1`: of the player's own site, so that one process has both */
  async function openPage(host: string, options: string, tabStyle = '') {
    const { tab, putPage } = location()
    const { url, owner, videoId } = location().reelgate
    const otp = await owner.issueOtp(videoId, { forcedBitrate: 200, annotate: JSON.stringify([WATERMARK]) })
    const frame = `<iframe src="${playerAddress(url, otp, `&loop=true${options}`)}" width="560" height="315" style="border: 0"
      allow="encrypted-media; autoplay; fullscreen"></iframe>`
    await tab.goto(
      putPage(
        `<style>body { margin: 0 } dialog { position: static; margin: 0; padding: 0; border: 0; max-width: none }</style>
        <script src="${url}/v2/api.js"></script>
        <dialog open><details open><div id="tab" style="${tabStyle}">${frame}</div></details></dialog>`,
        host,
      ),
    )
    return lookAt(tab, 'frame')
  }

  /** Hides a playing video, until the player has checked it: it has paused, or continues. */
  async function hideUntilChecked(player: ReturnType<typeof lookAt>, hidden: { selector: string; style: string }) {
    const { timeS } = await player.video()
    await player.tab.run('page', setStyle, hidden)
    await player.until(({ paused, timeS: atS }) => paused || atS > timeS + 0.8 || atS < timeS)
  }

  async function playsWithWatermark(player: ReturnType<typeof lookAt>, message: string) {
    const { timeS } = await player.video()
    const { state, code } = await player.state()
    expect([message, state, code]).toEqual([message, expect.not.stringContaining('refused'), ''])
    await player.until(({ timeS: atS, paused }) => !paused && (atS > timeS + 0.3 || atS < timeS))
    const pixels = async () => (await findColour(await player.screenshot(`${name}-shown-again`), MAGENTA)).pixels
    await expect.poll(pixels, { message }).toBeGreaterThan(100)
  }

  test('P-01: in a frame that is not shown a watermarked video with autoplay does not start; shown, it plays', async () => {
    const player = await openPage('127.0.0.1', '&autoplay=true', 'display: none')
    await player.tab.run('page', countTicks, 20)
    expect(await player.video()).toMatchObject({ timeS: 0, framesDecoded: 0 })
    expect(await player.run(readSearch, null)).toContain('otp=') // it is not spent
    await player.tab.run('page', setStyle, { selector: '#tab', style: '' })
    await playsWithWatermark(player, 'shown')
  })

  test('P-01: a page plays a watermarked video in a frame that it has hidden: the page lives on, and the video plays when it is shown', async () => {
    const player = await openPage('127.0.0.1', '')
    await player.shows('ready')
    await player.tab.run('page', setStyle, { selector: '#tab', style: 'display: none' })
    expect(await player.tab.run('page', playAndAsk, null)).toBe('Hello')
    // In WebKit a frame that was shown before keeps its size: the video plays, and nothing is drawn of it.
    if (name !== 'WebKit') expect(await player.video()).toMatchObject({ timeS: 0, framesDecoded: 0 })
    await player.tab.run('page', setStyle, { selector: '#tab', style: '' })
    await playsWithWatermark(player, 'shown')
    expect(await player.tab.run('page', readPlayed, null)).toBe('played')

    // As pages do that pause the video of a modal which they close.
    await hideUntilChecked(player, { selector: '#tab', style: 'display: none' })
    await player.tab.run('page', pauseVideo, null)
    await player.tab.run('page', setStyle, { selector: '#tab', style: '' })
    await player.tab.run('page', countTicks, 20)
    expect(await player.video()).toMatchObject({ paused: true })
  })

  test('P-02: a page that hides a playing video with a watermark does not stop it for good', async () => {
    const player = await openPage('localhost', '')
    await player.shows('ready')
    await player.click('.big-play')
    await player.until(({ timeS }) => timeS > 0.3)
    for (const { selector, style } of sampleOf(`ways to hide a player in ${name}`, HIDDEN, 3)) {
      await hideUntilChecked(player, { selector, style })
      await player.tab.run('page', setStyle, { selector, style: '' })
      await playsWithWatermark(player, `${selector} ${style}`)
    }
  })

  test('P-03: extensions that add properties, attributes and <font> to everything, and a filter to the page, do not stop the video', async () => {
    const player = await openPage('localhost', '')
    await player.shows('ready')
    await player.run(restyleAsExtensions, null)
    await player.click('.big-play')
    await player.until(({ timeS }) => timeS > 2)
    await playsWithWatermark(player, 'restyled')
    expect(await player.run(countRestyled, null)).toEqual({ watermarks: 1, fonts: expect.toSatisfy((fonts) => fonts > 0) })
  })

  test('P-04: a browser without H.264, AAC or Media Source Extensions names what is missing, to the page too, and spends no OTP', async () => {
    const { tab, putPage } = location()
    const { url, owner, videoId } = location().reelgate
    const altered = startAlteredPlayer(url)
    onTestFinished(altered.close)
    const otp = await owner.issueOtp(videoId, { forcedBitrate: 200 })
    const open = async (script: string) => {
      altered.alter(script)
      const frame = `<iframe src="${playerAddress(altered.url(), otp)}" width="560" height="315"></iframe>`
      await tab.goto(putPage(`<script src="${altered.url()}/v2/api.js"></script>${frame}`, 'localhost'))
      return lookAt(tab, 'frame')
    }
    for (const { lacking, named } of sampleOf(`what browsers are without, like ${name}`, LACKING, 2)) {
      const player = await open(ASK_SCRIPT + lacking)
      await player.shows('refused', 'unsupported-browser')
      const sentence = await player.sentence()
      expect(sentence).toBe(
        `This browser cannot play this video: it lacks ${named}. Use a current Chrome, Edge, Firefox or Safari.`,
      )
      expect(await tab.run('page', readRefusal, null)).toEqual({ status: 'refused', error: `NotAllowedError: ${sentence}` })
      await player.keepPicture(`${name}-lacks-${named}`)
    }
    const player = await open('')
    await player.shows('ready')
  })

  test.each(sampleOf(`what ${name} need not decode`, NOT_NEEDED, 1))(
    'P-24: $is plays in a browser that lacks the format of the track that it does not have',
    async ({ makeFile, lacking }) => {
      const { tab, putPage } = location()
      const { url, owner } = location().reelgate
      const altered = startAlteredPlayer(url)
      onTestFinished(altered.close)
      altered.alter(ASK_SCRIPT + lacking)
      const otp = await owner.issueOtp(await owner.readyVideo(await makeFile()))
      const frame = `<iframe src="${playerAddress(altered.url(), otp)}" allow="autoplay"></iframe>`
      await tab.goto(putPage(`<script src="${altered.url()}/v2/api.js"></script>${frame}`, 'localhost'))
      expect(await tab.run('page', playMuted, 'iframe')).toMatchObject({ status: 'playing' })
    },
  )

  test.each(sampleOf(`embedder policies in ${name}`, ['require-corp', 'credentialless'], 1))(
    'P-06: a page with the embedder policy %s plays, in a frame and in the element',
    async (policy) => {
      const { tab, putPage } = location()
      const { url, owner, videoId } = location().reelgate
      const newOtp = () => owner.issueOtp(videoId, { forcedBitrate: 200 })
      const frame = `<iframe src="${playerAddress(url, await newOtp())}" allow="autoplay"></iframe>`
      const element = `<reelgate-player otp="${await newOtp()}"></reelgate-player>`
      const scripts = ['api', 'player'].map((script) => `<script src="${url}/v2/${script}.js"></script>`)
      const headers = { 'Cross-Origin-Embedder-Policy': policy, 'Cross-Origin-Opener-Policy': 'same-origin' }
      await tab.goto(putPage([...scripts, frame, element].join(''), 'localhost', headers))
      const isIsolated = name !== 'WebKit' || policy === 'require-corp' // WebKit has no credentialless
      for (const selector of ['iframe', 'reelgate-player'])
        expect(await tab.run('page', playMuted, selector)).toEqual({ isIsolated, status: 'playing' })
    },
  )

  test.each(sampleOf(`what pages remove in ${name}`, REMOVED, 1))(
    'P-19: a player whose $removed a page removes while it plays leaves its session',
    async ({ element, removed }) => {
      const { tab, putPage } = location()
      const { url, owner, videoId } = location().reelgate
      const userId = `${removed.replaceAll(/\W/g, '-')}-${name}`
      const otp = await owner.issueOtp(videoId, { forcedBitrate: 200, userId })
      const player = element
        ? `<reelgate-player otp="${otp}" autoplay="true"></reelgate-player>`
        : `<iframe src="${playerAddress(url, otp, '&autoplay=true')}" allow="autoplay"></iframe>`
      await tab.goto(putPage(`<script src="${url}/v2/player.js"></script><div id="tab">${player}</div>`, 'localhost'))
      const readSession = () => {
        const sql = 'select left_at_s, viewed_at_s from playback_session where user_id = ?'
        return readRows<{ left_at_s: number | null; viewed_at_s: number | null }>(location().reelgate, sql, userId)
      }
      await expect.poll(readSession).toEqual([{ left_at_s: null, viewed_at_s: expect.any(Number) }])
      await tab.run('page', removeAll, removed)
      await expect.poll(readSession).toEqual([{ left_at_s: expect.any(Number), viewed_at_s: expect.any(Number) }])
    },
  )
}

// What follows runs in the page or frame, so it uses nothing of this module.

type Style = { setProperty(name: string, value: string): void; filter: string; cssText: string }
type PageElement = PageNode & {
  readonly style: Style
  readonly localName: string
  open?: boolean
  remove(): void
  readonly shadowRoot: PageNode | null
  hasAttribute(name: string): boolean
  setAttribute(name: string, value: string): void
}
type PageNode = {
  readonly nodeType: number
  readonly childNodes: Iterable<PageNode>
  readonly parentNode: PageElement | null
  readonly textContent: string
  append(node: PageNode): void
  replaceWith(node: PageNode): void
}
type Restyled = { roots: PageNode[]; fonts: number }
declare const window: { played?: Promise<string>; restyled?: Restyled }
type ShadowHost = { attachShadow(how: { mode: string }): PageNode }
declare const document: PageNode & {
  readonly documentElement: PageElement
  querySelector(selector: string): PageElement
  createElement(name: string): PageElement
}
declare const Element: { prototype: ShadowHost }
declare const MutationObserver: new (
  changed: () => void,
) => { observe(node: PageNode, what: { childList: true; subtree: true; characterData: true }): void }
type Video = { muted: boolean; readonly currentTime: number; addEventListener(name: 'timeupdate', listener: () => void): void }
declare const crossOriginIsolated: boolean
declare const VdoPlayer: {
  getInstance(frame: PageElement): {
    video: Video & { play(): Promise<void>; pause(): Promise<void> }
    api: {
      getMetaData(): Promise<{ title: string }>
      addEventListener(name: 'statusChange', listener: (status: string) => void): void
    }
  }
}

async function countTicks(ticks: number): Promise<void> {
  for (let tick = 0; tick < ticks; tick++) await new Promise((resolve) => setTimeout(resolve, 50))
}

function setStyle({ selector, style }: { selector: string; style: string }): void {
  const element = document.querySelector(selector)
  if (element.open === undefined) element.style.cssText = style
  else element.open = style !== 'closed'
}

const removeAll = (selector: string): void => document.querySelector(selector).remove()

/** Plays, and does not wait. @returns the title, once the player has answered */
async function playAndAsk(): Promise<string> {
  const { video, api } = VdoPlayer.getInstance(document.querySelector('iframe'))
  window.played = video.play().then(() => 'played', String)
  return (await api.getMetaData()).title
}

const pauseVideo = () => VdoPlayer.getInstance(document.querySelector('iframe')).video.pause()

/** Plays the player in this element, until it has shown half a second. */
async function playMuted(selector: string): Promise<{ isIsolated: boolean; status: string }> {
  const { video, api } = VdoPlayer.getInstance(document.querySelector(selector))
  video.muted = true
  const played = new Promise<void>((resolve) => {
    video.addEventListener('timeupdate', () => video.currentTime > 0.5 && resolve())
  })
  await video.play()
  await played
  await video.pause()
  const status = await new Promise<string>((resolve) => api.addEventListener('statusChange', resolve))
  return { isIsolated: crossOriginIsolated, status }
}

async function readRefusal(): Promise<{ status: string; error: string }> {
  const { api } = VdoPlayer.getInstance(document.querySelector('iframe'))
  const error = await api.getMetaData().then(() => 'none', String)
  return { status: await new Promise((resolve) => api.addEventListener('statusChange', resolve)), error }
}

const readPlayed = () => window.played

/** As extensions do that darken pages, translate them or control their speed, also in closed shadow roots. */
function restyleAsExtensions(): void {
  const { attachShadow } = Element.prototype
  const restyled: Restyled = { roots: [], fonts: 0 }
  window.restyled = restyled
  Element.prototype.attachShadow = function (how) {
    const root = attachShadow.call(this, how)
    restyled.roots.push(root)
    follow(root)
    return root
  }
  document.documentElement.style.filter = 'invert(10%) contrast(95%)'
  follow(document)

  function follow(root: PageNode) {
    new MutationObserver(() => restyle(root)).observe(root, { childList: true, subtree: true, characterData: true })
    restyle(root)
  }

  function restyle(node: PageNode) {
    for (const child of [...node.childNodes]) {
      if (isElement(child)) {
        if (/^(script|style|title)$/.test(child.localName)) continue
        if (!child.hasAttribute('data-restyled')) {
          child.setAttribute('data-restyled', '')
          child.style.setProperty('--restyled-color', 'rgb(10 20 30)')
        }
        restyle(child)
      } else if (child.nodeType === 3 && child.textContent.trim() !== '' && child.parentNode?.localName !== 'font') {
        const outer = document.createElement('font')
        const inner = document.createElement('font')
        for (const font of [outer, inner]) font.setAttribute('style', 'vertical-align: inherit;')
        child.replaceWith(outer)
        outer.append(inner)
        inner.append(child)
        restyled.fonts++
      }
    }
  }

  function isElement(node: PageNode): node is PageElement {
    return node.nodeType === 1
  }
}

function countRestyled(): { watermarks: number; fonts: number } {
  const { restyled } = window
  const texts = (restyled?.roots ?? []).filter(({ textContent }) => textContent === 'Ada')
  return { watermarks: texts.length, fonts: restyled?.fonts ?? 0 }
}
