import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { setTimeout as pause, setImmediate } from 'node:timers/promises'
import type { Dispatcher } from 'undici'
import { errorCode, isDiskFull, StorageUnavailable } from '../../errors.ts'
import type { Blocks } from './spool.ts'
import { readXml } from './xml.ts'

/** Where a bucket is, and who asks. */
export type BucketAddress = Readonly<{
  /** Without a trailing slash. */
  endpoint: string
  region: string
  bucket: string
  /** Before every key: empty, or with a slash at its end. */
  prefix: string
  credentials: Readonly<{ accessKeyId: string; secretAccessKey: string; sessionToken?: string | undefined }>
}>

export type BucketRequest = {
  method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  /** Of an object, with the prefix. Absent: the bucket itself. */
  key?: string
  query?: Readonly<Record<string, string>>
  headers?: Readonly<Record<string, string>>
  body?: Buffer | Blocks | undefined
  signal?: AbortSignal | undefined
}

/** An answer of 2xx, or with one of the codes that a caller expects. */
export type BucketAnswer = {
  status: number
  headers: Readonly<Record<string, string | undefined>>
  body: Dispatcher.ResponseData['body']
}

/** Signed requests to one bucket (AWS Signature V4, path style), each tried three times at most. */
export type Bucket = {
  address: BucketAddress
  words: BucketWords
  /**
   * Sends a request until it is answered and read.
   * @param read is given the answer, and reads its body to the end; what it throws of the connection makes it be tried again
   * @throws BucketError for an answer with another code than the expected; StorageUnavailable
   */
  ask<T>(request: BucketRequest, read: (answer: BucketAnswer) => Promise<T>): Promise<T>
  /** The same, without what the answer says. */
  send(request: BucketRequest): Promise<BucketAnswer['headers']>
  /** Writes an object and reads it, unless that was done lately. @throws StorageUnavailable, within seconds */
  check(): Promise<void>
  /** Whether it refuses to replace an object where `If-None-Match: *` asks for that; false until a check has tried it. */
  keepsFirst(): boolean
  /** What concerns all requests: from one that failed until one of its kind succeeds. */
  outage(): Outage | undefined
  /**
   * Refuses all requests until a check has found that this is the right bucket.
   * @param verify throws StorageUnavailable as long as that is not known
   */
  holdUntil(verify: (unheld: AskedBucket) => Promise<void>, why: StorageUnavailable): void
}

/** What sentences call a bucket, and where its address and its keys come from. */
type BucketWords = Readonly<{ bucket: string; address: string; keys: string }>

const WITH_FILES: BucketWords = {
  bucket: 'The bucket with this server’s files',
  address: 'REELGATE_STORAGE_URL',
  keys: 'AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY',
}

export type AskedBucket = Pick<Bucket, 'address' | 'ask'>

/** While a bucket does not answer, or refuses. `sinceMs`: on the clock of `performance.now()`. */
type Outage = { why: StorageUnavailable; sinceMs: number }

/** The bucket answers, and refuses this request for what the request is about, such as `NoSuchKey`: trying again changes nothing. */
export class BucketError extends Error {
  readonly status: number
  /** The word in its answer; empty when it has none, as answers to HEAD. */
  readonly code: string
  constructor(status: number, code: string, message: string) {
    super(`the bucket answered ${status} ${code}: ${message}`)
    this.status = status
    this.code = code
  }
}

export const ONLY_NEW = { 'if-none-match': '*' }

/** During an outage one: the next check shows when it ends. */
const TRIES = 3
const FIRST_PAUSE_MS = 60
const CONNECT_MS = 5_000
/** Three tries take half a minute. */
const SILENCE_MS = 10_000
const SILENCE_IN_OUTAGE_MS = 5_000
/** For requests with a body, which counts, and for the one that puts parts together. */
const LONG_SILENCE_MS = 120_000
const MAX_CONNECTIONS = 64
const MAX_ERROR_BYTES = 64 * 1024
/** Of a check: requests that write cost money. */
const CHECKED_FOR_MS = 30_000
/** When uploads are to be tried again. */
const RETRY_AFTER_S = 30

/** @param silenceMs how long a request waits for the first byte of its answer, if it is no large one; a check waits as long */
export function openBucket(address: BucketAddress, { silenceMs = SILENCE_MS, words = WITH_FILES } = {}): Bucket {
  const { endpoint, region, bucket, credentials } = address
  const signingKeys = new Map<string, ArrayBuffer>()
  let loading: Promise<{
    send: typeof import('undici').request
    agent: Dispatcher
    Signer: typeof import('aws4fetch').AwsV4Signer
  }>

  async function load() {
    const [{ Agent, request }, { AwsV4Signer }] = await Promise.all([import('undici'), import('aws4fetch')])
    const agent = new Agent({ connections: MAX_CONNECTIONS, connect: { timeout: CONNECT_MS }, bodyTimeout: silenceMs })
    return { send: request, agent, Signer: AwsV4Signer }
  }

  /** One try. @throws BucketError, Unanswered */
  async function attempt({ method, key, query = {}, headers = {}, body, signal }: BucketRequest): Promise<BucketAnswer> {
    loading ??= load()
    const { send, agent, Signer } = await loading
    const url = new URL(`${endpoint}/${bucket}${key === undefined ? '' : `/${encodeKey(key)}`}`)
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    const hashed = { ...headers, 'x-amz-content-sha256': await hashHex(body) }
    const signer = new Signer({
      method,
      url: url.href,
      headers: hashed,
      ...credentials,
      service: 's3',
      region,
      cache: signingKeys,
    })
    const signed = await signer.sign()
    const { sizeBytes, bytes } = bodyOf(body)
    const isLong = method === 'POST' || sizeBytes > 2 ** 20
    const answer = await send(url, {
      method,
      headers: { ...Object.fromEntries(signed.headers), ...(bytes !== null && { 'content-length': String(sizeBytes) }) },
      body: bytes,
      dispatcher: agent,
      headersTimeout: isLong ? LONG_SILENCE_MS : outage() ? Math.min(SILENCE_IN_OUTAGE_MS, silenceMs) : silenceMs,
      signal: signal ?? null,
    }).catch((error: unknown) => {
      signal?.throwIfAborted()
      throw new Unanswered(unreachable(error, words))
    })
    const plain = Object.fromEntries(Object.entries(answer.headers).map(([name, value]) => [name, value?.toString()]))
    if (answer.statusCode < 300) return { status: answer.statusCode, headers: plain, body: answer.body }
    throw await explainStatus(answer, plain, words)
  }

  /** What stores bytes is apart: a bucket that is full can be read. */
  const outages: Partial<Record<'storing' | 'other', Outage>> = {}
  const kindOf = ({ method }: BucketRequest) => (method === 'PUT' ? 'storing' : 'other')
  let held: (Outage & { verify: Parameters<Bucket['holdUntil']>[0] }) | undefined
  const outage = () => held ?? outages.other ?? outages.storing
  let keepsFirst: boolean | undefined
  let checkedMs = Number.NEGATIVE_INFINITY

  async function ask<T>(request: BucketRequest, read: (answer: BucketAnswer) => Promise<T>): Promise<T> {
    if (held) throw held.why
    return askUnheld(request, read)
  }

  async function askUnheld<T>(request: BucketRequest, read: (answer: BucketAnswer) => Promise<T>): Promise<T> {
    const kind = kindOf(request)
    try {
      const value = await askRepeatedly(request, read)
      delete outages[kind]
      return value
    } catch (error) {
      if (error instanceof StorageUnavailable) begin(kind, error)
      else if (error instanceof BucketError) delete outages[kind]
      throw error
    }
  }

  function begin(kind: keyof typeof outages, why: StorageUnavailable): void {
    outages[kind] = { why, sinceMs: outages[kind]?.sinceMs ?? performance.now() }
  }

  async function askRepeatedly<T>(request: BucketRequest, read: (answer: BucketAnswer) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        const answer = await attempt(request)
        return await read(answer).catch((error: unknown) => {
          answer.body.on('error', () => undefined).destroy()
          throw isBroken(error) ? new Unanswered(unreachable(error, words)) : error
        })
      } catch (error) {
        if (!(error instanceof Unanswered)) throw error
        if (tries === TRIES || outage()) throw error.failure
        await pause(FIRST_PAUSE_MS * 4 ** (tries - 1) * (0.5 + Math.random()), undefined, { signal: request.signal })
      }
    }
  }

  function send(request: BucketRequest) {
    return ask(request, async ({ headers, body }) => {
      await body.dump()
      return headers
    })
  }

  async function check(): Promise<void> {
    if (!outage() && performance.now() - checkedMs < CHECKED_FOR_MS) return
    const key = `${address.prefix}check`
    const signal = AbortSignal.timeout(silenceMs)
    try {
      await held?.verify({ address, ask: (request, read) => askUnheld({ ...request, signal }, read) })
      held = undefined
      const body = Buffer.from(new Date().toISOString())
      await send({ method: 'PUT', key, body, signal })
      keepsFirst ??= await send({ method: 'PUT', key, headers: ONLY_NEW, body, signal }).then(() => false, isRefusedAsExisting)
      await send({ method: 'GET', key, signal })
    } catch (error) {
      if (held && error instanceof StorageUnavailable) held.why = error
      if (!signal.aborted) throw error
      const silent = unreachable(signal.reason, words)
      begin('other', silent)
      throw silent
    }
    checkedMs = performance.now()
  }

  function holdUntil(verify: Parameters<Bucket['holdUntil']>[0], why: StorageUnavailable): void {
    held = { verify, why, sinceMs: performance.now() }
  }

  return { address, words, ask, send, check, keepsFirst: () => keepsFirst === true, outage, holdUntil }
}

/** Some stores do not know the header, and answer with another error. @throws what says nothing of it */
function isRefusedAsExisting(error: unknown): boolean {
  if (error instanceof BucketError) return error.status === 412
  throw error
}

/** A try that may succeed when it is repeated. */
class Unanswered extends Error {
  readonly failure: StorageUnavailable
  constructor(failure: StorageUnavailable) {
    super(failure.message, { cause: failure })
    this.failure = failure
  }
}

/** What reading an answer throws when it broke off. */
export class BrokenAnswer extends Error {}

function isBroken(error: unknown): boolean {
  return error instanceof BrokenAnswer || (/^(UND_ERR_|E[A-Z]+$)/.test(errorCode(error)) && !isDiskFull(error))
}

function unreachable(error: unknown, words: BucketWords): StorageUnavailable {
  const code = errorCode(error)
  const why = /TIMEOUT|TimeoutError/i.test(`${code} ${error}`)
    ? 'it is silent'
    : code || (error instanceof Error ? error.message : 'no answer')
  return new StorageUnavailable(`${words.bucket} does not answer (${why}). Try again when it does.`, {
    cause: error,
    retryAfterS: RETRY_AFTER_S,
  })
}

const CLOCK_CODES = ['RequestTimeTooSkewed', 'RequestExpired']
/** They say nothing about the object. */
const BUCKET_CODES = ['NoSuchBucket', 'PermanentRedirect', 'AuthorizationHeaderMalformed']
const PASSING_STATUSES = [408, 425, 429, 500, 502, 503, 504]
/** These may come with other statuses. */
const PASSING_CODES = ['RequestTimeout', 'InternalError', 'ServiceUnavailable', 'SlowDown']

async function explainStatus(
  { statusCode: status, body }: Dispatcher.ResponseData,
  headers: BucketAnswer['headers'],
  words: BucketWords,
): Promise<BucketError | Unanswered | StorageUnavailable> {
  const text = (await readStart(body)).toString()
  const xml = readXml(text)
  return explainError(status, xml.first('Code') ?? '', xml.first('Message') ?? '', words, minutesTo(headers.date))
}

/** Undefined: there is no date, or it cannot be read. */
function minutesTo(date = ''): number | undefined {
  const minutes = Math.round(Math.abs(Date.parse(date) - Date.now()) / 60_000)
  return Number.isNaN(minutes) ? undefined : minutes
}

/** What an error of the bucket is to the caller. @param minutes by which the two clocks differ, if that is known */
export function explainError(status: number, code: string, message: string, words: BucketWords, minutes?: number) {
  const cause = new BucketError(status, code, message)
  const word = `${status} ${code}`.trim()
  const refused = (sentence: string) => new StorageUnavailable(sentence, { cause, retryAfterS: RETRY_AFTER_S })
  if (CLOCK_CODES.includes(code)) {
    const by = minutes === undefined ? '' : ` by ${minutes} minutes`
    return refused(`The clock of this server differs from that of its bucket${by} (${word}). Set it, for example with NTP.`)
  }
  if (PASSING_STATUSES.includes(status) || PASSING_CODES.includes(code))
    return new Unanswered(refused(`${words.bucket} is overloaded or down (${word}). Try again later.`))
  if (status === 507 || code === 'QuotaExceeded' || code === 'InsufficientCapacity')
    return refused(`${words.bucket} is full (${word}). Try again when there is space.`)
  if (BUCKET_CODES.includes(code)) return refused(`${words.bucket} is not where ${words.address} says (${word}).`)
  if (status === 401 || status === 403)
    return refused(`The bucket refuses this server’s requests (${word}). Check ${words.keys} and its policy.`)
  return cause
}

async function readStart(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const pieces: Buffer[] = []
  let lengthBytes = 0
  try {
    for await (const piece of body) {
      pieces.push(piece)
      lengthBytes += piece.length
      if (lengthBytes > MAX_ERROR_BYTES) break
    }
  } catch {
    // What came of it says enough; the status does anyway.
  }
  return Buffer.concat(pieces)
}

/** The key of an object as it is in addresses. */
export function encodeKey(key: string): string {
  return encodeStrictly(key).replaceAll('%2F', '/')
}

/** As the signature has it: everything but unreserved characters. */
export function encodeStrictly(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}

function bodyOf(body: BucketRequest['body']): { sizeBytes: number; bytes: Buffer | Readable | null } {
  if (body === undefined) return { sizeBytes: 0, bytes: null }
  if (Buffer.isBuffer(body)) return { sizeBytes: body.length, bytes: body }
  return { sizeBytes: body.sizeBytes(), bytes: Readable.from(body.blocks(), { objectMode: false }) }
}

async function hashHex(body: BucketRequest['body']): Promise<string> {
  if (body && !Buffer.isBuffer(body) && body.sha256) return body.sha256()
  const hash = createHash('sha256')
  if (body) for await (const block of Buffer.isBuffer(body) ? cutIntoBlocks(body) : body.blocks()) hash.update(block)
  return hash.digest('hex')
}

const HASHED_IN_ONE_CALL_BYTES = 2 ** 19

/** One call for a large body would block this thread for milliseconds. */
async function* cutIntoBlocks(body: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < body.length; at += HASHED_IN_ONE_CALL_BYTES) {
    if (at > 0) await setImmediate()
    yield body.subarray(at, at + HASHED_IN_ONE_CALL_BYTES)
  }
}
