/** What a line is taken to carry where nothing says otherwise, in bits per second. */
const ASSUMED_BPS = 1_500_000
/** Of what is smaller, the network's latency decides how long it takes. */
const MEASURABLE_BYTES = 20_000

declare global {
  interface Navigator {
    /** Chromium's. `downlink` in megabits per second. */
    readonly connection?: { readonly saveData?: boolean; readonly downlink?: number; readonly effectiveType?: string }
  }
}

/** The speed for the choice of the first quality, in bits per second: at most what is assumed, since one file does not measure a fast line. */
export function startingBps(): number {
  return Math.min(ASSUMED_BPS, findLineBps() ?? ASSUMED_BPS)
}

/** Undefined: not known, such as of a browser that had everything in its cache. */
export function isSlowLine(): boolean | undefined {
  const bps = findLineBps()
  return bps === undefined ? undefined : bps < ASSUMED_BPS
}

export function savesData(): boolean {
  return navigator.connection?.saveData === true
}

/** As the largest file of this page came that was not in the browser's cache, which on most visits is the player's own script. */
function findLineBps(): number | undefined {
  const [largest] = performance
    .getEntriesByType('resource')
    .filter((entry) => entry instanceof PerformanceResourceTiming)
    .filter(({ transferSize, encodedBodySize }) => transferSize > 0 && encodedBodySize > MEASURABLE_BYTES)
    .sort((a, b) => b.encodedBodySize - a.encodedBodySize)
  if (largest) return (8000 * largest.encodedBodySize) / Math.max(1, largest.responseEnd - largest.responseStart)
  const { downlink } = navigator.connection ?? {}
  return downlink === undefined ? undefined : downlink * 1e6
}
