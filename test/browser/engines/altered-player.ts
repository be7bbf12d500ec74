import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/**
 * A proxy in front of a server, which puts a script before those of the player's page: so that each engine can be without a part of itself.
 * The caller closes it.
 */
export function startAlteredPlayer(server: string) {
  let script = ''
  const proxy = createServer((incoming, outgoing) => {
    const { method, headers } = incoming
    const forwarded = request(new URL(incoming.url ?? '/', server), {
      method,
      headers: { ...headers, 'accept-encoding': 'identity' },
    })
    forwarded.on('error', () => outgoing.destroy())
    forwarded.on('response', async (answer) => {
      const { 'content-length': _, ...sent } = answer.headers
      outgoing.writeHead(answer.statusCode ?? 502, sent)
      if (!String(sent['content-type']).startsWith('text/html')) return answer.pipe(outgoing)
      const nonce = /'nonce-([\w-]+)'/.exec(String(sent['content-security-policy']))?.[1] ?? ''
      outgoing.end((await text(answer)).replace('<head>', `<head><script nonce="${nonce}">${script}</script>`))
    })
    incoming.pipe(forwarded)
  }).listen(0, '127.0.0.1')
  return {
    url: () => `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    /** The script of the pages that are opened from now on. */
    alter(next: string) {
      script = next
    },
    close() {
      proxy.close()
      proxy.closeAllConnections()
    },
  }
}
