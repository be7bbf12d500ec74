import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { BlockList } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { TLSSocket } from 'node:tls'
import { explainUnknownProxy } from '../alerts/unknown-proxy.ts'
import type { DirectPlayers } from '../config/bucket.ts'
import type { Config } from '../config/config.ts'
import { type Check, type Finding, failure, ok, warning } from '../health-check.ts'
import { addIpRange, isInBlockList } from '../net/ip-ranges.ts'
import { findDirectProblem } from '../playback/media/direct-bucket.ts'
import type { BucketAddress } from '../storage/s3/bucket.ts'
import { corsRuleFor } from '../storage/s3/cors.ts'
import { examineUploadSize } from './upload-size.ts'

type NetworkConfig = Pick<
  Config,
  'publicUrl' | 'trustedProxies' | 'outboundAllow' | 'uploadMaxBytes' | 'mediaOrigin' | 'bucket' | 'directPlayers'
>

/** Checks how the installation is reached from outside, and what it may reach itself. */
export async function examineNetwork(
  config: NetworkConfig,
  findUnknownProxy: () => Promise<string | undefined>,
): Promise<Check[]> {
  const { publicUrl, trustedProxies, outboundAllow, uploadMaxBytes, mediaOrigin } = config
  const checks: Check[] = []
  if (publicUrl !== undefined) {
    checks.push(...(await examinePublicAddress(publicUrl, uploadMaxBytes)))
  }
  if (mediaOrigin) checks.push({ check: 'segments', ...(await examineMediaOrigin(mediaOrigin.url)) })
  if (config.bucket && config.directPlayers)
    checks.push({ check: 'segments', ...(await examineDirectBucket(config.bucket, config.directPlayers)) })
  const unknownProxy = await findUnknownProxy()
  if (publicUrl !== undefined || unknownProxy !== undefined)
    checks.push({ check: 'proxy', ...judgeProxies(publicUrl, trustedProxies, unknownProxy) })
  return [...checks, { check: 'outbound requests', ...judgeOutbound(outboundAllow) }]
}

const TIMEOUT_MS = 10_000
const MAX_BODY_BYTES = 1000
/** Long enough for a server that has just been restarted. */
const PATIENCE_MS = 20_000
const RETRY_MS = 250
/** What a proxy answers while the server behind it does not listen. */
const GATEWAY_STATUSES = [502, 503, 504]

type Answer = { status: number; body: string; date: string | undefined; certificate: Certificate | undefined; atMs: number }
type Certificate = { endsAt: string; problem: string | undefined }

async function examinePublicAddress(publicUrl: string, uploadMaxBytes: number): Promise<Check[]> {
  let answer: Answer
  try {
    answer = await askPatiently(new URL(`${publicUrl}/healthz`))
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    const says = `${publicUrl} cannot be reached from here: ${why}. Check that the server runs, its DNS name, the proxy and the firewall.`
    return [{ check: 'public address', ...failure(says) }]
  }
  const reached = judgeAnswer(publicUrl, answer)
  const checks: Check[] = [{ check: 'public address', ...reached }]
  if (reached.state === 'ok') checks.push({ check: 'upload size', ...(await examineUploadSize(publicUrl, uploadMaxBytes)) })
  if (answer.certificate) checks.push({ check: 'certificate', ...judgeCertificate(answer.certificate, answer.atMs) })
  if (answer.date !== undefined) checks.push({ check: 'clock', ...judgeClock(answer.date, answer.atMs) })
  return checks
}

/** Of no video, and long ended. */
const WRONG_SEGMENT = `media/1/${'A'.repeat(22)}/${'0'.repeat(32)}/1/1/0.m4s`

async function examineMediaOrigin(url: string): Promise<Finding> {
  try {
    const { status } = await ask(new URL(`${url}/${WRONG_SEGMENT}`))
    if (status === 403)
      return ok(`${url} refuses a wrong address. What it sends is counted by what sessions play; limits by bytes are its own.`)
    return failure(
      `${url} answers a wrong address of a segment with status ${status} instead of 403. Check that it passes paths on unchanged, or checks their tag, and REELGATE_MEDIA_URL.`,
    )
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return failure(
      `${url} cannot be reached from here: ${why}. Finished videos do not play meanwhile; REELGATE_MEDIA_DELIVERY=server sends their segments from this server.`,
    )
  }
}

async function examineDirectBucket(bucket: BucketAddress, players: DirectPlayers): Promise<Finding> {
  try {
    const problem = await findDirectProblem(bucket, players, Date.now() / 1000)
    if (!problem)
      return ok(
        'Players load segments from the bucket. What it sends is counted by what sessions play; limits by bytes are its own.',
      )
    const remedy = problem.isMendable ? `Add the CORS rule ${JSON.stringify(corsRuleFor(players.origin))}` : 'Correct that'
    return warning(
      `Players cannot load segments from the bucket: ${problem.says}. This server sends them. ${remedy}, or set REELGATE_MEDIA_DELIVERY=server.`,
    )
  } catch (error) {
    return failure(error instanceof Error ? error.message : String(error))
  }
}

/** Asks again while a proxy finds nothing behind it: the command before this one is often a restart, which ends before the server listens. */
async function askPatiently(url: URL): Promise<Answer> {
  for (const startMs = performance.now(); ; await pause(RETRY_MS)) {
    const answer = await ask(url)
    if (!GATEWAY_STATUSES.includes(answer.status) || performance.now() - startMs >= PATIENCE_MS) return answer
  }
}

/** Nothing secret is sent: so a certificate that browsers reject is looked at, too. */
function ask(url: URL): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const options = { rejectUnauthorized: false, agent: false, signal: AbortSignal.timeout(TIMEOUT_MS) } as const
  const request = (url.protocol === 'https:' ? requestHttps : requestHttp)(url, options, (response) => {
    const { statusCode: status = 0, headers, socket } = response
    const head = { status, date: headers.date, certificate: readCertificate(socket), atMs: Date.now() }
    let body = ''
    response.setEncoding('utf8')
    response.on('data', (text: string) => {
      body += text
      if (body.length > MAX_BODY_BYTES) response.destroy()
    })
    response.on('error', reject)
    response.on('close', () => resolve({ ...head, body }))
  })
  request.on('error', reject).end()
  return promise
}

function readCertificate(socket: unknown): Certificate | undefined {
  if (!(socket instanceof TLSSocket)) return undefined
  const problem = socket.authorized ? undefined : String(socket.authorizationError)
  return { endsAt: socket.getPeerCertificate().valid_to, problem }
}

function judgeAnswer(publicUrl: string, { status, body }: Answer): Finding {
  if (status === 200 && body === '{"status":"ok"}') return ok(`${publicUrl} reaches a server.`)
  const answered = status === 200 ? 'a page that is not of Reelgate' : `status ${status}`
  return failure(
    `${publicUrl}/healthz answers with ${answered}. Check that the server runs, where the proxy sends requests, and REELGATE_PUBLIC_URL.`,
  )
}

const DAY_MS = 24 * 3600_000
const CERTIFICATE_WARNING_DAYS = 14

function judgeCertificate({ endsAt, problem }: Certificate, nowMs: number): Finding {
  const daysLeft = Math.floor((Date.parse(endsAt) - nowMs) / DAY_MS)
  if (daysLeft < 0) return failure(`The certificate ended on ${endsAt}: browsers reject it. Renew it.`)
  if (problem !== undefined)
    return failure(
      `Browsers reject the certificate: ${problem}. Serve the whole chain, for this name; for an authority of your own, set NODE_EXTRA_CA_CERTS.`,
    )
  return daysLeft < CERTIFICATE_WARNING_DAYS
    ? warning(`The certificate ends in ${daysLeft} days. Check that its renewal works.`)
    : ok(`The certificate ends in ${daysLeft} days.`)
}

/** The header has whole seconds, and the answer took a while. */
const MAX_CLOCK_DIFFERENCE_S = 5

function judgeClock(date: string, nowMs: number): Finding {
  const differenceS = Math.abs(Date.parse(date) - nowMs) / 1000
  return differenceS <= MAX_CLOCK_DIFFERENCE_S
    ? ok('This machine and the public address have the same time.')
    : warning(
        `This machine and the public address differ by ${Math.round(differenceS)} s: signed requests and certificates fail. Set both by NTP.`,
      )
}

function judgeProxies(publicUrl: string | undefined, trustedProxies: readonly string[], unknownProxy: string | undefined) {
  if (trustedProxies.some((entry) => entry.endsWith('/0')))
    return warning(
      'REELGATE_TRUSTED_PROXIES trusts every address: a viewer can claim any address and avoid limits. Name only the proxy.',
    )
  if (unknownProxy !== undefined) return warning(explainUnknownProxy(unknownProxy))
  if (trustedProxies.length === 0 && publicUrl?.startsWith('https:'))
    return warning(
      'A proxy serves https, but REELGATE_TRUSTED_PROXIES is empty: all viewers share its address and its limits. Name the proxy’s address.',
    )
  return ok(
    trustedProxies.length === 0
      ? 'No proxy is trusted.'
      : `The header X-Forwarded-For of ${trustedProxies.join(', ')} is trusted.`,
  )
}

/** Wider than a company's network usually is. */
const MIN_BITS = { v4: 16, v6: 48 }
/** This machine, and the service that has the credentials of a cloud's machine. */
const NEVER_IN_A_RANGE = ['127.0.0.1', '::1', '169.254.169.254', 'fd00:ec2::254']

function judgeOutbound(outboundAllow: readonly string[]): Finding {
  const wide = outboundAllow.filter(isTooWide)
  if (wide.length > 0)
    return warning(
      `REELGATE_OUTBOUND_ALLOW is too wide: ${wide.join(', ')}. Owners can send requests there from this machine. Name single hosts, as HOST:PORT.`,
    )
  return ok(
    outboundAllow.length === 0
      ? 'Only the public internet can be reached.'
      : `Only the public internet and ${outboundAllow.join(', ')} can be reached.`,
  )
}

function isTooWide(entry: string): boolean {
  const range = new BlockList()
  if (!addIpRange(range, entry)) return false
  const [network = '', bits = ''] = entry.split('/')
  return (
    Number(bits) < (network.includes(':') ? MIN_BITS.v6 : MIN_BITS.v4) ||
    NEVER_IN_A_RANGE.some((address) => isInBlockList(range, address))
  )
}
