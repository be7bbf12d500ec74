import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { type Finding, ok, warning } from '../health-check.ts'

const TIMEOUT_MS = 5_000
/** No proxy refuses less. */
const SMALL_BYTES = 1024
/** How closely the limit of a proxy is found: twelve requests. */
const PRECISION = 1.01

type Answer = { accepts: boolean; by: string | undefined }

/**
 * Whether proxies in front of `publicUrl` pass a file of this size on. No file is sent: a request that announces one and waits for
 * `100 Continue` is refused by a proxy that has a limit (RFC 9110, section 10.1.1), and given up otherwise.
 */
export async function examineUploadSize(publicUrl: string, uploadMaxBytes: number): Promise<Finding> {
  const url = new URL(`${publicUrl}/upload`)
  const { accepts, by } = await announce(url, uploadMaxBytes)
  if (accepts) {
    if (by !== 'Cloudflare') return ok(`Files of up to ${inUnits(uploadMaxBytes)} are not refused on their way.`)
    return warning(`Cloudflare is in front: it refuses files over 100 MB (Business: 200 MB, Enterprise: 500 MB). ${cureOf(by)}`)
  }
  const limitBytes = await findLimit(url, uploadMaxBytes)
  return warning(`${by ?? 'A proxy'} in front refuses files over about ${inUnits(limitBytes)} (status 413). ${cureOf(by)}`)
}

/** Halves the logarithm: limits are from a megabyte to some gigabytes. */
async function findLimit(url: URL, refusedBytes: number): Promise<number> {
  let [accepted, refused] = [SMALL_BYTES, refusedBytes]
  while (refused / accepted > PRECISION) {
    const middle = Math.round(Math.sqrt(accepted * refused))
    if ((await announce(url, middle)).accepts) accepted = middle
    else refused = middle
  }
  return accepted
}

/** Without an answer it counts as accepted: a proxy that waits for the file has not refused it. */
function announce(url: URL, sizeBytes: number): Promise<Answer> {
  const { promise, resolve } = Promise.withResolvers<Answer>()
  const request = (url.protocol === 'https:' ? requestHttps : requestHttp)(url, {
    method: 'POST',
    headers: { 'Content-Length': sizeBytes, Expect: '100-continue' },
    rejectUnauthorized: false, // nothing secret is sent
    agent: false,
    timeout: TIMEOUT_MS,
  })
  const accept = (by?: string) => resolve({ accepts: true, by })
  request.on('continue', () => accept())
  request.on('timeout', () => accept())
  request.on('error', () => accept())
  request.on('response', ({ statusCode, headers }) => {
    const by = headers['cf-ray'] === undefined ? nameOf(String(headers.server)) : 'Cloudflare'
    if (statusCode === 413) resolve({ accepts: false, by })
    else accept(by)
  })
  request.flushHeaders()
  return promise.finally(() => request.destroy())
}

/** Of the header `Server`, such as `nginx/1.22.1`. */
function nameOf(server: string): string | undefined {
  return Object.keys(CURES).find((name) => server.toLowerCase().startsWith(name.toLowerCase()))
}

const CURES: Readonly<Record<string, string>> = {
  nginx: 'Set client_max_body_size 0; in its server block and reload it.',
  Apache: 'Set LimitRequestBody 0 for this address and reload it.',
  Cloudflare: 'Set the DNS record of this address to "DNS only", so that uploads do not pass it, or import videos instead.',
}

function cureOf(by = ''): string {
  return CURES[by] ?? 'Raise its limit of request bodies for /upload, to no limit if it can.'
}

/** Two digits, such as `1 MB`: the limit is found by trying. */
function inUnits(bytes: number): string {
  const step = Math.floor(Math.log10(bytes) / 3)
  return `${Number((bytes / 1000 ** step).toPrecision(2))} ${['B', 'kB', 'MB', 'GB', 'TB', 'PB'][step]}`
}
