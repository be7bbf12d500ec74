import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect } from 'vitest'
import type { Owner } from '../client.ts'
import { type RawAnswer, sendRaw } from '../raw-http.ts'

// Resumable uploads, request by request, as a client of tus sends them.

type Body = string | Buffer<ArrayBuffer> | ReadableStream

export type TusClient = ReturnType<typeof createTusClient>

/**
 * @param as the credential, instead of the owner's key
 * @param always headers of every request
 */
export function createTusClient(
  { url, apiKey }: Pick<Owner, 'url' | 'apiKey'>,
  as = `Apisecret ${apiKey}`,
  always: Record<string, string> = {},
) {
  const endpoint = `${url}/api/uploads`

  async function call(method: string, address: string, headers: Record<string, string | undefined> = {}, body?: Body) {
    const all = { Authorization: as, 'Tus-Resumable': '1.0.0', ...always, ...headers }
    const given = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined)
    return fetch(address, { method, headers: Object.fromEntries(given), body, duplex: 'half' })
  }

  /** @param length undefined: it is not known yet */
  async function create(length: number | undefined, metadata: Record<string, string> = { title: 'A video' }) {
    const size = length === undefined ? { 'Upload-Defer-Length': '1' } : { 'Upload-Length': String(length) }
    const response = await call('POST', endpoint, { ...size, 'Upload-Metadata': metadataOf(metadata) })
    if (response.status !== 201) throw new Error(`create: ${response.status} ${await response.text()}`)
    return {
      address: new URL(response.headers.get('Location') ?? '', endpoint).href,
      videoId: response.headers.get('Reelgate-Video-Id') ?? '',
      response,
    }
  }

  const patch = (address: string, offset: number, body: Body, headers: Record<string, string> = {}) =>
    call(
      'PATCH',
      address,
      { 'Content-Type': 'application/offset+octet-stream', 'Upload-Offset': String(offset), ...headers },
      body,
    )

  const head = (address: string) => call('HEAD', address)

  async function offset(address: string): Promise<number> {
    const response = await head(address)
    if (response.status !== 200) throw new Error(`HEAD: ${response.status}`)
    return Number(response.headers.get('Upload-Offset'))
  }

  /** Sends a part byte by byte as it is, such as one that is shorter than it says. */
  const patchRaw = (address: string, lines: readonly string[], body: string): Promise<RawAnswer> =>
    sendRaw(address, `PATCH ${new URL(address).pathname}`, [`Authorization: ${as}`, 'Tus-Resumable: 1.0.0', ...lines], body)

  /** A connection that announces a part and sends only these bytes of it. */
  async function beginPart(
    address: string,
    offset: number,
    length: number,
    bytes: Buffer,
    lines: readonly string[] = [],
  ): Promise<Socket> {
    const { hostname, port, pathname, host } = new URL(address)
    const socket = connect(Number(port), hostname)
    socket.on('error', () => undefined)
    socket.resume() // an answer that is not read would keep it open
    await once(socket, 'connect')
    const head = [
      `PATCH ${pathname} HTTP/1.1`,
      ...[`Host: ${host}`, `Authorization: ${as}`, 'Tus-Resumable: 1.0.0', `Upload-Offset: ${offset}`],
      ...['Content-Type: application/offset+octet-stream', `Content-Length: ${length}`, ...lines],
    ]
    socket.write(`${head.join('\r\n')}\r\n\r\n`)
    socket.write(bytes)
    return socket
  }

  /** Asks until no other connection has the upload. */
  async function offsetWhenFree(address: string): Promise<number> {
    const answers: number[] = []
    await expect
      .poll(async () => {
        const response = await head(address)
        answers.push(Number(response.headers.get('Upload-Offset')))
        return response.status
      })
      .toBe(200)
    return answers.at(-1) ?? Number.NaN
  }

  return {
    endpoint,
    authorization: as,
    call,
    create,
    patch,
    head,
    offset,
    beginPart,
    offsetWhenFree,
    patchRaw,
    remove: (address: string) => call('DELETE', address),
  }
}

export function metadataOf(pairs: Record<string, string>): string {
  return Object.entries(pairs)
    .map(([name, value]) => `${name} ${Buffer.from(value).toString('base64')}`)
    .join(',')
}

export function checksumOf(bytes: Buffer, algorithm = 'sha1'): string {
  return `${algorithm} ${createHash(algorithm).update(bytes).digest('base64')}`
}
