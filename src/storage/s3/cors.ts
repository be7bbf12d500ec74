import { createHash } from 'node:crypto'
import { errorCode, StorageUnavailable } from '../../errors.ts'
import { type BucketAddress, openBucket } from './bucket.ts'
import { isMissing, readBody } from './objects.ts'
import { presignerOf } from './presign.ts'
import { MARKER } from './s3-store.ts'
import { escapeXml, readXml } from './xml.ts'

// What a bucket lets scripts of pages from elsewhere read (CORS).

/** What keeps pages of an origin from reading objects. `isMendable`: by a rule of the bucket. */
export type DirectProblem = { says: string; isMendable: boolean }

const TIMEOUT_MS = 10_000
/** Of what an answer says to scripts of an allowed origin, beyond what all may read: the player waits so long. */
const EXPOSED = 'Retry-After'
const METHODS = ['GET', 'HEAD']
const KNOWN_FOR_S = 3600

/** The rule that lets pages of an origin read objects, as the consoles of stores take it. */
export function corsRuleFor(origin: string) {
  return { AllowedOrigins: [origin], AllowedMethods: METHODS, ExposeHeaders: [EXPOSED], MaxAgeSeconds: KNOWN_FOR_S }
}

/**
 * Fetches an object by a presigned address, as the player in a browser does.
 * @returns undefined: a page of the origin can read it
 * @throws StorageUnavailable when the bucket does not answer, so that nothing is known
 */
export async function findCorsProblem(
  address: BucketAddress,
  origin: string,
  wallNowS: number,
): Promise<DirectProblem | undefined> {
  const { request } = await import('undici')
  const url = presignerOf(address, wallNowS)(address.prefix + MARKER)
  const options = { headers: { origin }, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS }
  const { statusCode, headers, body } = await request(url, options).catch((error: unknown) => {
    throw new StorageUnavailable(`The bucket does not answer (${errorCode(error)}).`, { cause: error })
  })
  await body.dump().catch(() => undefined) // its head says enough
  if (statusCode >= 500) throw new StorageUnavailable(`The bucket answers with status ${statusCode}.`)
  if (statusCode !== 200) return { says: `it answers a presigned address with status ${statusCode}`, isMendable: false }
  const allowed = headers['access-control-allow-origin']?.toString()
  return allowed === '*' || allowed === origin ? undefined : { says: `it has no CORS rule for ${origin}`, isMendable: true }
}

/** Adds the rule for an origin to those that a bucket has, which stay as they are. @throws BucketError, StorageUnavailable when it may not */
export async function addCorsRule(address: BucketAddress, origin: string): Promise<void> {
  const bucket = openBucket(address) // of its own: that it may not says nothing of other requests
  const rules = await bucket
    .ask({ method: 'GET', query: { cors: '' } }, async (answer) => readRules((await readBody(answer)).toString()))
    .catch((error: unknown) => {
      if (!isMissing(error)) throw error
      return []
    })
  if (rules.some((rule) => isFor(rule, origin))) return
  const xml = `<CORSConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${[...rules, writeRule(origin)].join('')}</CORSConfiguration>`
  const body = Buffer.from(xml)
  const headers = { 'content-md5': createHash('md5').update(body).digest('base64') } // demanded, whatever is signed
  await bucket.send({ method: 'PUT', query: { cors: '' }, headers, body })
}

/** Each as it is in the answer. */
function readRules(xml: string): string[] {
  const [, ...parts] = xml.split('<CORSRule>')
  return parts.map((part) => `<CORSRule>${part.split('</CORSRule>', 1)[0]}</CORSRule>`)
}

function isFor(rule: string, origin: string): boolean {
  const { all } = readXml(rule)
  return all('AllowedOrigin').includes(origin) && METHODS.every((method) => all('AllowedMethod').includes(method))
}

function writeRule(origin: string): string {
  const { AllowedOrigins, AllowedMethods, ExposeHeaders, MaxAgeSeconds } = corsRuleFor(origin)
  const each = (name: string, values: readonly string[]) =>
    values.map((value) => `<${name}>${escapeXml(value)}</${name}>`).join('')
  return `<CORSRule>${each('AllowedOrigin', AllowedOrigins)}${each('AllowedMethod', AllowedMethods)}${each('ExposeHeader', ExposeHeaders)}<MaxAgeSeconds>${MaxAgeSeconds}</MaxAgeSeconds></CORSRule>`
}
