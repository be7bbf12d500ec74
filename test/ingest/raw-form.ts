import { connect } from 'node:net'
import type { UploadCredentials } from '../client.ts'
import { type RawAnswer, readAnswer } from '../raw-http.ts'

// Forms written byte by byte, as odd and hostile clients send them.

export type Part = {
  /** The whole header of the part; made from `name` and `fileName` otherwise. */ header?: string
  name?: string
  fileName?: string
  body: string | Buffer
}

export const BOUNDARY = 'ReelgateTestBoundary7MA4YWxkTrZu0gW'

export type Layout = {
  boundary?: string /** What follows the last part; an honest form ends with `--` and CRLF. */
  ending?: string
}

/** A form's body. */
export function formBody(parts: readonly Part[], { boundary = BOUNDARY, ending = '--\r\n' }: Layout = {}): Buffer {
  const pieces = parts.flatMap((part) => [`--${boundary}\r\n${part.header ?? headerOf(part)}\r\n\r\n`, part.body, '\r\n'])
  return Buffer.concat([...pieces, `--${boundary}${ending}`].map((piece) => Buffer.from(piece)))
}

function headerOf({ name, fileName }: Part): string {
  return `Content-Disposition: form-data; name="${name}"${fileName === undefined ? '' : `; filename="${fileName}"`}`
}

/** The signed fields of an upload, then what the caller adds, then the file. */
export function uploadParts(
  upload: UploadCredentials,
  file: string | Buffer,
  more: Record<string, string> = {},
  fileName = 'video.mp4',
): Part[] {
  const { uploadLink: _, ...signed } = upload.clientPayload
  const fields = Object.entries({ ...signed, ...more }).map(([name, body]) => ({ name, body }))
  return [...fields, { name: 'file', fileName, body: file }]
}

export type Sending = {
  boundary?: string
  contentType?: string
  /** Whole lines of the head, besides those that every form has. */
  lines?: readonly string[]
  /** Bytes in each chunk of HTTP; undefined: the whole body with a Content-Length. */
  chunkBytes?: number
  /** Sends so many bytes of the body, then cuts the connection; the answer is undefined. */
  cutAfterBytes?: number
}

/** Posts a body over a socket of its own. Undefined: the connection ended without an answer. */
export async function post(url: string, body: Buffer, sending: Sending = {}): Promise<RawAnswer | undefined> {
  const { hostname, port, pathname, search } = new URL(url)
  const socket = connect(Number(port), hostname)
  const parts: Buffer[] = []
  socket.on('data', (bytes: Buffer) => parts.push(bytes))
  socket.on('error', () => undefined) // a server that has said enough may reset
  const ended = new Promise((resolve) => socket.once('close', resolve))
  const contentType = sending.contentType ?? `multipart/form-data; boundary=${sending.boundary ?? BOUNDARY}`
  const length = sending.chunkBytes === undefined ? `Content-Length: ${body.length}` : 'Transfer-Encoding: chunked'
  const head = [`Host: ${hostname}`, 'Connection: close', `Content-Type: ${contentType}`, length, ...(sending.lines ?? [])]
  socket.write(`POST ${pathname}${search} HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n`)
  if (sending.chunkBytes === undefined) socket.write(body.subarray(0, sending.cutAfterBytes))
  else socket.write(inChunks(body.subarray(0, sending.cutAfterBytes), sending.chunkBytes, sending.cutAfterBytes === undefined))
  if (sending.cutAfterBytes !== undefined) socket.end(() => socket.resetAndDestroy())
  await ended
  return parts.length === 0 ? undefined : readAnswer(Buffer.concat(parts))
}

function inChunks(body: Buffer, chunkBytes: number, isWhole: boolean): Buffer {
  const chunks: Buffer[] = []
  for (let at = 0; at < body.length; at += chunkBytes) {
    const bytes = body.subarray(at, at + chunkBytes)
    chunks.push(Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n'))
  }
  return Buffer.concat([...chunks, Buffer.from(isWhole ? '0\r\n\r\n' : '')])
}
