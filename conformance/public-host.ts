import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { Deviation } from './expect.ts'
import { VIDEO } from './test-video.ts'

/** A request that this host received. */
export type Received = { path: string; method: string; headers: IncomingHttpHeaders; text: string }

const MAX_WAIT_MS = 60_000

/** Serves a video at `/video/…`, a redirect to it at `/redirect/…`, 404 at `/nothing/…`, and receives webhooks at any other path. */
export async function createPublicHost({ host, port }: { host: string; port: number }) {
  const received: Received[] = []
  const server = createServer((request, response) => {
    const path = request.url ?? '/'
    let text = ''
    request.on('data', (part: Buffer) => {
      text += part
    })
    request.on('end', () => {
      received.push({ path, method: request.method ?? '', headers: request.headers, text })
      if (path.startsWith('/video/'))
        response.writeHead(200, { 'Content-Type': 'video/mp4', 'Content-Length': VIDEO.length }).end(VIDEO)
      else if (path.startsWith('/redirect/')) response.writeHead(302, { Location: '/video/after-redirect.mp4' }).end()
      else response.writeHead(path.startsWith('/nothing/') ? 404 : 204).end()
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, host, resolve)
  })

  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    received: (path: string) => received.filter((call) => call.path === path),
    /** Waits for a matching request to this path. */
    async next(path: string, isWanted: (call: Received) => boolean): Promise<Received> {
      const endsAtMs = performance.now() + MAX_WAIT_MS
      while (performance.now() < endsAtMs) {
        const call = received.find((one) => one.path === path && isWanted(one))
        if (call) return call
        await pause(50)
      }
      throw new Deviation(`no matching request to ${path} within ${MAX_WAIT_MS / 1000} s`)
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Standard Webhooks 1.0: HMAC-SHA256 over id, timestamp and body, with the bytes encoded after `whsec_` as its key. */
export function isSignedBy(secret: string, { headers, text }: Received): boolean {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`
  const wanted = createHmac('sha256', key).update(signed).digest()
  return (headers['webhook-signature']?.toString() ?? '').split(' ').some((signature) => {
    const given = Buffer.from(signature.replace(/^v1,/, ''), 'base64')
    return given.length === wanted.length && timingSafeEqual(given, wanted)
  })
}
