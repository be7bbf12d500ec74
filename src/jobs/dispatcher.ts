import type { Logger } from 'pino'
import { levelOf } from '../errors.ts'

/** One piece of work. `key` groups pieces that are stopped together (a video's id). */
export type Job = { key: string; run(signal: AbortSignal): Promise<void> }

export type Dispatcher = {
  /** Says that there may be work: look now. */
  wake(): void
  /** Aborts the jobs of a key and resolves when none of them runs any more. */
  stopJobs(key: string): Promise<void>
  /** Takes no more work, aborts what runs and resolves when nothing does. */
  stop(): Promise<void>
}

/** A failed job keeps its place for so long, and a failed claim rests: on a full disk it would be tried again as fast as the machine can. */
const AFTER_FAILURE_MS = 1_000

/**
 * Runs jobs side by side in one process. What there is to do lies in the database, which `claim` asks; this only says when to look.
 * @param claim takes the next job, so that no other call gets it; `urgentOnly` when all ordinary places are taken
 */
export function startDispatcher(options: {
  places: number
  claim(urgentOnly: boolean): Promise<Job | undefined>
  /** How often to look without being told: for what waits for its time, or for room on the disk. */
  lookEveryMs?: number
  log: Logger
}): Dispatcher {
  const running = new Map<Promise<void>, { key: string; abort: AbortController }>()
  let stopped = false
  let looking: Promise<void> | undefined
  let lookAgain = false
  let isRetryDue = false
  const timer = options.lookEveryMs === undefined ? undefined : setInterval(wake, options.lookEveryMs)

  function wake() {
    if (stopped) return
    lookAgain = true
    looking ??= look().finally(() => {
      looking = undefined
      if (lookAgain) wake()
    })
  }

  async function look() {
    while (lookAgain && !stopped) {
      lookAgain = false
      // One place more than the machine has, for what somebody is waiting for right now.
      while (running.size <= options.places && !stopped) {
        const job = await options.claim(running.size === options.places).catch((error) => {
          options.log[levelOf(error, 'error')]({ err: error }, 'the next job could not be read; it is tried again')
          wakeAfterFailure()
          return undefined
        })
        if (!job) break
        start(job)
      }
    }
  }

  /** Nobody else may ever wake us. Once for all failures: each failed look would bring another. */
  function wakeAfterFailure() {
    if (isRetryDue) return
    isRetryDue = true
    setTimeout(() => {
      isRetryDue = false
      wake()
    }, AFTER_FAILURE_MS).unref()
  }

  function start(job: Job) {
    const abort = new AbortController()
    const run: Promise<void> = job
      .run(abort.signal)
      .catch((error) => {
        options.log[levelOf(error, 'error')]({ err: error, key: job.key }, 'a job failed')
        return pause(AFTER_FAILURE_MS, abort.signal)
      })
      .finally(() => {
        running.delete(run)
        wake()
      })
    running.set(run, { key: job.key, abort })
    if (stopped) abort.abort()
  }

  async function stopJobs(key: string) {
    const theirs = [...running].filter(([, job]) => job.key === key)
    for (const [, job] of theirs) job.abort.abort()
    await Promise.all(theirs.map(([run]) => run))
  }

  async function stop() {
    stopped = true
    clearInterval(timer)
    await looking
    for (const [, job] of running) job.abort.abort()
    await Promise.all(running.keys())
  }

  return { wake, stopJobs, stop }
}

/** Resolves after a time, or as soon as the signal ends it. */
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
