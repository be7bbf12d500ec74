import { fetchFile } from './play-client.ts'
import type { Signer } from './proof.ts'

/** Of a sheet that is not loaded yet: the preview has its size already, so that nothing moves when it comes. */
const EMPTY = 'data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7'
/** Such as `storyboard-0#xywh=160,0,160,90`, after the line with its times. */
const CUE = /^(?:(\d+):)?(\d+):([\d.]+) --> (?:(\d+):)?(\d+):([\d.]+)\r?\n(\S+)(#xywh=\S+)$/gm

type StoryboardDeps = {
  range: HTMLElement
  video: HTMLVideoElement
  signer: Signer
  session: string
  url: URL
  signal: AbortSignal
}

type Sheet = { cues: { cue: VTTCue; place: string }[]; isAsked: boolean }

/**
 * Shows the picture of the place that the seek bar's preview is about. media-chrome reads pictures from the cues of a text track with
 * this label. Each sheet is loaded when the preview first comes to it.
 */
export async function showStoryboard(deps: StoryboardDeps): Promise<void> {
  const { range, video, signer, session, url, signal } = deps
  // A video element's text tracks cannot be removed; a session that goes on has the same ones.
  if ([...video.textTracks].some(({ label }) => label === 'thumbnails')) return
  const webVtt = await fetchFile(signer, session, url)
  if (!webVtt) throw new Error('The storyboard cannot be had now')
  const text = await webVtt.text()
  if (signal.aborted) return
  const track = video.addTextTrack('metadata', 'thumbnails')
  track.mode = 'hidden' // a disabled one has no cues
  const sheets = new Map<string, Sheet>()
  let loads = 0
  for (const [, hours, minutes, seconds, endHours, endMinutes, endSeconds, name = '', place = ''] of text.matchAll(CUE)) {
    const cue = new VTTCue(inSeconds(hours, minutes, seconds), inSeconds(endHours, endMinutes, endSeconds), EMPTY + place)
    const sheet = sheets.get(name) ?? { cues: [], isAsked: false }
    sheet.cues.push({ cue, place })
    sheets.set(name, sheet)
    track.addCue(cue)
  }
  range.addEventListener('mediapreviewrequest', loadSheet, { signal })
  const width = /xywh=\d+,\d+,(\d+)/.exec(text)?.[1]
  range.style.setProperty('--tile-width', `${width}px`)
  const keys = showAtKeys(range, video, { isLoading: () => loads > 0, signal })
  repeatRequest()

  function loadSheet(request: Event) {
    const timeS = request instanceof CustomEvent ? request.detail : null
    if (typeof timeS !== 'number') return
    const isAbout = ({ cues }: Sheet) => cues.some(({ cue }) => timeS < cue.endTime) && timeS >= (cues[0]?.cue.startTime ?? 0)
    const [name, sheet] = [...sheets].find(([, sheet]) => isAbout(sheet)) ?? []
    if (name === undefined || !sheet || sheet.isAsked) return
    sheet.isAsked = true
    loads++
    void load(name, sheet).finally(() => {
      loads--
      keys.hideLater()
    })
  }

  async function load(name: string, sheet: Sheet) {
    const webp = await fetchFile(signer, session, new URL(name, url))
    if (!webp) {
      sheet.isAsked = false
      return
    }
    const image = URL.createObjectURL(webp)
    for (const { cue, place } of sheet.cues) cue.text = image + place
    repeatRequest()
  }

  /** The preview that shows now is asked for again, with what is here by now. */
  function repeatRequest() {
    const timeS = range.getAttribute('mediapreviewtime')
    if (timeS === null) return
    range.dispatchEvent(new CustomEvent('mediapreviewrequest', { bubbles: true, composed: true, detail: Number(timeS) }))
    point(range, 'pointermove', Number(timeS) / video.duration) // with a picture it is wider
  }
}

/** To media-chrome this is a pointer at a time on the seek bar: its preview is placed there, within the frame for the size that it has now. */
function point(range: HTMLElement, type: string, share: number): void {
  const { left = 0, width = 0, top = 0 } = range.shadowRoot?.querySelector('input')?.getBoundingClientRect() ?? {}
  const at = { pointerType: 'mouse', clientX: left + width * share, clientY: top }
  range.dispatchEvent(new PointerEvent(type, { ...at, bubbles: type === 'pointermove', composed: true }))
}

/** How long the preview shows after a key and with its picture, as the words of a change do. */
const SHOWN_MS = 1200
const SEEKS = /^(Arrow(Left|Right)|Home|End|Page.*|[0-9jl])$/i
const SHOWN = `:host([data-keyed]) [part~="preview-box"], :host([data-keyed]) media-preview-thumbnail {
  visibility: visible;
  opacity: 1;
  transition: none;
}
@media (max-height: 300px) {
  :host([mediapreviewimage]) media-preview-chapter-display {
    display: block;
    width: 0;
    min-width: 100%;
    box-sizing: border-box;
    white-space: nowrap;
    overflow: hidden;
    text-overflow: ellipsis;
  }
}`

/** Keys on the focused seek bar show the preview, too, at the thumb: media-chrome shows it only under a pointer, and follows that. */
function showAtKeys(
  range: HTMLElement,
  video: HTMLVideoElement,
  { isLoading, signal }: { isLoading(): boolean; signal: AbortSignal },
) {
  const style = new CSSStyleSheet()
  style.replaceSync(SHOWN)
  range.shadowRoot?.adoptedStyleSheets.push(style)
  const bar = range.shadowRoot?.querySelector('input')
  let timer: ReturnType<typeof setTimeout> | undefined
  const hide = () => {
    clearTimeout(timer)
    if (!range.hasAttribute('data-keyed')) return
    range.removeAttribute('data-keyed')
    point(range, 'pointerleave', 0)
  }
  range.addEventListener('keydown', ({ key }) => SEEKS.test(key) && requestAnimationFrame(show), { signal }) // once the key has changed the time
  range.addEventListener('focusout', hide, { signal })
  signal.addEventListener('abort', hide)

  if (bar?.matches(':focus-visible')) show()
  return { hideLater }

  function hideLater() {
    clearTimeout(timer)
    timer = setTimeout(() => isLoading() || hide(), SHOWN_MS)
  }

  function show() {
    if (range.matches(':hover') || !bar || !video.duration) return
    hideLater()
    if (!range.hasAttribute('data-keyed')) point(range, 'pointerenter', 0)
    range.setAttribute('data-keyed', '')
    for (const _ of ['asks for the picture', 'is placed with it']) point(range, 'pointermove', video.currentTime / video.duration)
  }
}

function inSeconds(hours = '0', minutes = '0', seconds = '0'): number {
  return 3600 * Number(hours) + 60 * Number(minutes) + Number(seconds)
}
