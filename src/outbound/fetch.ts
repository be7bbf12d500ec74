import type { IncomingHttpHeaders } from 'node:http'
import type { LookupFunction } from 'node:net'
import { errorCode, Failure, type FailureKind } from '../errors.ts'
import { limitBytes } from '../limit-bytes.ts'
import { describeUrl, isDialAllowed, type OutboundPolicy, parseOutboundUrl } from './policy.ts'

export type OutboundRequest = {
  url: string
  /** Whose request it is: host names are looked up in its turn. */
  accountId: string
  /** GET, unless another is named. */
  method?: 'GET' | 'POST'
  /** Sent to where the address redirects, too: where they are secret, redirects must not be followed. */
  headers?: Readonly<Record<string, string>>
  body?: string
  /** False: a redirect is not followed but read like any other response. */
  followRedirects?: boolean
  /** Longest body that is read; a longer one is refused, by its announced or its real length. */
  maxBytes: number
  /** Longest silence: until it is connected, until the answer begins, between two pieces of it. */
  idleMs: number
  /** From the call to the last byte. */
  totalMs: number
  signal?: AbortSignal
}

export type OutboundResponse = {
  status: number
  headers: IncomingHttpHeaders
  /** As sent: never unpacked, so that a small answer stays small. */
  bytes: AsyncIterable<Buffer>
}

const MAX_REDIRECTS = 5
const MAX_HEADER_BYTES = 16 * 1024

/**
 * Sends a request to a URL from outside, so that it cannot be used against this machine or its network: the address
 * that is dialled is the one that was checked, and each redirect is checked like the first.
 * No cookies, credentials or proxy of the environment are used, certificates must be valid.
 * @param read gets the answer, whatever its status; the connection ends with it
 * @throws Failure `unavailable` for what may be over in a while; `invalid` for what the address itself shows, `not-found` for an
 *   unknown host, `forbidden` and `too-large` for what is refused here; `signal.reason`
 * @see threats-and-faults.md, section S
 */
export async function guardedFetch<T>(
  outbound: OutboundPolicy,
  request: OutboundRequest,
  read: (response: OutboundResponse) => Promise<T>,
): Promise<T> {
  const signal = AbortSignal.any([AbortSignal.timeout(request.totalMs), ...(request.signal ? [request.signal] : [])])
  let url = parseOutboundUrl(outbound, request.url)
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const outcome = await sendRequest(outbound, { url, request, signal }, read)
    if ('value' in outcome) return outcome.value
    url = followed(outbound, url, outcome.location)
  }
  throw new Failure('invalid', `${describeUrl(url)} was not fetched: it redirects more than ${MAX_REDIRECTS} times.`)
}

/** One request of a chain of redirects. `signal` is aborted by the caller, or when the time is up. */
async function sendRequest<T>(
  outbound: OutboundPolicy,
  { url, request, signal }: { url: URL; request: OutboundRequest; signal: AbortSignal },
  read: (response: OutboundResponse) => Promise<T>,
): Promise<{ location: string } | { value: T }> {
  const { accountId, method = 'GET', body: sentBody, idleMs, followRedirects = true } = request
  const { Agent } = await import('undici') // many installations never send requests
  const agent = new Agent({
    connect: { lookup: checkedLookup(outbound, accountId, url), timeout: idleMs },
    headersTimeout: idleMs,
    bodyTimeout: idleMs,
    maxHeaderSize: MAX_HEADER_BYTES,
    allowH2: false,
  })
  // Failures of the connection become sentences of ours; what `read` throws is the caller's.
  const throwExplained = (error: unknown): never => {
    request.signal?.throwIfAborted()
    throw explained(error, url, signal)
  }
  try {
    const target = { origin: url.origin, path: `${url.pathname}${url.search}`, method, body: sentBody }
    const headers = { Accept: '*/*', 'Accept-Encoding': 'identity', 'User-Agent': 'Reelgate', ...request.headers }
    const {
      statusCode,
      headers: responseHeaders,
      body,
    } = await agent.request({ ...target, headers, signal }).catch(throwExplained)
    body.on('error', () => {}) // read below, or discarded on purpose
    const location = followRedirects && statusCode >= 300 && statusCode < 400 ? responseHeaders.location : undefined
    if (typeof location === 'string') return { location }
    assertLength(url, responseHeaders, request.maxBytes)
    return {
      value: await read({
        status: statusCode,
        headers: responseHeaders,
        bytes: bounded(body, url, request.maxBytes, throwExplained),
      }),
    }
  } finally {
    await agent.destroy()
  }
}

/** Addresses are checked here and not earlier: the socket connects to what this returns, whatever the name resolves to next time. */
function checkedLookup(outbound: OutboundPolicy, accountId: string, url: URL): LookupFunction {
  return (hostname, options, done) => {
    const chosen = outbound.lookUpHost(accountId, hostname, options).then((addresses) => {
      const allowed = addresses.filter(({ address }) => isDialAllowed(outbound, url, address))
      const [first] = allowed
      if (!first) throw new Failure('forbidden', notPublic(url))
      return { allowed, first }
    })
    chosen.then(
      ({ allowed, first }) => (options.all ? done(null, allowed) : done(null, first.address, first.family)),
      (error) => done(error, ''),
    )
  }
}

function notPublic(url: URL): string {
  return `${describeUrl(url)} was not fetched: its host is not on the public internet. REELGATE_OUTBOUND_ALLOW can name it.`
}

function followed(outbound: OutboundPolicy, url: URL, location: string): URL {
  const next = URL.parse(location, url)
  if (!next)
    throw new Failure('invalid', `${describeUrl(url)} was not fetched: it redirects to something that is not an address.`)
  if (url.protocol === 'https:' && next.protocol !== 'https:')
    throw new Failure('forbidden', `${describeUrl(url)} was not fetched: it redirects from https to http.`)
  return parseOutboundUrl(outbound, next.href)
}

function assertLength(url: URL, headers: IncomingHttpHeaders, maxBytes: number): void {
  if (Number(headers['content-length'] ?? 0) > maxBytes) throw tooLong(url, maxBytes)
}

async function* bounded(
  body: AsyncIterable<Buffer>,
  url: URL,
  maxBytes: number,
  explain: (error: unknown) => never,
): AsyncGenerator<Buffer> {
  try {
    yield* limitBytes(body, maxBytes, () => tooLong(url, maxBytes))
  } catch (error) {
    explain(error)
  }
}

function tooLong(url: URL, maxBytes: number): Failure {
  return new Failure('too-large', `${describeUrl(url)} was not fetched: it is longer than ${maxBytes} bytes.`)
}

const CONNECTION_FAILED = { kind: 'unavailable', why: 'the connection failed.' } as const

const CONNECTION_ERRORS: Readonly<Record<string, { kind: FailureKind; why: string }>> = {
  ENOTFOUND: { kind: 'not-found', why: 'its host name is not known.' },
  EAI_AGAIN: { kind: 'unavailable', why: 'its host name cannot be looked up now.' },
  ECONNREFUSED: { kind: 'unavailable', why: 'nothing answers there.' },
  UND_ERR_CONNECT_TIMEOUT: { kind: 'unavailable', why: 'nothing answers there.' },
  UND_ERR_HEADERS_TIMEOUT: { kind: 'unavailable', why: 'it did not answer in time.' },
  UND_ERR_BODY_TIMEOUT: { kind: 'unavailable', why: 'it stopped in the middle.' },
  UND_ERR_HEADERS_OVERFLOW: { kind: 'too-large', why: 'its headers are too long.' },
}

function explained(error: unknown, url: URL, signal: AbortSignal): Failure {
  if (error instanceof Failure) return error
  const { kind, why } = signal.aborted ? { kind: 'unavailable' as const, why: 'it took too long.' } : describeTrouble(error)
  return new Failure(kind, `${describeUrl(url)} was not fetched: ${why}`, { cause: error })
}

function describeTrouble(error: unknown): { kind: FailureKind; why: string } {
  const code = errorCode(error)
  const isCertificate = /^(CERT_|ERR_TLS_|ERR_SSL_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_)/.test(code)
  if (isCertificate) return { kind: 'forbidden', why: 'its certificate is not valid.' }
  return CONNECTION_ERRORS[code] ?? CONNECTION_FAILED
}
