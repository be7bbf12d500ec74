/** Calls `tick` about once a second, also in hidden tabs where the page's own timers slow down. Returns its end. */
export function startTicker(tick: () => void): () => void {
  try {
    const source = URL.createObjectURL(new Blob(['setInterval(() => postMessage(0), 1000)'], { type: 'text/javascript' }))
    const worker = new Worker(source)
    worker.onmessage = tick
    return () => {
      worker.terminate()
      URL.revokeObjectURL(source)
    }
  } catch {
    const timer = setInterval(tick, 1000) // a policy without blob: workers
    return () => clearInterval(timer)
  }
}
