import { connect } from 'node:net'

export type RawAnswer = { status: number; headers: Headers; text: string }

/**
 * Sends a request as its bytes: what `fetch` would tidy up (`..` in paths, a doubled header, a NUL) arrives as it was written.
 * @param lines the request's headers, each as it goes over the wire; Host and Connection are added
 * @param as under which Host, and in which version of HTTP; those of any client when not given
 */
export async function sendRaw(
  url: string,
  requestLine: string,
  lines: readonly string[] = [],
  body = '',
  as: { host?: string; version?: string } = {},
): Promise<RawAnswer> {
  const { hostname, port, host } = new URL(url)
  const socket = connect(Number(port), hostname)
  const parts: Buffer[] = []
  socket.on('data', (bytes: Buffer) => parts.push(bytes))
  socket.on('error', () => undefined) // a server that has said enough may reset
  const ended = new Promise((resolve) => socket.once('close', resolve))
  const length = body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]
  const head = [
    `${requestLine} ${as.version ?? 'HTTP/1.1'}`,
    `Host: ${as.host ?? host}`,
    'Connection: close',
    ...lines,
    ...length,
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  await ended
  return readAnswer(Buffer.concat(parts))
}

/** An answer from its bytes, as they came over the wire. */
export function readAnswer(bytes: Buffer): RawAnswer {
  const end = bytes.indexOf('\r\n\r\n')
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const headers = new Headers(
    lines.map((line): [string, string] => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]),
  )
  return { status: Number(statusLine.split(' ')[1]), headers, text: bytes.toString('utf8', end + 4) }
}
