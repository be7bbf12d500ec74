import { Failure } from '../errors.ts'
import { guardedFetch } from '../outbound/fetch.ts'
import { describeUrl, type OutboundPolicy } from '../outbound/policy.ts'

/** Captions have 5 MB at most, posters 10. */
const MAX_FILE_BYTES = 10 * 2 ** 20
const IDLE_MS = 15_000
const TOTAL_MS = 60_000

/**
 * A small file of another server, from an address that it gave, by the rules of an import.
 * @throws Failure as `guardedFetch`; `unavailable` where it may be had later, `not-found` where it is refused
 */
export async function fetchMovedFile(
  { outbound }: { outbound: OutboundPolicy },
  { accountId, url }: { accountId: string; url: string },
): Promise<Buffer> {
  const request = { accountId, url, maxBytes: MAX_FILE_BYTES, idleMs: IDLE_MS, totalMs: TOTAL_MS }
  return guardedFetch(outbound, request, async ({ status, bytes }) => {
    if (status === 200) return Buffer.concat(await Array.fromAsync(bytes))
    const kind = status === 429 || status >= 500 ? 'unavailable' : 'not-found'
    throw new Failure(kind, `${describeUrl(new URL(url))} answered ${status}.`)
  })
}
