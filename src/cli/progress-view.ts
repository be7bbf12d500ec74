import type { WriteStream } from 'node:tty'
import { listenForInterruption } from './on-interrupt.ts'

/** The progress of a long operation. */
export type ProgressView = {
  /** @param part 0 to 1 @param step the current step */
  show(part: number, step: string): void
  /** Prints a line of its own, unless it is empty. */
  say(line: string): void
  /** Removes the bar before other output. */
  clear(): void
}

const BAR_WIDTH = 24
const PLAIN_STEP = 0.1
const MIN_SECONDS_TO_ESTIMATE = 3

/** Of a long command: its progress on stderr, unless it is silent, and the signal of Ctrl-C. */
export function openProgress(isSilent: boolean): Disposable & { view: ProgressView; signal: AbortSignal } {
  const view = isSilent ? SILENT_PROGRESS_VIEW : openProgressView(process.stderr)
  const interruption = listenForInterruption()
  return {
    view,
    signal: interruption.signal,
    [Symbol.dispose]() {
      view.clear()
      interruption[Symbol.dispose]()
    },
  }
}

/** A live bar on a terminal; elsewhere a line for each step and each tenth, so that a log file is readable. */
function openProgressView(out: NodeJS.WriteStream & Partial<WriteStream>): ProgressView {
  return out.isTTY ? liveBar(out) : plainLines(out)
}

const SILENT_PROGRESS_VIEW: ProgressView = { show: () => undefined, say: () => undefined, clear: () => undefined }

function liveBar(out: NodeJS.WriteStream): ProgressView {
  const estimate = createEstimate()
  return {
    show(part, step) {
      const filled = Math.round(part * BAR_WIDTH)
      const bar = '█'.repeat(filled) + '░'.repeat(BAR_WIDTH - filled)
      const line = [`  ${bar} ${percent(part).padStart(5)}`, step, estimate(part)].filter((piece) => piece !== '').join('  ')
      // A line that wraps could not be overwritten.
      out.write(
        `\r\x1b[K${Array.from(line)
          .slice(0, Math.max(1, out.columns - 1))
          .join('')}`,
      )
    },
    say: (line) => void out.write(withNewline(line)),
    clear: () => void out.write('\r\x1b[K'),
  }
}

function plainLines(out: NodeJS.WriteStream): ProgressView {
  let shown = { step: '', part: 0 }
  return {
    show(part, text) {
      const [step = ''] = text.split(',')
      if (step === shown.step && part < shown.part + PLAIN_STEP) return
      shown = { step, part }
      out.write(`${percent(part).padStart(5)}  ${text}\n`)
    },
    say: (line) => void out.write(withNewline(line)),
    clear: () => undefined,
  }
}

const withNewline = (line: string) => (line === '' ? '' : `${line}\n`)

function percent(part: number): string {
  return `${Math.floor(part * 100)} %`
}

/** Estimates the remaining time from the speed since the last step began, which resets the part. */
function createEstimate(): (part: number) => string {
  let start = { atMs: performance.now(), part: 0 }
  let last = 0
  return (part) => {
    if (part < last) start = { atMs: performance.now(), part }
    last = part
    const sinceS = (performance.now() - start.atMs) / 1000
    if (sinceS < MIN_SECONDS_TO_ESTIMATE || part <= start.part || part >= 1) return ''
    return `about ${formatDuration(((1 - part) * sinceS) / (part - start.part))} left`
  }
}

export function formatDuration(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`
  return seconds < 90 * 60 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`
}
