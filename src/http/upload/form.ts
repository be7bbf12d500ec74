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

/**
 * Reads an S3 POST form: fields first, the file last (what follows it is ignored, as S3 does). `receive` gets the file's stream
 * and must read it; its result is given when the form has ended as it should, so a body that breaks off is never taken for a whole one.
 * @throws Failure `invalid` for a form that cannot be read; whatever `receive` throws
 */
export async function readUploadForm<T>(request: IncomingMessage, receive: (parts: UploadParts) => Promise<T>): Promise<T> {
  const parser = openParser(request)
  const ended = Promise.withResolvers<void>()
  let received: Promise<T> | undefined
  const fields = new Map<string, string>()
  const breakOff = (cause: unknown) =>
    ended.reject(cause instanceof Failure ? cause : new Failure('invalid', 'The form cannot be read, or broke off.', { cause }))

  parser.on('field', (name: string, value: string, nameTruncated: boolean, valueTruncated: boolean) => {
    if (nameTruncated || valueTruncated) breakOff(new Failure('too-large', 'A field of the form is too large.'))
    fields.set(name.toLowerCase(), value)
  })
  parser.on('file', (name: string, file: Readable, fileName: string) => {
    if (name.toLowerCase() !== 'file' || received) {
      file.resume()
      return
    }
    received = receive({ fields, fileName, file })
    received.catch(breakOff)
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
  } finally {
    request.unpipe(parser)
  }
}

function openParser(request: IncomingMessage) {
  const contentType = request.headers['content-type'] ?? ''
  try {
    return new Busboy({ headers: { ...request.headers, 'content-type': contentType }, limits: LIMITS, preservePath: false })
  } catch (cause) {
    throw new Failure('invalid', 'The body is not a multipart/form-data form.', { cause })
  }
}
