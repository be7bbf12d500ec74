import { LRUCache } from 'lru-cache'
import { ipRateLimitKey } from '../net/ip.ts'
import { createSlidingWindows, type SharedWindows } from '../rate-limits/sliding-window.ts'

/** Wrong passwords that an address may send one after the other; from then on one for each that `REFILL_S` brings back. */
const MAX_FAILURES = 10
const REFILL_S = 60
/**
 * Wrong passwords for one name from all addresses together. Beyond them each address has one attempt a minute on this name, the first one
 * included: guessing from many addresses becomes slow, and a person at an address of their own still gets in.
 */
const MAX_FAILURES_OF_NAME = 100
const NAME_WINDOW = { windowS: 900, sliceS: 15 }
/** Beyond it the address that was not used for the longest time is forgotten. */
const MAX_ADDRESSES = 20_000

/**
 * Limits guessing passwords. It slows down the address that guesses, never the person whose password is guessed: whatever others do, a
 * person waits at most a minute. Nothing depends on whether a name exists.
 */
export type SignInLimit = {
  /** Counts an attempt. @returns the seconds to wait, at most 60, where it is one too many */
  take(address: string, foldedName: string): number | undefined
  /** Removes an attempt that succeeded. */
  refund(address: string, foldedName: string): void
}

/** Failures that count at a time; each is forgotten after `REFILL_S`, one after the other. */
type Bucket = { failures: number; atS: number }

export function createSignInLimit(nowS: () => number, share?: (name: string, windows: SharedWindows) => void): SignInLimit {
  const ofAddress = createBuckets(nowS, MAX_FAILURES)
  const ofAddressAndName = createBuckets(nowS, 1)
  const ofName = createSlidingWindows(nowS, NAME_WINDOW)
  share?.('passwords of a name', ofName)

  return {
    take(address, foldedName) {
      const subject = ipRateLimitKey(address)
      const pair = `${subject} ${foldedName}`
      const isGuessedWidely = ofName.isExhausted(foldedName, MAX_FAILURES_OF_NAME)
      const waitS = Math.max(ofAddress.waitS(subject), isGuessedWidely ? ofAddressAndName.waitS(pair) : 0)
      if (waitS > 0) return waitS
      ofAddress.add(subject, 1)
      if (isGuessedWidely) ofAddressAndName.add(pair, 1)
      ofName.take(foldedName, MAX_FAILURES_OF_NAME)
      return undefined
    },
    refund(address, foldedName) {
      const subject = ipRateLimitKey(address)
      ofAddress.add(subject, -1)
      ofAddressAndName.add(`${subject} ${foldedName}`, -1)
      ofName.refund(foldedName)
    },
  }
}

function createBuckets(nowS: () => number, size: number) {
  const buckets = new LRUCache<string, Bucket>({ max: MAX_ADDRESSES })

  function failuresOf(subject: string): number {
    const { failures, atS } = buckets.get(subject) ?? { failures: 0, atS: 0 }
    return Math.max(0, failures - (nowS() - atS) / REFILL_S)
  }

  return {
    /** Seconds until one more fits; 0: now. */
    waitS: (subject: string) => Math.ceil(Math.max(0, failuresOf(subject) + 1 - size) * REFILL_S),
    add(subject: string, count: number): void {
      buckets.set(subject, { failures: Math.max(0, failuresOf(subject) + count), atS: nowS() })
    },
  }
}
