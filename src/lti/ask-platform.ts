import { Failure } from '../errors.ts'
import { parseJson } from '../json.ts'
import { guardedFetch, type OutboundRequest } from '../outbound/fetch.ts'
import { type OutboundPolicy, parseOutboundUrl } from '../outbound/policy.ts'

// All that is fetched from a platform, which names the addresses itself: through the guard of imports.

const MAX_BYTES = 256 * 1024
const IDLE_MS = 10_000
const TOTAL_MS = 20_000

type PlatformRequest = Pick<OutboundRequest, 'accountId' | 'url' | 'method' | 'headers' | 'body' | 'signal'>

/** @returns status and JSON; `undefined` for a body that is none @throws Failure as `guardedFetch`, in words */
export async function askPlatform(
  outbound: OutboundPolicy,
  { headers, ...request }: PlatformRequest,
): Promise<{ status: number; body: unknown }> {
  assertEncrypted(outbound, request.url)
  const bounds = { maxBytes: MAX_BYTES, idleMs: IDLE_MS, totalMs: TOTAL_MS, followRedirects: false }
  return guardedFetch(
    outbound,
    { ...request, ...bounds, headers: { Accept: 'application/json', ...headers } },
    async (response) => {
      const pieces: Buffer[] = []
      for await (const piece of response.bytes) pieces.push(piece)
      return { status: response.status, body: parseJson(Buffer.concat(pieces).toString('utf8')) }
    },
  )
}

/**
 * An address of a platform, which must be https; http only to a host that REELGATE_OUTBOUND_ALLOW names.
 * @throws Failure `invalid`
 */
export function assertEncrypted(outbound: OutboundPolicy, text: string): URL {
  const url = parseOutboundUrl(outbound, text)
  if (url.protocol === 'https:' || outbound.hosts.has(`${url.hostname}:${url.port || '80'}`)) return url
  throw new Failure('invalid', `${url.origin} is not used: a platform’s addresses begin with https://.`)
}
