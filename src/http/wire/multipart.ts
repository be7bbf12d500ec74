import type { IncomingHttpHeaders } from 'node:http'
import { Busboy, type BusboyConfig } from '@fastify/busboy'
import { Failure } from '../../errors.ts'

/** As RFC 2046, section 5.1.1 allows: the time that a body takes grows with the length of its boundary. */
const MAX_BOUNDARY_LENGTH = 70

/**
 * A parser of the form that comes with these headers.
 * @throws Failure `invalid` when the headers announce none
 */
export function openMultipartParser(headers: IncomingHttpHeaders, config: Omit<BusboyConfig, 'headers'>) {
  const contentType = headers['content-type'] ?? ''
  const [, boundary = ''] = /boundary="?([^";]*)/i.exec(contentType) ?? []
  if (boundary.length > MAX_BOUNDARY_LENGTH)
    throw new Failure('invalid', `The form's boundary is longer than ${MAX_BOUNDARY_LENGTH} characters.`)
  try {
    return new Busboy({ headers: { ...headers, 'content-type': contentType }, ...config })
  } catch (cause) {
    throw new Failure('invalid', 'The body is not a multipart/form-data form.', { cause })
  }
}

const ENCODED_IN_NAMES: Readonly<Record<string, string>> = { '%0A': '\n', '%0D': '\r', '%22': '"' }

/**
 * The name of a file as its browser had it, which writes three characters in another way; a percent sign it leaves as it is.
 * @see HTML, "Multipart form data"
 */
export function decodeFileName(name: string): string {
  return name.replace(/%(?:0A|0D|22)/g, (encoded) => ENCODED_IN_NAMES[encoded] ?? encoded)
}
