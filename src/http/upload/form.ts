import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { Failure } from '../../errors.ts'
import { decodeFileName, openMultipartParser } from '../wire/multipart.ts'

/**
 * The fields before the file, lower-case, and the file as it comes in. It ends only after the form has ended properly, and throws when it
 * does not: a body that breaks off is never taken for a complete one.
 */
type UploadParts = { fields: ReadonlyMap<string, string>; fileName: string; file: AsyncIterable<Buffer> }

/** What fields and boundaries take of a body at most, as far as its length says something about the file. */
export const MAX_FORM_BYTES = 2 ** 20

const LIMITS = {
  fields: 40,
  fieldSize: 64 * 1024,
  fieldNameSize: 200,
  files: 1,
  parts: 50,
  headerPairs: 50,
  headerSize: 16 * 1024,
}

/**
 * Reads an S3 POST form: fields first, the file last; fields after it are not used, as in S3, but must be well-formed and within the
 * limits.
 * @param receive reads the file to its end, or throws
 * @param fieldsTimeoutMs how long the fields before the file may take; absent: without limit
 * @returns the result of `receive`
 * @throws Failure `invalid` for a form that cannot be read; and what `receive` throws
 */
export async function readUploadForm<T>(
  request: IncomingMessage,
  receive: (parts: UploadParts) => Promise<T>,
  fieldsTimeoutMs?: number,
): Promise<T> {
  const parser = openMultipartParser(request.headers, { limits: LIMITS, isPartAFile })
  const ended = Promise.withResolvers<void>()
  let file: Readable | undefined
  let receiving: Promise<T> | undefined
  const fields = new Map<string, string>()
  const fail = (error: Error) => {
    ended.reject(error)
    file?.destroy(error) // the parser leaves it open, and its reader would wait for ever
  }
  const failAsClientError = (cause: unknown) =>
    fail(cause instanceof Failure ? cause : new Failure('invalid', 'The form cannot be read, or broke off.', { cause }))

  const tooSlow = new Failure(
    'timeout',
    `The fields before the file did not arrive within ${(fieldsTimeoutMs ?? 0) / 1000} seconds.`,
  )
  const deadline =
    fieldsTimeoutMs === undefined ? undefined : setTimeout(() => failAsClientError(tooSlow), fieldsTimeoutMs).unref()

  // The name of a part may be missing, contrary to the parser's types.
  parser.on('field', (name: string | undefined, value: string, nameTruncated: boolean, valueTruncated: boolean) => {
    if (name === undefined) return failAsClientError(new Failure('invalid', 'A part of the form has no name.'))
    if (nameTruncated || valueTruncated) return failAsClientError(new Failure('too-large', 'A field of the form is too large.'))
    if (!receiving) fields.set(name.toLowerCase(), value)
  })
  parser.on('file', (_name: string, stream: Readable, fileName: string | undefined) => {
    file = stream
    clearTimeout(deadline) // `receive` verifies the policy in the fields before it reads the file
    file.on('error', () => undefined) // its reader gets the error, if it has one
    receiving = receive({ fields, fileName: decodeFileName(fileName ?? ''), file: untilFormEnds(stream) })
    // Errors of the file's stream come from the client; all others are ours, and are thrown as they are.
    receiving.catch((error) => (error === stream.errored ? failAsClientError(error) : fail(error)))
  })
  async function* untilFormEnds(stream: Readable): AsyncGenerator<Buffer> {
    yield* stream
    await ended.promise
  }
  for (const limit of ['partsLimit', 'filesLimit', 'fieldsLimit'] as const) {
    parser.on(limit, () => failAsClientError(new Failure('invalid', 'The form has too many parts.')))
  }
  parser.on('error', failAsClientError)
  parser.on('finish', () => ended.resolve())
  request.once('close', () => {
    if (request.complete) return
    const cause = new Error('the client disconnected')
    parser.destroy(cause)
    failAsClientError(cause)
  })
  request.pipe(parser)

  try {
    await ended.promise
    if (!receiving) throw new Failure('invalid', 'The form has no field "file".')
    return await receiving
  } catch (error) {
    await receiving?.catch(() => undefined) // it removes what it has stored
    throw error
  } finally {
    clearTimeout(deadline)
    request.unpipe(parser)
  }
}

/** How much of a body is awaited before an error is sent, and how long: clients read the response only after they have sent everything. */
const MAX_DRAINED_BYTES = 64 * 2 ** 20
const DRAIN_TIMEOUT_MS = 10_000

export async function drainForm(body: IncomingMessage): Promise<void> {
  if (body.readableEnded || body.destroyed) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const timeout = setTimeout(resolve, DRAIN_TIMEOUT_MS)
  let drainedBytes = 0
  body.on('data', (chunk: Buffer) => {
    drainedBytes += chunk.length
    if (drainedBytes > MAX_DRAINED_BYTES) resolve()
  })
  body.once('close', resolve).once('end', resolve).resume()
  await promise
  clearTimeout(timeout)
}

/** By its name alone: clients send types and file names with fields, and none with files. */
function isPartAFile(name: string | undefined): boolean {
  return name?.toLowerCase() === 'file'
}
