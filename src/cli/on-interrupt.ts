/** The first Ctrl-C or termination signal aborts, so that the caller can clean up; the second ends the process immediately. */
export function listenForInterruption(): Disposable & { signal: AbortSignal } {
  const controller = new AbortController()
  const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  const stop = () => {
    for (const signal of SIGNALS) process.off(signal, stop)
    controller.abort()
  }
  for (const signal of SIGNALS) process.on(signal, stop)
  return { signal: controller.signal, [Symbol.dispose]: () => SIGNALS.forEach((signal) => void process.off(signal, stop)) }
}
