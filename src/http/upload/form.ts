import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { Busboy } from '@fastify/busboy'
import { Failure } from '../../errors.ts'

/** The fields before the file, lower-case, and the file as it comes in. */
export type UploadParts = { fields: ReadonlyMap<string, string>; fileName: string; file: Readable }

const LIMITS = {
  fields: 40,
  fieldSize: 64 * 1024,
  fieldNameSize: 200,
  files: 1,
  parts: 50,
  headerPairs: 50,
  headerSize: 16 * 1024,
}

/** The longest that RFC 2046 (section 5.1.1) allows. */
const MAX_BOUNDARY_LENGTH = 70

/** What becomes of the file while it comes in. */
export type FileReceiver<T> = {
  /** Must read the file's stream. */
  receive(parts: UploadParts): Promise<T>
  /** Undoes `receive`: the form turned out to be void after its file. */
  discard(received: T): Promise<void>
  /** How long the fields before the file may take; absent: as long as they like. */
  fieldsWithinMs?: number
}

/**
 * Reads an S3 POST form: fields first, the file last (what follows it is ignored, as S3 does). What `receive` made of the file is
 * given when the form has ended as it should, so a body that breaks off is never taken for a whole one.
 * @throws Failure `invalid` for a form that cannot be read; whatever `receive` throws
 */
export async function readUploadForm<T>(
  request: IncomingMessage,
  { receive, discard, fieldsWithinMs }: FileReceiver<T>,
): Promise<T> {
  const parser = openParser(request)
  const ended = Promise.withResolvers<void>()
  let file: Readable | undefined
  let received: Promise<T> | undefined
  const fields = new Map<string, string>()
  const giveUp = (error: Error) => {
    ended.reject(error)
    file?.destroy(error) // the parser leaves it open, and whoever reads it would wait for ever
  }
  const breakOff = (cause: unknown) =>
    giveUp(cause instanceof Failure ? cause : new Failure('invalid', 'The form cannot be read, or broke off.', { cause }))

  const tooSlow = new Failure(
    'timeout',
    `The fields before the file did not arrive within ${(fieldsWithinMs ?? 0) / 1000} seconds.`,
  )
  const deadline = fieldsWithinMs === undefined ? undefined : setTimeout(() => breakOff(tooSlow), fieldsWithinMs).unref()

  // A part without a name comes with none, whatever the parser's types say.
  parser.on('field', (name: string | undefined, value: string, nameTruncated: boolean, valueTruncated: boolean) => {
    if (name === undefined) return breakOff(new Failure('invalid', 'A part of the form has no name.'))
    if (nameTruncated || valueTruncated) return breakOff(new Failure('too-large', 'A field of the form is too large.'))
    if (!received) fields.set(name.toLowerCase(), value)
  })
  parser.on('file', (_name: string, stream: Readable, fileName: string | undefined) => {
    file = stream
    clearTimeout(deadline) // from here on the fields have proved what the form may do
    file.on('error', () => undefined) // whoever reads it hears; when a refusal came first, nobody does
    received = receive({ fields, fileName: fileName ?? '', file })
    // What became of the file's stream is the client's doing; all else that goes wrong with it is ours, and told as it is.
    received.catch((error) => (error === stream.errored ? breakOff(error) : giveUp(error)))
  })
  for (const limit of ['partsLimit', 'filesLimit', 'fieldsLimit'] as const) {
    parser.on(limit, () => breakOff(new Failure('invalid', 'The form has too many parts.')))
  }
  parser.on('error', breakOff)
  parser.on('finish', () => ended.resolve())
  request.once('close', () => {
    if (request.complete) return
    const cause = new Error('the client went away')
    parser.destroy(cause)
    breakOff(cause)
  })
  request.pipe(parser)

  try {
    await ended.promise
    if (!received) throw new Failure('invalid', 'The form has no field "file".')
    return await received
  } catch (error) {
    await received?.then(discard, () => undefined)
    throw error
  } finally {
    clearTimeout(deadline)
    request.unpipe(parser)
  }
}

/** Before a refusal so much of the body is still read, for so long: a client that sends before it listens would not hear it. */
const DRAINED_BYTES = 64 * 2 ** 20
const DRAIN_MS = 10_000

export async function drainForm(body: IncomingMessage): Promise<void> {
  if (body.readableEnded || body.destroyed) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const impatience = setTimeout(resolve, DRAIN_MS)
  let drainedBytes = 0
  body.on('data', (chunk: Buffer) => {
    drainedBytes += chunk.length
    if (drainedBytes > DRAINED_BYTES) resolve()
  })
  body.once('close', resolve).once('end', resolve).resume()
  await promise
  clearTimeout(impatience)
}

function openParser(request: IncomingMessage) {
  const contentType = request.headers['content-type'] ?? ''
  const [, boundary = ''] = /boundary="?([^";]*)/i.exec(contentType) ?? []
  if (boundary.length > MAX_BOUNDARY_LENGTH)
    throw new Failure('invalid', `The form's boundary is longer than ${MAX_BOUNDARY_LENGTH} characters.`)
  try {
    return new Busboy({ headers: { ...request.headers, 'content-type': contentType }, limits: LIMITS, isPartAFile })
  } catch (cause) {
    throw new Failure('invalid', 'The body is not a multipart/form-data form.', { cause })
  }
}

/** By its name alone: clients give types and file names to fields, and none to files. */
function isPartAFile(name: string | undefined): boolean {
  return name?.toLowerCase() === 'file'
}
