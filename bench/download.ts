import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

const READ_BYTES = 1 << 20

/**
 * Downloads with 16 connections, each its next file as soon as it has one. Not by wrk, which reads 8 KiB at a time: with large
 * answers it would be measured, not the server.
 * @returns answers a second
 * @throws Error for an answer that is not 200
 */
export async function downloadsPerS(url: string, requests: readonly string[], seconds = 2): Promise<number> {
  const { hostname, port } = new URL(url)
  const endsAt = performance.now() + seconds * 1000
  const begunAt = performance.now()
  const next = requestsInTurn(requests)
  const counts = await Promise.all(Array.from({ length: 16 }, () => downloadUntil(endsAt, hostname, Number(port), next)))
  return counts.reduce((sum, count) => sum + count) / ((performance.now() - begunAt) / 1000)
}

function requestsInTurn(requests: readonly string[]): () => string {
  let asked = 0
  return () => requests[asked++ % requests.length] ?? ''
}

async function downloadUntil(endsAt: number, host: string, port: number, next: () => string): Promise<number> {
  let count = 0
  let missingBytes = 0
  let failure: Error | undefined
  const socket: Socket = connect({
    host,
    port,
    onread: {
      buffer: Buffer.alloc(READ_BYTES),
      callback(size, bytes) {
        if (missingBytes === 0) missingBytes = answerBytes(bytes.subarray(0, size))
        missingBytes -= size
        if (missingBytes > 0) return true
        count++
        if (performance.now() < endsAt) socket.write(next())
        else socket.destroy()
        return true
      },
    },
  })
  socket.once('error', (error) => {
    failure = error
  })
  await once(socket, 'connect')
  socket.write(next())
  await once(socket, 'close')
  if (failure) throw failure
  return count

  /** How long the whole answer is whose beginning this is. */
  function answerBytes(bytes: Uint8Array): number {
    const head = Buffer.from(bytes.subarray(0, 2_000)).toString('latin1')
    const [, length] = /^HTTP\/1\.1 200 [\s\S]*?\r\ncontent-length: (\d+)\r\n/i.exec(head) ?? []
    if (!length) socket.destroy(new Error(`an answer begins with ${head.slice(0, 60)}`))
    return head.indexOf('\r\n\r\n') + 4 + Number(length)
  }
}
