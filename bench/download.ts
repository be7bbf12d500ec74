import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

const READ_BYTES = 1 << 20

/**
 * Downloads with 16 connections, each the next file as soon as the last one is complete. wrk reads 8 KiB at a time, so with large
 * responses it would be the bottleneck, not the server.
 * @returns responses per second
 * @throws Error for a response that is not 200
 */
export async function measureDownloadsPerS(url: string, requests: readonly string[], seconds = 2): Promise<number> {
  const endsAt = performance.now() + seconds * 1000
  let count = 0
  return downloadAll(url, () => (performance.now() < endsAt ? requests[count++ % requests.length] : undefined))
}

/** The same of each file once. */
export async function measureFirstDownloadsPerS(url: string, requests: readonly string[]): Promise<number> {
  let count = 0
  return downloadAll(url, () => requests[count++])
}

/** @param next undefined: there is nothing left to download */
async function downloadAll(url: string, next: () => string | undefined): Promise<number> {
  const { hostname, port } = new URL(url)
  const startedAt = performance.now()
  const counts = await Promise.all(Array.from({ length: 16 }, () => download(hostname, Number(port), next)))
  return counts.reduce((sum, count) => sum + count) / ((performance.now() - startedAt) / 1000)
}

async function download(host: string, port: number, next: () => string | undefined): Promise<number> {
  let count = 0
  let missingBytes = 0
  let failure: Error | undefined
  const socket: Socket = connect({
    host,
    port,
    onread: {
      buffer: Buffer.alloc(READ_BYTES),
      callback(size, bytes) {
        if (missingBytes === 0) missingBytes = responseBytes(bytes.subarray(0, size))
        missingBytes -= size
        if (missingBytes > 0) return true
        count++
        const request = next()
        if (request === undefined) socket.destroy()
        else socket.write(request)
        return true
      },
    },
  })
  socket.once('error', (error) => {
    failure = error
  })
  await once(socket, 'connect')
  const first = next()
  if (first === undefined) socket.destroy()
  else socket.write(first)
  await once(socket, 'close')
  if (failure) throw failure
  return count

  /** The length of a whole response, by its first bytes. */
  function responseBytes(bytes: Uint8Array): number {
    const head = Buffer.from(bytes.subarray(0, 2_000)).toString('latin1')
    const [, length] = /^HTTP\/1\.1 200 [\s\S]*?\r\ncontent-length: (\d+)\r\n/i.exec(head) ?? []
    if (!length) socket.destroy(new Error(`a response begins with ${head.slice(0, 60)}`))
    return head.indexOf('\r\n\r\n') + 4 + Number(length)
  }
}
