import type { FastifyRequest } from 'fastify'
import { Failure } from '../../errors.ts'
import { isLoopbackHost } from '../server/from-this-machine.ts'

// Which pages may use the console's interface: its own, at the public URL if that is https, and on this machine by any name of loopback.

/** With `https` the cookie is `Secure`; on loopback there is no network that could read it. */
export type Scheme = 'https' | 'loopback'

const HEADER = 'reelgate-console'

/**
 * Rejects what a page of another site has sent. A form or a link cannot send the header, and a script of another origin needs a
 * permission for it (CORS) that is never given. Where the browser says from where a request comes, that must agree.
 * @throws Failure `forbidden`
 */
export function refuseOtherSites(request: FastifyRequest, publicUrl: string): void {
  const { headers, method } = request
  const site = headers['sec-fetch-site']
  const isRead = method === 'GET' || method === 'HEAD'
  if (site !== undefined && site !== 'same-origin' && !(isRead && site === 'none')) throw otherSite()
  if (headers.origin !== undefined && findScheme(request, publicUrl) === undefined) throw otherSite()
  if (!isRead && headers[HEADER] !== '1')
    throw new Failure('forbidden', 'The header "Reelgate-Console: 1" is missing. Only the console’s own pages send it.')
}

function otherSite(): Failure {
  return new Failure(
    'forbidden',
    'This request does not come from the console’s own page. Open the console at the URL that the server’s start prints.',
  )
}

/** How the page that sends a request was loaded; undefined for a page of another origin, or over http on a network. */
export function findScheme({ headers }: FastifyRequest, publicUrl: string): Scheme | undefined {
  const { origin, host = '' } = headers
  const server = new URL(publicUrl)
  if (origin === undefined) return server.protocol === 'https:' && !isLoopbackHost(host) ? 'https' : loopbackOnly(host)
  if (origin === server.origin && server.protocol === 'https:') return 'https'
  return origin === `http://${host}` ? loopbackOnly(host) : undefined
}

function loopbackOnly(host: string): Scheme | undefined {
  return isLoopbackHost(host) ? 'loopback' : undefined
}
