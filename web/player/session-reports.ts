import { isBeatDue } from './beats.ts'
import { followPlayChanges } from './play-changes.ts'
import { type Leave, prepareLeave, sendBeat } from './play-client.ts'
import type { Signer } from './proof.ts'
import type { Refusal } from './refusals.ts'
import type { ViewQuality } from './view-quality.ts'
import type { PlayState } from './wire.ts'

/** A leave's nonce is valid for 90 s, and its seq stays within the server's window of 32 for about as long. */
const LEAVE_VALID_MS = 20_000
/** The video element's first events come before there is anything to report. */
const SILENT_BEFORE_START_MS = 1_000

/** Reports to the server how a session plays: beats, and the leave when the page closes. */
type SessionReports = {
  beat(): void
  /** A beat as of a video that waits to play. @returns whether the session has its stream slot */
  requestSlot(): Promise<boolean>
  /** Call about once a second, and when playback starts: sends a beat when one is due, and keeps a signed leave ready. */
  tick(): void
  /** A released key renews the stream slot, as a beat does. */
  keyReleased(): void
  /** A last beat, with what stopped the player. */
  failed(): void
}

type SessionReportDeps = {
  signer: Signer
  root: URL
  session: string
  beatEveryMs: number
  video: HTMLVideoElement
  /** Ends the reports. */
  signal: AbortSignal
  hasStarted(): boolean
  playState(): PlayState
  /** The id of the video rendition that is on the screen; undefined before the first. */
  renditionId(): number | undefined
  readQuality: ViewQuality['read']
  onRefused(refusal: Refusal): void
}

export function createSessionReports(deps: SessionReportDeps): SessionReports {
  const { signer, root, session, video, signal } = deps
  const last = { beatMs: performance.now(), keyMs: Number.NEGATIVE_INFINITY, changeMs: Number.NEGATIVE_INFINITY }
  const changes = followPlayChanges(video, signal)
  let signedLeave: { signedMs: number; leave: Leave } | undefined
  let isSigning = false
  /** The pause of a page that is closed, or any other beat, would take the leave back. */
  let hasLeft = false
  let sent: Promise<unknown> = Promise.resolve()
  let isQueued = false
  video.addEventListener('pause', () => !video.ended && beat(), { signal })
  video.addEventListener('ended', beat, { signal })
  // A phone may end a page that it hides.
  document.addEventListener('visibilitychange', () => document.hidden && !video.paused && beat(), { signal })
  // Also when the page around removes the frame, which it may do before the first beat.
  void signLeave()
  addEventListener('pagehide', leave, { signal })
  // Back from the browser's page cache: the slot was given up when the page was left.
  addEventListener('pageshow', (event) => event.persisted && comeBack(), { signal })

  function leave(): void {
    hasLeft = true
    signedLeave?.leave.send()
  }

  function comeBack(): void {
    hasLeft = false
    beat()
  }

  /** One after the other: a beat that overtakes another one would make it report a jump. */
  function beat(): void {
    if (!deps.hasStarted() && performance.now() - last.beatMs < SILENT_BEFORE_START_MS) return
    if (isQueued || hasLeft) return
    isQueued = true
    sent = sent.then(() => {
      isQueued = false
      return signal.aborted || hasLeft ? undefined : send(deps.playState())
    })
  }

  async function send(state: PlayState): Promise<boolean> {
    last.beatMs = performance.now()
    if (changes.hasChanged) last.changeMs = last.beatMs
    const { positionS, leftAtS } = changes.take(state === 'playing')
    void signLeave()
    const refusal = await sendBeat(signer, root, session, {
      state,
      positionS: roundToMs(positionS),
      rate: video.playbackRate,
      bufferS: roundToMs(bufferedAheadS(video)),
      rendition: deps.renditionId(),
      ...(leftAtS !== undefined && { leftAtS: roundToMs(leftAtS) }),
      quality: deps.readQuality(),
    })
    if (refusal && !signal.aborted) deps.onRefused(refusal)
    return refusal === undefined
  }

  async function signLeave(): Promise<void> {
    if (isSigning) return
    isSigning = true
    const signedMs = performance.now()
    try {
      signedLeave = { signedMs, leave: await prepareLeave(signer, root, session) }
    } finally {
      isSigning = false
    }
  }

  return {
    beat,
    requestSlot: () => send('stalled'),
    failed: () => void send('paused'),
    tick() {
      const nowMs = performance.now()
      const { hasChanged } = changes
      if (isBeatDue({ state: deps.playState(), hasChanged }, nowMs, last, deps.beatEveryMs)) beat()
      if (!signedLeave || nowMs - signedLeave.signedMs > LEAVE_VALID_MS) void signLeave()
    },
    keyReleased() {
      last.keyMs = performance.now()
    },
  }
}

function bufferedAheadS({ buffered, currentTime }: HTMLVideoElement): number {
  for (let at = 0; at < buffered.length; at++) {
    if (buffered.start(at) <= currentTime + 0.1 && currentTime < buffered.end(at)) return buffered.end(at) - currentTime
  }
  return 0
}

function roundToMs(seconds: number): number {
  return Math.round(seconds * 1000) / 1000
}
