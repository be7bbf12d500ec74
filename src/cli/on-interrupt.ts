/** The first Ctrl-C, or an end that somebody else asked for, is an order to tidy up; the second ends at once. */
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
