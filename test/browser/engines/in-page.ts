// What tests do inside the page in every engine. The browser gets each function as text, so it uses nothing of this module.
import type { ShownFrame } from '../in-page.ts'

type Box = { left: number; top: number; width: number; height: number }
type PageElement = {
  readonly textContent: string
  checkVisibility(): boolean
  dispatchEvent(event: Event): boolean
  scrollIntoView(to: { block: 'nearest' }): void
  getBoundingClientRect(): Box
}
type Video = { loop: boolean; currentTime: number; readonly videoWidth: number; readonly videoHeight: number }
type Canvas = {
  width: number
  height: number
  getContext(kind: '2d'): { drawImage(video: Video, x: number, y: number): void }
  toDataURL(type: 'image/png'): string
}
declare const document: {
  readonly documentElement: { readonly classList: { add(name: string): void } }
  adoptedStyleSheets: StyleSheet[]
  querySelector(selector: 'video'): Video
  querySelector(selector: 'iframe'): PageElement
  querySelectorAll(selector: string): Iterable<PageElement>
  readonly fullscreenElement: PageElement | null
  createElement(name: 'canvas'): Canvas
}
type StyleSheet = { replaceSync(css: string): void }
declare const location: { readonly search: string }
declare const VdoPlayer: { getInstance(frame: PageElement): VdoPlayer }
type VdoPlayer = {
  readonly video: {
    currentTime: number
    readonly paused: boolean
    play(): Promise<void>
    pause(): void
    addEventListener(name: string, listener: (event: unknown) => void): void
  }
  readonly api: { getMetaData(): Promise<{ title: string; duration: number }> }
}
declare const CSSStyleSheet: new () => StyleSheet
declare const signs: string[]
declare const MutationObserver: new (changed: () => void) => { observe(element: PageElement, what: { childList: true }): void }
declare const PointerEvent: new (type: string, init: object) => Event

/** The middle of the first element that is visible, and has this text, if any is given. */
export function findCentre({ selector, text }: { selector: string; text?: string }) {
  for (const element of document.querySelectorAll(selector)) {
    if (!element.checkVisibility() || (text !== undefined && element.textContent.trim() !== text)) continue
    element.scrollIntoView({ block: 'nearest' })
    const { left, top, width, height } = element.getBoundingClientRect()
    if (width > 0 && height > 0) return { xPx: left + width / 2, yPx: top + height / 2 }
  }
  return null
}

/** Copies the frame that is shown; the video is paused. */
export function copyFrame(): ShownFrame {
  const video = document.querySelector('video')
  const canvas = document.createElement('canvas')
  canvas.width = video.videoWidth
  canvas.height = video.videoHeight
  canvas.getContext('2d').drawImage(video, 0, 0)
  const [, pngBase64 = ''] = canvas.toDataURL('image/png').split(',')
  return { mediaTimeS: video.currentTime, widthPx: canvas.width, heightPx: canvas.height, pngBase64 }
}

/** Gives captions a colour by which a screenshot shows them. */
export function colourCaptions(colour: string): void {
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(`::cue { color: ${colour} !important }`)
  document.adoptedStyleSheets = [sheet]
}

/** As a page's own switch between light and dark does. */
export const addPageClass = (name: string): void => document.documentElement.classList.add(name)

export function readText(selector: string): string {
  const [element] = document.querySelectorAll(selector)
  return element?.textContent ?? ''
}

export function readWidth(selector: string): number {
  const [element] = document.querySelectorAll(selector)
  return element?.getBoundingClientRect().width ?? 0
}

/** Keeps what the player shows of keys and gestures, which it shows for a moment. */
export function recordSigns(): void {
  const signs: string[] = []
  const [sign] = document.querySelectorAll('.sign')
  if (sign) new MutationObserver(() => signs.push(sign.textContent)).observe(sign, { childList: true })
  Object.assign(globalThis, { signs })
}

export const readSigns = (): string[] => signs.filter((text) => text !== '')

export const isFullscreen = (): boolean => document.fullscreenElement !== null

/** Two taps of a finger on the picture, within one task: a busy machine cannot spread them. */
export function doubleTap(share: { x: number; y: number }): void {
  const [video] = document.querySelectorAll('video')
  const { left, top, width, height } = video?.getBoundingClientRect() ?? { left: 0, top: 0, width: 0, height: 0 }
  const at = { clientX: left + share.x * width, clientY: top + share.y * height, pointerType: 'touch' }
  for (const type of ['pointerdown', 'pointerup', 'click', 'pointerdown', 'pointerup', 'click'])
    video?.dispatchEvent(new PointerEvent(type, { ...at, bubbles: true, composed: true }))
}

/** The video stays at its end. */
export function stopLooping(): void {
  document.querySelector('video').loop = false
}

export function seek(timeS: number): void {
  document.querySelector('video').currentTime = timeS
}

export const readSearch = (): string => location.search

/** Uses `api.js` as a page does: plays, seeks to 4 s, plays there and pauses. */
export async function useVdoPlayer() {
  const player = VdoPlayer.getInstance(document.querySelector('iframe'))
  const { video, api } = player
  const events = new Set<string>()
  for (const name of ['loadedmetadata', 'play', 'playing', 'seeked', 'timeupdate', 'pause'])
    video.addEventListener(name, () => events.add(name))
  const playsPast = async (timeS: number) => {
    while (video.currentTime < timeS) await new Promise((resolve) => video.addEventListener('timeupdate', resolve))
  }
  const { title, duration: durationS } = await api.getMetaData()
  const wasPaused = video.paused
  await video.play()
  await playsPast(0.3)
  video.currentTime = 4
  const seekedToS = video.currentTime
  await playsPast(4.3)
  const paused = new Promise((resolve) => video.addEventListener('pause', resolve))
  video.pause()
  await paused
  const isSame = VdoPlayer.getInstance(document.querySelector('iframe')) === player
  const [pausedAtS, isPaused] = [video.currentTime, video.paused]
  return { title, durationS, wasPaused, seekedToS, pausedAtS, isPaused, isSame, events: [...events].sort() }
}
