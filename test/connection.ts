import { once } from 'node:events'
import { connect } from 'node:net'
import { type RawAnswer, readAnswer } from './raw-http.ts'

/** A connection on which a client's own bytes go out as they are, one request after the other. */
export async function openConnection(url: string) {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  let received = Buffer.alloc(0)
  socket.on('data', (bytes: Buffer) => {
    received = Buffer.concat([received, bytes])
  })
  socket.on('error', () => undefined) // a server that has said enough may reset
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))

  /** Waits for the next whole answer, by its Content-Length, or for the end of the connection. */
  async function nextAnswer(): Promise<RawAnswer> {
    for (;;) {
      const length = lengthOfFirstAnswer(received)
      if (length !== undefined && received.length >= length) {
        const answer = readAnswer(received.subarray(0, length))
        received = received.subarray(length)
        return answer
      }
      if (socket.closed) return readAnswer(received)
      await Promise.race([once(socket, 'data').catch(() => undefined), closed])
    }
  }

  return {
    write: (bytes: string | Buffer) => void socket.write(bytes),
    nextAnswer,
    ask(bytes: string | Buffer): Promise<RawAnswer> {
      socket.write(bytes)
      return nextAnswer()
    },
    closed,
    close: () => socket.destroy(),
  }
}

function lengthOfFirstAnswer(bytes: Buffer): number | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const head = bytes.toString('latin1', 0, end)
  if (/^HTTP\/1\.1 (1\d\d|204|304) /.test(head)) return end + 4
  const [, length] = /\r\ncontent-length: (\d+)/i.exec(head) ?? []
  return length === undefined ? undefined : end + 4 + Number(length)
}
