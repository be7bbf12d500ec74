import type { Logger } from 'pino'
import { logLevelFor } from '../errors.ts'
import type { Signals, Work } from '../signals/signals.ts'

/** One unit of work. Jobs with the same `key` are stopped together (a video's id). */
export type Job = { key: string; run(signal: AbortSignal): Promise<void> }

export type Dispatcher = {
  /** Claims jobs now: there may be work. */
  wake(): void
  /** Claims no more jobs, aborts the running ones and resolves when all have ended. */
  stop(): Promise<void>
}

/** How long a failed job keeps its slot, and a failed claim waits: a full disk would be tried as fast as the machine can. */
const RETRY_AFTER_MS = 1_000

/**
 * Runs jobs concurrently in one process. The database says what is to be done; this only decides when `claim` asks it.
 * @param options.follows claims jobs when such work is queued, and ends those of videos whose work is cancelled, also one that is being claimed
 * @param options.claim claims the next job, so that no other call gets it; `urgentOnly` when all ordinary slots are taken
 */
export function startDispatcher(options: {
  slots: number
  claim(urgentOnly: boolean): Promise<Job | undefined>
  /** How often to claim without `wake`: for jobs with a retry time, and for room on the disk. */
  pollIntervalMs?: number
  follows?: { signals: Pick<Signals, 'on'>; work: Work }
  log: Logger
}): Dispatcher {
  const running = new Map<Promise<void>, { key: string; isExtra: boolean; abort: AbortController }>()
  let stopped = false
  let claiming: Promise<void> | undefined
  let isWakePending = false
  let isRetryDue = false
  const timer = options.pollIntervalMs === undefined ? undefined : setInterval(wake, options.pollIntervalMs)

  function wake() {
    if (stopped) return
    isWakePending = true
    claiming ??= claimJobs().finally(() => {
      claiming = undefined
      if (isWakePending) wake()
    })
  }

  async function claimJobs() {
    while (isWakePending && !stopped) {
      isWakePending = false
      while (running.size <= options.slots && !stopped) {
        // One slot more than the machine has, for what a viewer waits for right now. An ordinary slot that gets free takes ordinary
        // jobs, or a stream of urgent ones would leave them none.
        const extras = running
          .values()
          .filter(({ isExtra }) => isExtra)
          .toArray().length
        const isExtra = running.size - extras === options.slots
        const job = await options.claim(isExtra).catch((error) => {
          options.log[logLevelFor(error, 'error')]({ err: error }, 'jobs: claim failed, retrying')
          wakeAfterFailure()
          return undefined
        })
        if (!job) break
        start(job, isExtra)
      }
    }
  }

  /** There may be no other wake. One timer for all failures: else each failed claim would add another. */
  function wakeAfterFailure() {
    if (isRetryDue) return
    isRetryDue = true
    setTimeout(() => {
      isRetryDue = false
      wake()
    }, RETRY_AFTER_MS).unref()
  }

  function start(job: Job, isExtra: boolean) {
    const abort = new AbortController()
    const run: Promise<void> = job
      .run(abort.signal)
      .catch((error) => {
        options.log[logLevelFor(error, 'error')]({ err: error, key: job.key }, 'jobs: job failed')
        return pause(RETRY_AFTER_MS, abort.signal)
      })
      .finally(() => {
        running.delete(run)
        wake()
      })
    running.set(run, { key: job.key, isExtra, abort })
    if (stopped) abort.abort()
  }

  options.follows?.signals.on('work-queued', (queued) => queued === options.follows?.work && wake())
  options.follows?.signals.on('work-cancelled', async ({ videoIds, work }) => {
    if (work !== undefined && work !== options.follows?.work) return
    await Promise.all([abortJobs(videoIds), claiming?.then(() => abortJobs(videoIds))])
  })

  async function abortJobs(keys: readonly string[]) {
    const matching = [...running].filter(([, job]) => keys.includes(job.key))
    for (const [, job] of matching) job.abort.abort()
    await Promise.all(matching.map(([run]) => run))
  }

  async function stop() {
    stopped = true
    clearInterval(timer)
    await claiming
    for (const [, job] of running) job.abort.abort()
    if (running.size > 0) options.log.info({ running: running.size }, 'jobs: aborted for the stop')
    await Promise.all(running.keys())
  }

  return { wake, stop }
}

/** Resolves after a time, or when the signal is aborted. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
