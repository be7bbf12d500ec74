import Hls, {
  type HlsConfig,
  type Loader,
  type LoaderCallbacks,
  type LoaderConfiguration,
  type LoaderContext,
  type LoaderStats,
} from 'hls.js'
import { isFileGone, nextSegmentStep, nextStep, type Refused, type Tried } from './next-step.ts'
import { offlineOr, waitFor } from './play-client.ts'
import { type Asked, askedBy, type Signer } from './proof.ts'
import type { Refusal, Waiting } from './refusals.ts'
import { createSegmentPaths } from './segment-paths.ts'

export type LoaderReport = {
  /** A request with this address waits for its turn, or (undefined) goes on. */
  waiting(url: string, waiting: Waiting | undefined): void
  /** Final: the one told must stop hls.js, which otherwise tries every rendition in turn. */
  refused(refusal: Refusal): void
  /** A key was released; that renews the stream's slot like a beat. */
  keyReleased(): void
}

/** What hls.js is given in place of captions that are gone. */
const NO_CUES = 'WEBVTT\n'

const InnerLoader = Hls.DefaultConfig.loader

/**
 * hls.js's loader for one session: playlists, keys and files with a fresh proof for each attempt, segments without;
 * asks again after `Retry-After` without telling hls.js, which would change the rendition or give up.
 * Wraps hls.js's own loader, one per attempt (each loads only once), for its progress, timeouts and statistics.
 */
export function createLoader(signer: Signer, session: string, report: LoaderReport): HlsConfig['loader'] {
  const segmentPaths = createSegmentPaths(signer, session)
  return class PlaybackLoader implements Loader<LoaderContext> {
    context: LoaderContext | null = null
    readonly stats: LoaderStats
    readonly #config: HlsConfig
    readonly #stop = new AbortController()
    #inner: Loader<LoaderContext>
    #callbacks: LoaderCallbacks<LoaderContext> | undefined
    #settled = false

    constructor(config: HlsConfig) {
      this.#config = config
      this.#inner = new InnerLoader(config)
      this.stats = this.#inner.stats
    }

    load(context: LoaderContext, config: LoaderConfiguration, callbacks: LoaderCallbacks<LoaderContext>): void {
      this.context = context
      this.#callbacks = callbacks
      this.#loadUntilSettled(context, config, callbacks).catch((error: unknown) => {
        if (this.#stop.signal.aborted) return
        this.#settled = true
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
      // After success it must stay false, or hls.js takes no bandwidth sample and the quality stays down for ever.
      if (!this.#settled) this.stats.aborted = true
      this.#inner.abort()
    }

    async #loadUntilSettled(context: LoaderContext, config: LoaderConfiguration, callbacks: LoaderCallbacks<LoaderContext>) {
      const { signal } = this.#stop
      const asked = askedBy(context.url, session)
      const tried: Tried = { proofsRefused: 0, failures: 0 }
      let told = false
      let hasRenewed = false
      try {
        while (!signal.aborted) {
          if (!asked) context.url = await segmentPaths.newest(context.url)
          const refused = await this.#attempt(asked, context, config, callbacks)
          if (refused === undefined || signal.aborted) return
          if (isFileGone(refused)) {
            this.#settled = true
            callbacks.onSuccess({ url: context.url, data: new TextEncoder().encode(NO_CUES).buffer }, this.stats, context, null)
            return
          }
          if (!asked && refused.status === 403 && !hasRenewed) {
            hasRenewed = true // this computer slept longer than its clock says
            await segmentPaths.renew()
            this.#renewInner()
            continue
          }
          const next = asked ? nextStep(refused, tried) : nextSegmentStep(refused, tried)
          if (next.step === 'stop') {
            this.#settled = true
            report.refused(next.refusal)
            if (signal.aborted) return // hls.js was stopped by the one told, and has dropped this request
            callbacks.onError({ code: refused.status, text: next.refusal.code }, context, null, this.stats)
            return
          }
          if (next.step === 'sign-anew') {
            tried.proofsRefused++
          } else {
            tried.proofsRefused = 0
            tried.failures = next.waiting.code === 'network' ? tried.failures + 1 : 0
            told = true
            report.waiting(context.url, offlineOr(next.waiting))
            await waitFor(next.waitMs, next.waiting, signal)
          }
          this.#renewInner()
        }
      } finally {
        if (told) report.waiting(context.url, undefined)
      }
    }

    /** Each inner loader loads once. */
    #renewInner(): void {
      this.#inner = new InnerLoader(this.#config)
      this.#inner.stats = this.stats
    }

    /** Resolves with undefined once hls.js has its answer, else with what the server answered instead. */
    async #attempt(
      asked: Asked | undefined,
      context: LoaderContext,
      config: LoaderConfiguration,
      callbacks: LoaderCallbacks<LoaderContext>,
    ): Promise<Refused | undefined> {
      // hls.js measures from here; signing and waiting are not a slow network.
      const sentMs = performance.now()
      this.stats.loading.start = sentMs
      if (asked) context.headers = { 'Reelgate-Proof': await signer.sign(asked) }
      if (this.#stop.signal.aborted) return undefined
      this.stats.loading.start = 0 // an inner loader takes another value for a second use
      return new Promise((resolve) => {
        const settle = () => {
          this.#settled = true
          resolve(undefined)
        }
        this.#inner.load(
          context,
          { ...config, loadPolicy: { ...config.loadPolicy, errorRetry: null, timeoutRetry: null } },
          {
            onProgress: callbacks.onProgress,
            onSuccess: (response, stats, loaded, details) => {
              if (details instanceof XMLHttpRequest && asked) signer.takeNonce(details.getResponseHeader('Reelgate-Nonce'))
              settle()
              if (asked?.operation === 'key') report.keyReleased()
              if (asked?.operation === 'playlist') segmentPaths.note(context.url, String(response.data), sentMs)
              callbacks.onSuccess(response, stats, loaded, details)
            },
            onTimeout: (stats, loaded, details) => {
              if (asked) return resolve({ status: 0, retryAfter: null, body: '' })
              settle() // a slow segment is for hls.js to judge: another rendition may be faster
              callbacks.onTimeout(stats, loaded, details)
            },
            onError: ({ code }, _context, details) => {
              if (!(details instanceof XMLHttpRequest)) return resolve({ status: code, retryAfter: null, body: '' })
              if (asked) signer.takeNonce(details.getResponseHeader('Reelgate-Nonce'))
              resolve({ status: code, retryAfter: details.getResponseHeader('Retry-After'), body: bodyText(details) })
            },
          },
        )
      })
    }
  }
}

function bodyText(request: XMLHttpRequest): string {
  if (request.response instanceof ArrayBuffer) return new TextDecoder().decode(request.response)
  return typeof request.response === 'string' ? request.response : ''
}
