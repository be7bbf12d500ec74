// What tests do inside the page. Chromium gets each function as text, so it uses nothing of this module.
// The browser's names are declared here, as far as needed: the types of the server and its tests know no browser.

type Video = {
  currentTime: number
  readonly duration: number
  readonly paused: boolean
  readonly ended: boolean
  readonly seeking: boolean
  readonly muted: boolean
  readonly playbackRate: number
  readonly videoWidth: number
  readonly textTracks: Iterable<{ mode: string; activeCues: Iterable<{ text: string }> | null }>
  readonly videoHeight: number
  readonly clientWidth: number
  readonly webkitAudioDecodedByteCount: number
  getVideoPlaybackQuality(): { totalVideoFrames: number; droppedVideoFrames: number }
  addEventListener(type: 'ended', listener: () => void): void
  dispatchEvent(event: Event): boolean
  requestVideoFrameCallback(seen: (nowMs: number, frame: { mediaTime: number }) => void): void
}
type Frame = { readonly timestamp: number; readonly displayWidth: number; readonly displayHeight: number; close(): void }
type Canvas = {
  getContext(kind: '2d'): { drawImage(frame: Frame, x: number, y: number, widthPx: number, heightPx: number): void }
  convertToBlob(options: { type: string }): Promise<Blob>
}
declare const document: {
  /** Null until it is parsed. */
  readonly body: { readonly dataset: { readonly state?: string; readonly code?: string } } | null
  querySelector(selector: 'video'): Video
  querySelector(selector: 'media-time-range'): PageElement
  addEventListener(
    type: 'securitypolicyviolation',
    listener: (violation: { violatedDirective: string; blockedURI: string }) => void,
  ): void
}
declare const VideoFrame: new (video: Video) => Frame
declare const OffscreenCanvas: new (widthPx: number, heightPx: number) => Canvas
type Asked<T> = { readonly result: T; onsuccess: () => void }
type KeyDatabase = {
  transaction(store: 'keys'): { objectStore(name: 'keys'): { getAll(): Asked<{ proofKey: { key: StoredKey } }[]> } }
}
type StoredKey = { readonly type: string; readonly extractable: boolean; readonly usages: readonly string[] }
declare const indexedDB: { open(name: string): Asked<KeyDatabase> }
declare const crypto: {
  subtle: {
    exportKey(format: 'pkcs8' | 'jwk' | 'raw' | 'spki', key: StoredKey): Promise<unknown>
    deriveBits(
      algorithm: { name: string; hash: string; salt: Uint8Array; info: Uint8Array },
      key: StoredKey,
      length: number,
    ): Promise<unknown>
  }
}

export type Watched = {
  timeS: number
  durationS: number
  paused: boolean
  ended: boolean
  seeking: boolean
  muted: boolean
  rate: number
  widthPx: number
  heightPx: number
  shownWidthPx: number
  framesDecoded: number
  framesDropped: number
  soundBytesDecoded: number
}

/** What the video element reports now. */
export function readVideo(): Watched {
  const video = document.querySelector('video')
  const { totalVideoFrames, droppedVideoFrames } = video.getVideoPlaybackQuality()
  return {
    timeS: video.currentTime,
    durationS: video.duration,
    paused: video.paused,
    ended: video.ended,
    seeking: video.seeking,
    muted: video.muted,
    rate: video.playbackRate,
    widthPx: video.videoWidth,
    heightPx: video.videoHeight,
    shownWidthPx: video.clientWidth,
    framesDecoded: totalVideoFrames,
    framesDropped: droppedVideoFrames,
    soundBytesDecoded: video.webkitAudioDecodedByteCount,
  }
}

/** What Chromium does where a decoder fails before its first frame: for a moment it says that the video has ended. */
export function claimEnd(): void {
  const video = document.querySelector('video')
  Object.defineProperty(video, 'ended', { configurable: true, value: true })
  for (const name of ['timeupdate', 'pause', 'ended']) video.dispatchEvent(new Event(name))
  Reflect.deleteProperty(video, 'ended')
}

/** What the player says of itself; nothing while its page is loading. */
export function readState(): { state: string; code: string } {
  const { state = '', code = '' } = document.body?.dataset ?? {}
  return { state, code }
}

export type ShownFrame = { mediaTimeS: number; widthPx: number; heightPx: number; pngBase64: string }

/** Takes the first frame shown at or after each of these times, ascending, while the video plays; after its end, the last one. */
export async function takeFrames(timesS: number[]): Promise<ShownFrame[]> {
  const video = document.querySelector('video')
  const taken: Promise<ShownFrame>[] = []
  for (const timeS of timesS) {
    while ((await frameShown()) < timeS);
    taken.push(take())
  }
  return Promise.all(taken)

  function frameShown(): Promise<number> {
    return new Promise((resolve) => {
      video.requestVideoFrameCallback((_nowMs, frame) => resolve(frame.mediaTime))
      if (video.ended) resolve(Number.POSITIVE_INFINITY)
      else video.addEventListener('ended', () => resolve(Number.POSITIVE_INFINITY))
    })
  }

  /** A VideoFrame knows its own time, so that picture and time belong together also when the next frame is already due. */
  async function take(): Promise<ShownFrame> {
    const frame = new VideoFrame(video)
    const { timestamp, displayWidth: widthPx, displayHeight: heightPx } = frame
    const canvas = new OffscreenCanvas(widthPx, heightPx)
    canvas.getContext('2d').drawImage(frame, 0, 0, widthPx, heightPx)
    frame.close()
    const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: 'image/png' })).arrayBuffer())
    return { mediaTimeS: timestamp / 1e6, widthPx, heightPx, pngBase64: bytes.toBase64() }
  }
}

/** Puts what the content policy forbade on the console, where a test finds it. */
export function reportViolations(): void {
  document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
    console.error(`${violatedDirective} forbids ${blockedURI}`)
  })
}

/** Tries to export every key that this origin has stored, in every format there is, and to derive bytes from it. */
export async function tryStoredKeys(): Promise<{ usages: string[]; outcomes: string[] }[]> {
  const database = await settled(indexedDB.open('reelgate-player'))
  const stored = await settled(database.transaction('keys').objectStore('keys').getAll())
  const formats = ['pkcs8', 'jwk', 'raw', 'spki'] as const
  const noBytes = new Uint8Array()
  return Promise.all(
    stored.map(async ({ proofKey: { key } }) => {
      const tries = formats.map((format) => crypto.subtle.exportKey(format, key))
      tries.push(crypto.subtle.deriveBits({ name: 'HKDF', hash: 'SHA-256', salt: noBytes, info: noBytes }, key, 256))
      const settledTries = await Promise.allSettled(tries)
      const outcomes = settledTries.map((outcome) => (outcome.status === 'rejected' ? outcome.reason.name : 'succeeded'))
      return { usages: [...key.usages], outcomes }
    }),
  )

  function settled<T>(asked: Asked<T>): Promise<T> {
    return new Promise((resolve) => {
      asked.onsuccess = () => resolve(asked.result)
    })
  }
}

/** Asks for an address from this page, with another browser's proof where there is one. */
export async function fetchStatus({ url, proof }: { url: string; proof?: string }): Promise<number> {
  return (await fetch(url, { headers: proof === undefined ? {} : { 'Reelgate-Proof': proof } })).status
}

/** The captions that show now, as they are written. */
export function readCaptions(): string[] {
  const shown = [...(document.querySelector('video')?.textTracks ?? [])].filter(({ mode }) => mode === 'showing')
  return shown.flatMap(({ activeCues }) => [...(activeCues ?? [])].map(({ text }) => text))
}

type PageElement = {
  readonly shadowRoot: { querySelector(selector: string): PageElement | null } | null
  readonly naturalWidth?: number
  getBoundingClientRect(): { left: number; right: number; top: number }
  getAttribute(name: string): string | null
}
declare const innerWidth: number
declare function getComputedStyle(element: PageElement): { visibility: string }

/** What the preview over the seek bar shows: which part of the sheet, whether it is on the screen and within the frame, and how much wider the time below is. */
export function readSeekPreview() {
  const range = document.querySelector('media-time-range')
  const thumbnail = range.shadowRoot?.querySelector('media-preview-thumbnail')
  const image = thumbnail?.shadowRoot?.querySelector('img')
  const { left = -1, right = -1, top = -1 } = thumbnail?.getBoundingClientRect() ?? {}
  const time = range.shadowRoot?.querySelector('media-preview-time-display')?.getBoundingClientRect()
  return {
    widerByPx: Math.round((time?.right ?? -1) - (time?.left ?? 0) - (right - left)),
    isShown: thumbnail ? getComputedStyle(thumbnail).visibility === 'visible' : false,
    isWithin: left >= 0 && right <= innerWidth && top >= 0,
    hasPicture: (image?.naturalWidth ?? 0) > 100,
    place: thumbnail?.getAttribute('mediapreviewcoords'),
    chapter: range.shadowRoot?.querySelector('media-preview-chapter-display')?.getAttribute('aria-valuetext'),
  }
}
