import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** An owner's own site, of one page: another origin than the player's, and to the browser another site under every name but 127.0.0.1. */
export function startSite() {
  let html = ''
  let headers: Record<string, string> = {}
  const server = createServer((_request, response) => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
    response.setHeader('Content-Type', 'text/html; charset=utf-8')
    response.end(`<!doctype html><title>Lesson</title><link rel="icon" href="data:,">${html}`)
  }).listen(0, '127.0.0.1')
  return {
    /** Makes this the page's body, and these its headers. @returns its address */
    put(body: string, host = 'localhost', sent: Record<string, string> = {}): string {
      html = body
      headers = sent
      return `http://${host}:${(server.address() as AddressInfo).port}/`
    },
    close: () => server.close(),
  }
}
