import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { setTimeout as pause } from 'node:timers/promises'

/**
 * A proxy in front of a server, which puts a script before those of the player's page and delays what it passes on: so that each engine
 * can be without a part of itself, or on a slow network. The caller closes it.
 */
export function startAlteredPlayer(server: string) {
  let script = ''
  let bps = Number.POSITIVE_INFINITY
  let held: { paths: RegExp; until: Promise<void> } | undefined
  const requested: string[] = []
  const proxy = createServer(async (incoming, outgoing) => {
    const { method, headers, url = '/' } = incoming
    requested.push(url)
    if (held?.paths.test(url)) await held.until
    const forwarded = request(new URL(url, server), {
      method,
      headers: { ...headers, 'accept-encoding': 'identity' },
    })
    forwarded.on('error', () => outgoing.destroy())
    forwarded.on('response', async (answer) => {
      const { 'content-length': _, ...sent } = answer.headers
      outgoing.writeHead(answer.statusCode ?? 502, sent)
      if (!String(sent['content-type']).startsWith('text/html'))
        return pipeline(answer, (bytes: Readable) => atRate(bytes, bps), outgoing).catch(() => outgoing.destroy())
      const nonce = /'nonce-([\w-]+)'/.exec(String(sent['content-security-policy']))?.[1] ?? ''
      outgoing.end((await text(answer)).replace('<head>', `<head><script nonce="${nonce}">${script}</script>`))
    })
    incoming.pipe(forwarded)
  }).listen(0, '127.0.0.1')
  return {
    url: () => `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    /** The paths of all requests, in their order. */
    requested,
    /** The script of the pages that are opened from now on. */
    alter(next: string) {
      script = next
    },
    /** Passes files on at this rate, in bits per second. */
    slowDown(next: number) {
      bps = next
    },
    /** Holds requests with these paths. @returns lets them pass */
    hold(paths: RegExp): () => void {
      const { promise, resolve } = Promise.withResolvers<void>()
      held = { paths, until: promise }
      return resolve
    },
    close() {
      proxy.close()
      proxy.closeAllConnections()
    },
  }
}

async function* atRate(bytes: AsyncIterable<Buffer>, bps: number): AsyncGenerator<Buffer> {
  for await (const chunk of bytes) {
    yield chunk
    if (Number.isFinite(bps)) await pause((8000 * chunk.length) / bps)
  }
}
