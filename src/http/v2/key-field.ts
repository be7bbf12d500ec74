import { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import type { Authenticate } from '../../accounts/api-key.ts'
import { Failure } from '../../errors.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The key must come within so many bytes of the body. */
    maxBytesToKey?: number
  }
}

export const KEY_FIELD = 'clientSecretKey'

/** Room for all options of an OTP before the key. */
const MAX_BYTES_TO_KEY = 16 * 1024
/** Room for a thousand ids and their tags before it. */
export const MAX_BYTES_OF_IDS = 64 * 1024

/**
 * Looks up the key of a request before its body is parsed, and before more of it is read than the key may need: what a stranger sends
 * costs no more than a search in it.
 * @returns the body, to be parsed
 * @throws Failure as `authenticate`, and `unauthenticated` without a key in this part of the body
 */
export async function findKeyBeforeBody(authenticate: Authenticate, request: FastifyRequest, body: Readable): Promise<Readable> {
  const maxBytes = request.routeOptions.config.maxBytesToKey ?? MAX_BYTES_TO_KEY
  const { bytes, isAll } = await readStart(body, maxBytes)
  try {
    const secret = findSecret(bytes.subarray(0, maxBytes))
    if (secret === undefined) throw missingKey(maxBytes)
    await authenticate(secret)
  } catch (error) {
    body.resume() // the connection's next request comes after the rest
    throw error
  }
  if (isAll) return Readable.from([bytes])
  body.unshift(bytes)
  return body
}

export function missingKey(maxBytes = MAX_BYTES_TO_KEY): Failure {
  return new Failure(
    'unauthenticated',
    `Send the key once, as the field ${KEY_FIELD} of the body, within its first ${maxBytes / 1024} KiB.`,
  )
}

/** A secret between other characters. */
const SECRET = /(?<![A-Za-z0-9])[A-Za-z0-9]{64}(?![A-Za-z0-9])/

/**
 * Finds the secret that follows the name of its field, in JSON and in both kinds of forms alike. It may belong to another field: the
 * route reads it again from the parsed body.
 * @returns undefined without the field; '' when it has no secret
 */
export function findSecret(bytes: Buffer): string | undefined {
  const at = bytes.indexOf(KEY_FIELD)
  if (at < 0) return undefined
  const rest = bytes.toString('latin1', at + KEY_FIELD.length).replace(/%[0-9A-Fa-f]{2}/g, ' ')
  return SECRET.exec(rest)?.[0] ?? ''
}

/** Reads at least so many bytes, or all that there are. What is left waits. */
function readStart(body: Readable, maxBytes: number): Promise<{ bytes: Buffer; isAll: boolean }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ bytes: Buffer; isAll: boolean }>()
  const chunks: Buffer[] = []
  let sizeBytes = 0
  body.on('data', take).on('end', end).on('close', breakOff)
  return promise

  function take(chunk: Buffer): void {
    chunks.push(chunk)
    sizeBytes += chunk.length
    if (sizeBytes >= maxBytes) finish(false)
  }
  function end(): void {
    finish(true)
  }
  function finish(isAll: boolean): void {
    stopReading()
    resolve({ bytes: Buffer.concat(chunks), isAll })
  }
  function breakOff(): void {
    stopReading()
    reject(new Failure('invalid', 'The body broke off.'))
  }
  function stopReading(): void {
    body.off('data', take).off('end', end).off('close', breakOff).pause()
  }
}
