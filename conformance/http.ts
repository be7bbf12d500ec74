import { type Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { setTimeout as pause } from 'node:timers/promises'

// Sends requests exactly as written: `fetch` sends no body with GET, no header twice, and normalizes URLs.

export type Call = {
  method: string
  /** Sent as it is, not decoded. */
  url: string
  headers?: readonly (readonly [name: string, value: string])[]
  body?: string | Buffer
  /** Writes each byte of the body by itself. */
  byteByByte?: boolean
}

export type Answer = {
  status: number
  headers: IncomingHttpHeaders
  text: string
  /** The text parsed as JSON; undefined when it is not JSON. */
  body: unknown
}

export type Send = (call: Call) => Promise<Answer>

/** Calls of each rate limit that are left to other clients. */
const RESERVED_CALLS = 5

/**
 * Sends calls one after the other, and never faster than the `RateLimit` response headers allow: when one limit is nearly used up,
 * all calls wait until its window ends.
 * @param onWait called with the time it waits, and the name of the limit
 */
export function createPacedSend(agent: Agent, onWait: (waitS: number, budget: string) => void): Send {
  let resumeAtMs = 0
  return async (call) => {
    const waitMs = resumeAtMs - performance.now()
    if (waitMs > 0) await pause(waitMs)
    const answer = await sendAgain(agent, call)
    const low = lowBudget(answer)
    if (low) {
      resumeAtMs = performance.now() + low.waitS * 1000
      onWait(low.waitS, low.budget)
    }
    return answer
  }
}

/** `RateLimit: "reads";r=4;t=37`: four calls are left in this window, which ends in 37 s. */
function lowBudget({ headers }: Answer): { budget: string; waitS: number } | undefined {
  const [, budget = '', remaining, waitS] = /^"([^"]+)";r=(\d+);t=(\d+)$/.exec(headers.ratelimit?.toString() ?? '') ?? []
  return remaining !== undefined && Number(remaining) < RESERVED_CALLS ? { budget, waitS: Number(waitS) } : undefined
}

/** A proxy that has refused a body without reading it closes the connection behind its answer, which the next call may find out. */
async function sendAgain(agent: Agent, call: Call): Promise<Answer> {
  return sendUnpaced(agent, call).catch((error) => {
    if (error instanceof ClosedMeanwhile) return sendUnpaced(agent, call)
    throw error
  })
}

class ClosedMeanwhile extends Error {}

/** Sends a call regardless of rate limits. */
export function sendUnpaced(agent: Agent, { method, url, headers = [], body, byteByByte }: Call): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const { protocol, host, origin } = new URL(url)
  const length: [string, string][] = body === undefined ? [] : [['Content-Length', String(Buffer.byteLength(body))]]
  const request = (protocol === 'https:' ? httpsRequest : httpRequest)(origin, {
    agent,
    method,
    path: url.slice(origin.length),
    headers: [['Host', host], ...headers, ...length].flat(),
  })
  request.on('error', (error) => reject(request.reusedSocket ? new ClosedMeanwhile(error.message, { cause: error }) : error))
  request.on('response', (response) => {
    const parts: Buffer[] = []
    response.on('data', (part: Buffer) => parts.push(part))
    response.on('error', reject)
    response.on('end', () => {
      const text = Buffer.concat(parts).toString()
      resolve({ status: response.statusCode ?? 0, headers: response.headers, text, body: parseJson(text) })
    })
  })
  if (byteByByte) {
    request.setNoDelay(true)
    for (const byte of Buffer.from(body ?? '')) request.write(Uint8Array.of(byte))
    request.end()
  } else request.end(body)
  return promise
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The parts of a multipart form: texts, and files with their names. */
export type Parts = readonly (readonly [
  name: string,
  value: string | { fileName: string; type?: string; bytes: Buffer | string },
])[]

export function multipart(parts: Parts): { type: string; body: Buffer } {
  const boundary = 'conformance-of-the-wire-contract'
  const pieces = parts.flatMap(([name, value]) => {
    const isText = typeof value === 'string'
    const file = isText ? '' : `; filename="${value.fileName}"\r\nContent-Type: ${value.type ?? 'application/octet-stream'}`
    return [
      `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n`,
      isText ? value : value.bytes,
      '\r\n',
    ]
  })
  const body = Buffer.concat([...pieces, `--${boundary}--\r\n`].map((piece) => Buffer.from(piece)))
  return { type: `multipart/form-data; boundary=${boundary}`, body }
}
