/**
 * How long the player waits for a stream slot by itself: a page that was closed frees its slot within a lease of 18 s. A slot that is
 * still taken then belongs to a screen that plays.
 */
const MAX_WAIT_MS = 20_000
/** The server counts in whole seconds. */
const MARGIN_MS = 500

type SlotWait = {
  /**
   * Counts down, then retries.
   * @param waitMs until the slot is free, if nothing renews it
   * @returns false: the slot belongs to a screen that plays
   */
  begin(waitMs: number | undefined): boolean
  end(): void
}

/** @param show called about once a second with the seconds that are left */
export function createSlotWait(show: (retryInS: number) => void, retry: () => void): SlotWait {
  let firstRefusalMs: number | undefined
  let timer: ReturnType<typeof setTimeout> | undefined

  function countDown(retryAtMs: number) {
    const leftMs = retryAtMs - performance.now()
    if (leftMs <= 0) {
      timer = undefined
      return retry()
    }
    show(Math.ceil(leftMs / 1000))
    timer = setTimeout(() => countDown(retryAtMs), Math.min(1000, leftMs))
  }

  function end() {
    clearTimeout(timer)
    timer = undefined
    firstRefusalMs = undefined
  }

  return {
    begin(waitMs) {
      if (timer !== undefined) return true
      const nowMs = performance.now()
      firstRefusalMs ??= nowMs
      if (waitMs === undefined || nowMs + waitMs > firstRefusalMs + MAX_WAIT_MS) {
        end()
        return false
      }
      countDown(nowMs + waitMs + MARGIN_MS)
      return true
    },
    end,
  }
}
