import { type Box, glideMs, maxTextHeightPx, pictureBox, type Watermark, watermarkCorner, watermarkTurn } from './watermarks.ts'

const CHECK_EVERY_MS = 500
/** Smaller letters could not be read. */
const MIN_TEXT_PX = 9
const MAX_STRIKES = 20
const STRIKES_FORGOTTEN_MS = 60_000

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

/**
 * Shows the viewer's watermarks over the picture and keeps them there: what removes, hides or covers them is undone, and where
 * that cannot be done `onBlocked` is called and playing is paused until they show again.
 * It deters: a script that runs before this one can patch everything. @see playback facts, section 8
 * @returns its end
 */
export function showWatermarks(
  container: HTMLElement,
  video: HTMLVideoElement,
  watermarks: readonly Watermark[],
  onBlocked: () => void,
): () => void {
  const startedMs = performance.now()
  let overlay = createOverlay(watermarks)
  let strikes = 0
  let lastStrikeMs = 0
  let blocked = false
  let ended = false

  const observer = new MutationObserver(check)
  const timer = setInterval(check, CHECK_EVERY_MS)
  const resized = new ResizeObserver(check)
  attach()
  resized.observe(container)
  video.requestVideoFrameCallback?.(onFrame)
  video.addEventListener('play', check)
  check()
  return () => {
    ended = true
    clearInterval(timer)
    observer.disconnect()
    resized.disconnect()
    video.removeEventListener('play', check)
    overlay.element.remove()
  }

  function onFrame() {
    if (ended) return
    check()
    video.requestVideoFrameCallback(onFrame)
  }

  function attach() {
    container.append(overlay.element)
    observer.disconnect()
    observer.observe(container, { childList: true })
    observer.observe(overlay.element, { attributes: true })
    observer.observe(overlay.root, { childList: true, subtree: true, characterData: true, attributes: true })
    place(overlay, video, performance.now() - startedMs) // gives the lines their font, so that the next placing measures them
  }

  function check() {
    if (ended) return
    try {
      if (!showAgain()) block()
    } catch {
      block() // something of the browser's own was replaced
    }
  }

  function block() {
    video.pause()
    if (!blocked) onBlocked()
    blocked = true
  }

  /** False: it cannot be shown, or was taken away too often. */
  function showAgain(): boolean {
    place(overlay, video, performance.now() - startedMs)
    if (isShown(overlay, container, video)) {
      blocked = false
      return true
    }
    const nowMs = performance.now()
    if (nowMs - lastStrikeMs > STRIKES_FORGOTTEN_MS) strikes = 0
    lastStrikeMs = nowMs
    strikes++
    overlay.element.remove()
    overlay = createOverlay(watermarks)
    attach()
    place(overlay, video, nowMs - startedMs)
    return strikes <= MAX_STRIKES && isShown(overlay, container, video)
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
    'text-shadow': '0 0 2px rgb(0 0 0 / 45%)', // legible on white without a box
  }
}

function imageStyle(watermark: WatermarkOf<'image'>, picture: Box): Record<string, string> {
  return {
    width: watermark.widthPx === undefined ? 'auto' : `${watermark.widthPx}px`,
    height: 'auto',
    'max-width': `${Math.round(picture.widthPx / 2)}px`,
    'max-height': `${Math.round(picture.heightPx / 2)}px`,
    'object-fit': 'contain',
  }
}

function isUnchanged({ watermark, element, style }: Line): boolean {
  const shows =
    watermark.type === 'image' ? element.getAttribute('src') === watermark.image : element.textContent === watermark.text
  return shows && element.getAttribute('style') === style
}

function isShown({ element, lines }: Overlay, container: HTMLElement, video: HTMLVideoElement): boolean {
  if (element.parentElement !== container || container.lastElementChild !== element || !container.contains(video)) return false
  if (element.getAttribute('style') !== OVERLAY_STYLE) return false
  if (document.fullscreenElement === video || video.matches(':popover-open')) return false
  if (!lines.every(isUnchanged)) return false
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
