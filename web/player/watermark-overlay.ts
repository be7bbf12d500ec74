import { inkOn } from './theme.ts'
import { type Box, glideMs, maxTextHeightPx, pictureBox, type Watermark, watermarkCorner, watermarkTurn } from './watermarks.ts'

const CHECK_EVERY_MS = 500
/** Smaller letters could not be read. */
const MIN_TEXT_PX = 9
const MAX_REPAIRS = 10
const REPAIRS_WITHIN_MS = 60_000

// Inline and !important: no style sheet of the page can win against it.
const OVERLAY_STYLE = important({
  all: 'initial',
  position: 'absolute',
  inset: '0',
  display: 'block',
  visibility: 'visible',
  opacity: '1',
  overflow: 'hidden',
  'pointer-events': 'none',
  'z-index': '2147483647',
  contain: 'strict',
  'user-select': 'none',
})

/** Of the element that contains the watermarks, these alone change how it is drawn. */
const HOST_ATTRIBUTES = ['style', 'class', 'slot', 'part', 'popover', 'hidden']
const CHANGED_HOST = ':is([class], [slot], [part], [popover], [hidden])'

export type WatermarkGuard = {
  /** Checks the watermarks. @returns false: the video was paused, and plays by itself when it is drawn and watermarked */
  mayPlay(): boolean
  /** For a request to play that has not reached the video. @returns whether it has to wait until the video is drawn */
  playWhenDrawn(): boolean
  /** The video does not play by itself any more. */
  stayPaused(): void
  end(): void
}

/**
 * Shows the viewer's watermarks over the picture and keeps them there: what removes, hides or covers them is undone, and where
 * that cannot be done, or is undone too often, the video is paused and `onBlocked` called. A video that is not drawn, such as one in a
 * closed tab or modal of the page, waits until it is, and calls `play` then.
 * It deters: a script that runs before this one can patch everything. @see decision 53
 */
export function showWatermarks(
  container: HTMLElement,
  video: HTMLVideoElement,
  watermarks: readonly Watermark[],
  { onBlocked, play }: { onBlocked(): void; play(): void },
): WatermarkGuard {
  const startedMs = performance.now()
  const repairsMs: number[] = []
  let overlay = createOverlay(watermarks)
  let playsWhenDrawn = false
  let hasEnded = false

  const observer = new MutationObserver(check)
  const timer = setInterval(check, CHECK_EVERY_MS)
  const resized = new ResizeObserver(check)
  attach()
  resized.observe(container)
  video.requestVideoFrameCallback?.(onFrame)
  video.addEventListener('play', check)
  return {
    mayPlay: check,
    playWhenDrawn() {
      playsWhenDrawn = !hasEnded && !isDrawn(video)
      return playsWhenDrawn
    },
    stayPaused() {
      playsWhenDrawn = false
    },
    end,
  }

  function end() {
    hasEnded = true
    clearInterval(timer)
    observer.disconnect()
    resized.disconnect()
    video.removeEventListener('play', check)
    overlay.element.remove()
  }

  function onFrame() {
    if (hasEnded) return
    check()
    video.requestVideoFrameCallback(onFrame)
  }

  function attach() {
    container.append(overlay.element)
    observer.disconnect()
    observer.observe(container, { childList: true })
    observer.observe(overlay.element, { attributeFilter: HOST_ATTRIBUTES })
    observer.observe(overlay.root, { childList: true, subtree: true, characterData: true, attributes: true })
    place(overlay, video, performance.now() - startedMs) // gives the lines their font, so that the next placing measures them
  }

  function check(): boolean {
    if (hasEnded) return false
    try {
      if (isElsewhere(container, video)) return block()
      if (!isDrawn(video)) return hold()
      if (!isMarked()) return block()
    } catch {
      return block() // something of the browser's own was replaced
    } finally {
      observer.takeRecords() // a change of our own is no reason to check again, which could go on for ever
    }
    if (playsWhenDrawn) play()
    playsWhenDrawn = false
    return true
  }

  function block(): false {
    end()
    video.pause()
    onBlocked()
    return false
  }

  function hold(): false {
    if (video.paused) return false
    if (playsWhenDrawn && !mayRepair()) return block() // a script plays it again and again
    playsWhenDrawn = true
    video.pause()
    return false
  }

  /** False: the watermarks cannot be shown, or were taken away too often. */
  function isMarked(): boolean {
    place(overlay, video, performance.now() - startedMs)
    if (isShown(overlay, container, video)) return true
    if (!mayRepair()) return false
    overlay.element.remove()
    overlay = createOverlay(watermarks)
    attach()
    place(overlay, video, performance.now() - startedMs)
    return isShown(overlay, container, video)
  }

  function mayRepair(): boolean {
    const nowMs = performance.now()
    repairsMs.push(nowMs)
    while (repairsMs.length > 0 && nowMs - (repairsMs[0] ?? 0) > REPAIRS_WITHIN_MS) repairsMs.shift()
    return repairsMs.length <= MAX_REPAIRS
  }
}

type Line = {
  watermark: Watermark
  element: HTMLElement
  turn: number
  chance: [number, number]
  /** The size of its letters, and the size of the picture for which it was found. */
  sizePx: number
  fittedTo: string
  /** Its place, as CSS. */
  corner: string
  /** How it got there from the place before. */
  glideMs: number
  style: string
}
type Overlay = { element: HTMLElement; root: ShadowRoot; lines: Line[] }

function createOverlay(watermarks: readonly Watermark[]): Overlay {
  const element = document.createElement('div')
  element.setAttribute('style', OVERLAY_STYLE)
  element.setAttribute('aria-hidden', 'true')
  element.setAttribute('noautohide', '')
  element.translate = false
  const root = element.attachShadow({ mode: 'closed' })
  const lines = watermarks.map((watermark): Line => {
    const line = watermark.type === 'image' ? createImage(watermark.image) : document.createElement('div')
    if (watermark.type !== 'image') line.textContent = watermark.text
    root.append(line)
    return { watermark, element: line, turn: -1, chance: [0, 0], sizePx: 0, fittedTo: '', corner: '', glideMs: 0, style: '' }
  })
  return { element, root, lines }
}

function createImage(source: string): HTMLImageElement {
  const picture = document.createElement('img')
  picture.alt = ''
  picture.src = source
  return picture
}

function place({ element, lines }: Overlay, video: HTMLVideoElement, elapsedMs: number): void {
  const picture = pictureBox(
    { widthPx: element.clientWidth, heightPx: element.clientHeight },
    { widthPx: video.videoWidth, heightPx: video.videoHeight },
  )
  const controls = findControls(element)
  const maxHeightPx = maxTextHeightPx(picture, controls?.topPx)
  const controlsTopPx = controls?.isShown ? controls.topPx : undefined
  const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)').matches
  const captions = [...video.textTracks].some(({ mode }) => mode === 'showing')
  const boxes: Box[] = []
  for (const line of lines) {
    const { turn, shown } = watermarkTurn(line.watermark, elapsedMs)
    const turns = turn !== line.turn
    const isFirst = line.turn < 0
    if (turns) {
      line.turn = turn
      line.chance = [Math.random(), Math.random()]
    }
    fitText(line, picture, maxHeightPx)
    const size = { widthPx: line.element.offsetWidth, heightPx: line.element.offsetHeight }
    const { leftPx, topPx } = watermarkCorner(line.watermark, {
      picture,
      text: size,
      chance: line.chance,
      captions,
      controlsTopPx,
    })
    if (shown) boxes.push({ leftPx, topPx, ...size })
    const corner = `${Math.round(leftPx)}px ${Math.round(topPx)}px`
    // It glides from turn to turn; a picture that changes its size takes its watermarks along immediately.
    if (corner !== line.corner) line.glideMs = turns && !isFirst ? glideMs(line.watermark, reducedMotion) : 0
    line.corner = corner
    const style = important({
      position: 'absolute',
      left: '0',
      top: '0',
      translate: corner,
      transition: line.glideMs > 0 ? `translate ${line.glideMs}ms ease-in-out` : 'none',
      display: 'block',
      opacity: shown ? String(line.watermark.alpha) : '0',
      ...(line.watermark.type === 'image'
        ? imageStyle(line.watermark, picture)
        : textStyle(line.watermark, picture, line.sizePx)),
    })
    if (style === line.style) continue
    line.style = style
    line.element.setAttribute('style', style)
  }
  hideCoveredTexts(element, boxes)
}

/** Two texts above each other could not be read: those of the player give way. */
function hideCoveredTexts(overlay: HTMLElement, watermarks: readonly Box[]): void {
  const from = overlay.getBoundingClientRect()
  for (const element of overlay.parentElement?.querySelectorAll('.title, .resume span') ?? []) {
    if (!element.firstChild) continue
    const text = document.createRange()
    text.selectNodeContents(element)
    const { left, top, right, bottom } = text.getBoundingClientRect()
    const isCovered = watermarks.some(({ leftPx, topPx, widthPx, heightPx }) => {
      const [x, y] = [from.left + leftPx, from.top + topPx]
      return x < right && x + widthPx > left && y < bottom && y + heightPx > top
    })
    element.classList.toggle('covered', isCovered)
  }
}

type WatermarkOf<T extends Watermark['type']> = Extract<Watermark, { type: T }>

/** The top of the seek bar, the highest of the controls, in the overlay; undefined without controls. */
function findControls(overlay: HTMLElement): { topPx: number; isShown: boolean } | undefined {
  const controller = overlay.parentElement
  const range = controller?.querySelector('media-time-range')
  if (!controller || !range) return undefined
  return {
    topPx: range.getBoundingClientRect().top - overlay.getBoundingClientRect().top,
    isShown: !controller.hasAttribute('userinactive') || controller.hasAttribute('mediapaused'),
  }
}

/** Makes the letters of a long text smaller where the picture is small. */
function fitText(line: Line, picture: Box, maxHeightPx: number): void {
  const { watermark, element } = line
  if (watermark.type === 'image') return
  const fittedTo = `${picture.widthPx} ${picture.heightPx} ${maxHeightPx}`
  if (fittedTo === line.fittedTo) return
  line.fittedTo = fittedTo
  line.sizePx = watermark.sizePx
  for (;;) {
    element.setAttribute('style', important({ display: 'block', ...textStyle(watermark, picture, line.sizePx) }))
    line.style = ''
    if (element.offsetHeight <= maxHeightPx || line.sizePx <= MIN_TEXT_PX) return
    line.sizePx = Math.max(MIN_TEXT_PX, Math.floor(line.sizePx * 0.9))
  }
}

function textStyle(watermark: WatermarkOf<'text' | 'rtext'>, picture: Box, sizePx: number): Record<string, string> {
  return {
    width: 'max-content',
    'max-width': `${Math.round(picture.widthPx * 0.9)}px`,
    color: watermark.color,
    font: `500 ${sizePx}px/1.25 system-ui, sans-serif`,
    'overflow-wrap': 'anywhere',
    'text-shadow': outline(watermark.color, sizePx),
  }
}

/** Around each letter, dark or bright as its color is not: legible on any picture, of that color too. */
function outline(color: string, sizePx: number): string {
  const ink = inkOn(color)
  const px = Math.max(1, 0.06 * sizePx)
  const steps = [-px, 0, px]
  return [...steps.flatMap((x) => steps.map((y) => `${x}px ${y}px ${ink}`)), `0 0 3px ${ink}`].join()
}

function imageStyle(watermark: WatermarkOf<'image'>, picture: Box): Record<string, string> {
  return {
    width: watermark.widthPx === undefined ? 'auto' : `${watermark.widthPx}px`,
    height: 'auto',
    'max-width': `${Math.round(picture.widthPx / 2)}px`,
    'max-height': `${Math.round(picture.heightPx / 2)}px`,
    'object-fit': 'contain',
    filter: 'drop-shadow(0 0 1px #111) drop-shadow(0 0 1px #fff)', // as the outline of letters
  }
}

/** Judged on the video alone: what hides nothing but its watermarks is an attack. */
export function isDrawn(video: HTMLVideoElement): boolean {
  const { width, height } = video.getBoundingClientRect()
  const isVisible = video.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true })
  return isVisible && width > 0 && height > 0
}

/** Whether the video is drawn where no watermark can be: outside of the player, above the page, or on another device. */
function isElsewhere(container: HTMLElement, video: HTMLVideoElement): boolean {
  const onTop = video.closest(':is(:fullscreen, :modal, :popover-open)')
  if (!container.contains(video) || (onTop && !onTop.contains(container))) return true
  return video.remote !== undefined && video.remote.state !== 'disconnected'
}

function isUnchanged({ watermark, element, style }: Line, root: ShadowRoot): boolean {
  const shows =
    watermark.type === 'image' ? element.getAttribute('src') === watermark.image : element.textContent === watermark.text
  const isVisible = element.parentNode === root && element.checkVisibility({ visibilityProperty: true })
  return shows && isVisible && hasStyle(element, style) && [...element.querySelectorAll<HTMLElement>('*')].every(isWrapping)
}

/** Translations wrap text in this element, which leaves it as it looks. */
function isWrapping(part: HTMLElement): boolean {
  const isPlain = part.localName === 'font' && !part.matches('[class], [color], [face], [hidden], [size]')
  return isPlain && (hasStyle(part, '') || hasStyle(part, 'vertical-align: inherit'))
}

/** Whether an element's own style is this one. Extensions add custom properties, which change nothing that is drawn. */
function hasStyle(element: HTMLElement, style: string): boolean {
  if ((element.getAttribute('style') ?? '') === style) return true
  const expected = document.createElement('div')
  expected.setAttribute('style', style)
  return describeStyle(element.style) === describeStyle(expected.style)
}

function describeStyle(style: CSSStyleDeclaration): string {
  const names = [...style].filter((name) => !name.startsWith('--'))
  return names.map((name) => `${name}:${style.getPropertyValue(name)}!${style.getPropertyPriority(name)}`).join(';')
}

function isShown({ element, root, lines }: Overlay, container: HTMLElement, video: HTMLVideoElement): boolean {
  if (element.parentElement !== container || container.lastElementChild !== element) return false
  if (!hasStyle(element, OVERLAY_STYLE) || element.matches(CHANGED_HOST)) return false
  if (!lines.every((line) => isUnchanged(line, root))) return false
  const style = getComputedStyle(element)
  const plain =
    style.display === 'block' &&
    style.visibility === 'visible' &&
    style.opacity === '1' &&
    style.transform === 'none' &&
    style.clipPath === 'none' &&
    style.filter === 'none'
  return plain && element.checkVisibility() && sameRectangle(element.getBoundingClientRect(), video.getBoundingClientRect())
}

function sameRectangle(a: DOMRect, b: DOMRect): boolean {
  return [a.left - b.left, a.top - b.top, a.width - b.width, a.height - b.height].every((apart) => Math.abs(apart) <= 1)
}

function important(properties: Record<string, string>): string {
  return Object.entries(properties)
    .map(([name, value]) => `${name}: ${value} !important;`)
    .join(' ')
}
