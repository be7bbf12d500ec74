import type { LookupAddress, LookupOptions, lookup } from 'node:dns'
import { createFairSemaphore } from '../jobs/fair-semaphore.ts'

/** Finds the addresses of a name, in the account's turn. @throws what getaddrinfo says; Failure `unavailable` */
export type DnsLookup = (accountId: string, name: string, options?: LookupOptions) => Promise<LookupAddress[]>

/**
 * A look-up holds a thread of the runtime for as long as a name server is silent, ten seconds as Debian comes, and cannot be given up.
 * The runtime leaves look-ups two of its four threads, so files can be read whatever names do (measured); an account has one of the two.
 */
const CONCURRENCY = {
  slots: 2,
  slotsPerAccount: 1,
  queue: { maxLength: 100, fullMessage: 'Too many host names of this account wait to be looked up. Try again in a moment.' },
}
const WAIT_MS = 10_000

/** @param resolve as the machine does it: /etc/hosts and all that its administrator set up apply */
export function createDnsLookup(resolve: typeof lookup): DnsLookup {
  const inTurn = createFairSemaphore(CONCURRENCY)
  return (accountId, name, options) => {
    const latestMs = performance.now() + WAIT_MS
    return inTurn(accountId, () => {
      if (performance.now() > latestMs) throw new TooLate('the look-up waited too long')
      return new Promise((found, failed) =>
        resolve(name, { ...options, all: true }, (error, addresses) => (error ? failed(error) : found(addresses))),
      )
    })
  }
}

/** The name was not resolved in time. */
class TooLate extends Error {
  readonly code = 'EAI_AGAIN'
}
