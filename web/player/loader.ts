import Hls, {
  type FragmentLoaderContext,
  type HlsConfig,
  type Loader,
  type LoaderCallbacks,
  type LoaderConfiguration,
  type LoaderContext,
  type LoaderStats,
} from 'hls.js'
import { type Attempts, type FailedResponse, isFileGone, nextSegmentStep, nextStep } from './next-step.ts'
import { orOffline, waitFor } from './play-client.ts'
import { parseSignedRequest, type SignedRequest, type Signer } from './proof.ts'
import type { Refusal, Waiting } from './refusals.ts'
import type { SegmentPaths } from './segment-paths.ts'

export type LoaderReport = {
  /** A request of this address waits, or (undefined) waits no more. */
  waiting(url: string, waiting: Waiting | undefined): void
  /** Final. The caller must stop hls.js, which otherwise tries every rendition in turn. */
  refused(refusal: Refusal): void
  /** A key was released; that renews the stream's slot like a beat. */
  keyReleased(): void
  /** A request begins, or has ended. */
  loading(by: 1 | -1): void
  /**
   * The server has the rendition of this playlist no longer.
   * @returns whether it is an audio track's, in whose place another one plays
   */
  audioRemoved(playlist: string): boolean
}

/** What hls.js is given in place of captions that are gone. */
const NO_CUES = 'WEBVTT\n'

const InnerLoader = Hls.DefaultConfig.loader

type LoaderDeps = {
  signer: Signer
  session: string
  segmentPaths: SegmentPaths
  /** Resolves when the viewer wants to watch: no key is requested before. */
  keysWanted: Promise<unknown>
  report: LoaderReport
}
type Request = { context: LoaderContext; config: LoaderConfiguration; callbacks: LoaderCallbacks<LoaderContext> }

/** hls.js's loader for one session. */
export function createLoader(deps: LoaderDeps): HlsConfig['loader'] {
  return class extends PlaybackLoader {
    constructor(config: HlsConfig) {
      super(config, deps)
    }
  }
}

/**
 * Loads playlists, keys and files with a fresh proof for each attempt, segments without. Retries after `Retry-After` without
 * reporting to hls.js, which would change the rendition or give up.
 * Wraps hls.js's own loader, one per attempt (each loads only once), for its progress, timeouts and statistics.
 */
class PlaybackLoader implements Loader<LoaderContext> {
  context: LoaderContext | null = null
  readonly stats: LoaderStats
  readonly #config: HlsConfig
  readonly #deps: LoaderDeps
  readonly #stop = new AbortController()
  #inner: Loader<LoaderContext>
  #callbacks: LoaderCallbacks<LoaderContext> | undefined
  #isSettled = false
  #isUnderWay = false

  constructor(config: HlsConfig, deps: LoaderDeps) {
    this.#config = config
    this.#deps = deps
    this.#inner = new InnerLoader(config)
    this.stats = this.#inner.stats
  }

  load(context: LoaderContext, config: LoaderConfiguration, callbacks: LoaderCallbacks<LoaderContext>): void {
    this.context = context
    this.#callbacks = callbacks
    this.#loadUntilSettled({ context, config, callbacks }).catch((error: unknown) => {
      if (this.#stop.signal.aborted) return
      this.#isSettled = true
      callbacks.onError({ code: 0, text: String(error) }, context, null, this.stats)
    })
  }

  abort(): void {
    this.#end()
    if (this.context) this.#callbacks?.onAbort?.(this.stats, this.context, null)
  }

  destroy(): void {
    this.#end()
    this.#inner.destroy()
    this.#callbacks = undefined
    this.context = null
  }

  getCacheAge(): number | null {
    return this.#inner.getCacheAge?.() ?? null
  }

  getResponseHeader(name: string): string | null {
    return this.#inner.getResponseHeader?.(name) ?? null
  }

  #end(): void {
    this.#stop.abort()
    this.#setUnderWay(false)
    // After success it must stay false, or hls.js takes no bandwidth sample and the quality stays low for ever.
    if (!this.#isSettled) this.stats.aborted = true
    this.#inner.abort()
  }

  #setUnderWay(isUnderWay: boolean): void {
    if (this.#isUnderWay !== isUnderWay) this.#deps.report.loading(isUnderWay ? 1 : -1)
    this.#isUnderWay = isUnderWay
  }

  async #loadUntilSettled(request: Request): Promise<void> {
    const { context } = request
    const { signal } = this.#stop
    const { session, segmentPaths, report } = this.#deps
    const signed = parseSignedRequest(context.url, session)
    const attempts: Attempts = { proofsRefused: 0, failures: 0 }
    let hasWaited = false
    let hasRenewedPaths = false
    this.#setUnderWay(true)
    try {
      if (signed?.operation === 'key') await this.#deps.keysWanted
      while (!signal.aborted) {
        if (!signed) await this.#prepareSegment(context)
        const failed = await this.#attempt(request, signed)
        if (failed === undefined || signal.aborted) return
        if (!signed && isRefusedAddress(failed, context.url) && !hasRenewedPaths) {
          hasRenewedPaths = true // this computer slept longer than its clock says, or what was missing there is repaired
          await segmentPaths.renew(context.url)
          this.#renewInner()
          continue
        }
        const replaced = !signed && failed.status === 404 && (await segmentPaths.replace(context.url))
        if (replaced === true) {
          this.#renewInner()
          continue
        }
        const response = replaced || failed
        if (isFileGone(response) && this.#leaveOut(request, signed)) return
        const next = signed || replaced ? nextStep(response, attempts) : nextSegmentStep(response, attempts)
        if (next.step === 'stop') return this.#refuse(request, failed.status, next.refusal)
        if (next.step === 'sign-again') {
          attempts.proofsRefused++
        } else {
          attempts.proofsRefused = 0
          attempts.failures = next.waiting.code === 'network' ? attempts.failures + 1 : 0
          hasWaited = true
          report.waiting(context.url, orOffline(next.waiting))
          await waitFor(next.waitMs, next.waiting, signal)
        }
        this.#renewInner()
      }
    } finally {
      this.#setUnderWay(false)
      if (hasWaited) report.waiting(context.url, undefined)
    }
  }

  /** hls.js would take the number of the segment for its IV. */
  async #prepareSegment(context: LoaderContext): Promise<void> {
    const { segmentPaths } = this.#deps
    context.url = await segmentPaths.newest(context.url)
    const decryptData = isOfFragment(context) ? context.frag.decryptdata : null
    if (decryptData) decryptData.iv = (await segmentPaths.ivOf(context.url)) ?? decryptData.iv
  }

  /** @returns false for what the video cannot be played without */
  #leaveOut({ context, callbacks }: Request, signed: SignedRequest | undefined): boolean {
    if (signed?.operation !== 'file') {
      const playlist = isOfFragment(context) ? context.frag.baseurl : context.url
      return this.#deps.report.audioRemoved(playlist) // hls.js loads another one, and waits for this one no more
    }
    this.#isSettled = true
    callbacks.onSuccess({ url: context.url, data: new TextEncoder().encode(NO_CUES).buffer }, this.stats, context, null)
    return true
  }

  #refuse({ context, callbacks }: Request, status: number, refusal: Refusal): void {
    this.#isSettled = true
    this.#deps.report.refused(refusal)
    if (this.#stop.signal.aborted) return // reporting stopped hls.js, which has dropped this request
    callbacks.onError({ code: status, text: refusal.code }, context, null, this.stats)
  }

  /** A segment that came before its key was wanted is parsed later: without this hls.js would measure a slow network. */
  #forgetWaitForKey(): void {
    const { loading } = this.stats
    const loadedMs = performance.now()
    void this.#deps.keysWanted.then(() => {
      const waitedMs = performance.now() - loadedMs
      loading.start += waitedMs
      loading.first += waitedMs
      loading.end += waitedMs
    })
  }

  /** Each inner loader loads once. */
  #renewInner(): void {
    this.#inner = new InnerLoader(this.#config)
    this.#inner.stats = this.stats
  }

  /** Resolves with undefined once hls.js has its response, else with the failed response. */
  async #attempt(
    { context, config, callbacks }: Request,
    signed: SignedRequest | undefined,
  ): Promise<FailedResponse | undefined> {
    const { signer, segmentPaths, report } = this.#deps
    // hls.js measures from here; signing and waiting are not a slow network.
    const sentMs = performance.now()
    this.stats.loading.start = sentMs
    if (signed) context.headers = { 'Reelgate-Proof': await signer.sign(signed) }
    if (this.#stop.signal.aborted) return undefined
    this.stats.loading.start = 0 // an inner loader takes another value for a second use
    return new Promise((resolve) => {
      const settle = () => {
        this.#isSettled = true
        resolve(undefined)
      }
      this.#inner.load(
        context,
        { ...config, loadPolicy: { ...config.loadPolicy, errorRetry: null, timeoutRetry: null } },
        {
          onProgress: callbacks.onProgress,
          onSuccess: (response, stats, loaded, details) => {
            if (details instanceof XMLHttpRequest && signed) signer.takeNonce(details.getResponseHeader('Reelgate-Nonce'))
            settle()
            if (!signed) this.#forgetWaitForKey()
            if (signed?.operation === 'key') report.keyReleased()
            if (signed?.operation === 'playlist') segmentPaths.note(context.url, String(response.data), sentMs)
            callbacks.onSuccess(response, stats, loaded, details)
          },
          onTimeout: (stats, loaded, details) => {
            if (signed) return resolve({ status: 0, retryAfter: null, body: '' })
            settle() // a slow segment is for hls.js to judge: another rendition may be faster
            callbacks.onTimeout(stats, loaded, details)
          },
          onError: ({ code }, _context, details) => {
            if (!(details instanceof XMLHttpRequest)) return resolve({ status: code, retryAfter: null, body: '' })
            if (signed) signer.takeNonce(details.getResponseHeader('Reelgate-Nonce'))
            resolve({ status: code, retryAfter: details.getResponseHeader('Retry-After'), body: bodyText(details) })
          },
        },
      )
    })
  }
}

/** What another origin refuses without the headers of CORS cannot be distinguished from a broken connection. */
function isRefusedAddress({ status }: FailedResponse, url: string): boolean {
  return status === 403 || ((status === 0 || status === 404) && new URL(url).origin !== location.origin)
}

function isOfFragment(context: LoaderContext): context is FragmentLoaderContext {
  return 'frag' in context
}

function bodyText(request: XMLHttpRequest): string {
  if (request.response instanceof ArrayBuffer) return new TextDecoder().decode(request.response)
  return typeof request.response === 'string' ? request.response : ''
}
