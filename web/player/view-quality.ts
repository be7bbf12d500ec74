import type { Quality } from './wire.ts'

// What a viewer notices of how the video plays: docs/playback-quality.md defines it.

type MeasuredVideo = EventTarget & {
  readonly currentTime: number
  readonly paused: boolean
  readonly seeking: boolean
  readonly readyState: number
  getVideoPlaybackQuality?(): { readonly totalVideoFrames: number; readonly droppedVideoFrames: number }
  requestVideoFrameCallback?(shown: () => void): number
}

export type ViewQuality = {
  /** Since the page was opened. @param nowMs of the page's clock */
  read(nowMs?: number): Quality
  /** The player stopped. @returns whether the server does not know that by itself */
  failed(code: string): boolean
}

const ERRORS = ['network', 'internal', 'watermark-blocked', 'video-gone', 'unsupported-browser'] as const
const NETWORKS = ['slow-2g', '2g', '3g', '4g'] as const
const HAVE_FUTURE_DATA = 3

type MeasureDeps = {
  video: MeasuredVideo
  /** The video rendition that is on the screen. */
  renditionId(): number | undefined
  /** What the browser says of its connection. */
  network(): string | undefined
  /** When playback was asked for before the session was open. */
  askedMs: number | undefined
  signal: AbortSignal
}

export function measureViewQuality({ video, renditionId, signal, ...deps }: MeasureDeps): ViewQuality {
  const played = new Map<number, number>()
  const frames = countFrames(video)
  let askedMs: number | undefined
  let startMs: number | undefined
  let waits = 0
  let waitedMs = 0
  let waitingSinceMs: number | undefined
  /** Until a seek shows its picture, what is waited for is the seek. */
  let isSeeking = false
  let playedFromMs: number | undefined
  let lastS = 0
  let error: Quality['error']

  // When it happened: other listeners, such as those that open the stream, may have kept a slow device before these.
  const on = (type: string, listener: (atMs: number) => void) =>
    video.addEventListener(type, ({ timeStamp }) => listener(timeStamp), { signal })
  on('play', asked)
  on('playing', moves)
  on('timeupdate', (atMs) => !video.paused && !video.seeking && video.currentTime > lastS && moves(atMs))
  on('waiting', (atMs) => {
    countPlayed(atMs)
    playedFromMs = undefined
    if (startMs === undefined || isSeeking || video.seeking || video.paused || waitingSinceMs !== undefined) return
    waits++
    waitingSinceMs = atMs
  })
  on('seeking', (atMs) => {
    stops(atMs)
    isSeeking = !video.paused
  })
  on('pause', (atMs) => {
    if (startMs === undefined) askedMs = undefined // taken back; a script may have paused it, too
    stops(atMs)
  })
  for (const type of ['ended', 'emptied']) on(type, stops)
  if (!video.paused) asked(deps.askedMs ?? performance.now())

  function asked(atMs: number) {
    if (startMs !== undefined || askedMs !== undefined) return
    askedMs = atMs
    lastS = video.currentTime
    video.requestVideoFrameCallback?.(() => askedMs === atMs && started(performance.now()))
  }

  function started(atMs: number) {
    if (startMs === undefined && askedMs !== undefined) startMs = atMs - askedMs
  }

  function moves(atMs: number) {
    // A page that is hidden shows no frame, and a file with sound alone has none.
    if (video.currentTime > lastS) started(atMs)
    countPlayed(atMs)
    playedFromMs = atMs
    lastS = video.currentTime
    if (video.readyState < HAVE_FUTURE_DATA) return
    isSeeking = false
    endWait(atMs)
  }

  function stops(atMs: number) {
    countPlayed(atMs)
    playedFromMs = undefined
    lastS = video.currentTime
    endWait(atMs)
  }

  function endWait(atMs: number) {
    if (waitingSinceMs !== undefined) waitedMs += atMs - waitingSinceMs
    waitingSinceMs = undefined
  }

  function countPlayed(atMs: number) {
    const id = renditionId()
    if (playedFromMs === undefined || id === undefined) return
    played.set(id, (played.get(id) ?? 0) + atMs - playedFromMs)
  }

  return {
    read(nowMs = performance.now()) {
      const waitingMs = waitingSinceMs === undefined ? 0 : nowMs - waitingSinceMs
      const network = NETWORKS.find((known) => known === deps.network())
      return {
        measuredMs: Math.round(nowMs),
        ...(startMs !== undefined && { startMs: Math.round(startMs) }),
        waits,
        waitedMs: Math.round(waitedMs + waitingMs),
        played: [...played].map(([id, ms]) => [id, Math.round(ms)] as const),
        ...frames(),
        ...(error && { error }),
        ...(network && { network }),
      }
    },
    failed(code) {
      const kind = ERRORS.find((known) => known === code)
      error ??= kind
      return kind !== undefined
    },
  }
}

/** The browser counts from 0 again when the video is loaded again. */
function countFrames(video: MeasuredVideo): () => Pick<Quality, 'frames' | 'droppedFrames'> {
  let before = { frames: 0, droppedFrames: 0 }
  let last = before
  return () => {
    const { totalVideoFrames: frames = 0, droppedVideoFrames: droppedFrames = 0 } = video.getVideoPlaybackQuality?.() ?? {}
    if (frames < last.frames)
      before = { frames: before.frames + last.frames, droppedFrames: before.droppedFrames + last.droppedFrames }
    last = { frames, droppedFrames }
    return { frames: before.frames + frames, droppedFrames: before.droppedFrames + droppedFrames }
  }
}
