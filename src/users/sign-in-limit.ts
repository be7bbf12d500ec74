import { createSlidingWindows } from '../rate-limits/sliding-window.ts'

/** Failed attempts on one name, from all addresses together. */
const MAX_FAILURES = 10
const LENGTH = { windowS: 900, sliceS: 15 }

/** Limits guessing the password of one person from many addresses. Unknown names are counted alike. */
export type SignInLimit = {
  /** Counts an attempt. @returns the seconds to wait where it is one too many */
  take(foldedName: string): number | undefined
  /** Removes an attempt that succeeded. */
  refund(foldedName: string): void
}

export function createSignInLimit(nowS: () => number): SignInLimit {
  const windows = createSlidingWindows(nowS, LENGTH)
  return {
    take(foldedName) {
      const { passed, waitS } = windows.take(foldedName, MAX_FAILURES)
      return passed ? undefined : waitS
    },
    refund: windows.refund,
  }
}
