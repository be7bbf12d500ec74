import type { FastifyReply, FastifyRequest } from 'fastify'
import { parseJson } from '../../json.ts'
import { pathToRoot } from '../wire/path-to-root.ts'
import { MESSAGE_POLICY, messagePage } from './message-page.ts'

// Errors are JSON, for programs. What a person has opened by hand, or by a link, is answered by a page that says the same.

/** Whether a page is asked for: a browser's address bar and links do, and no client of the API. */
export function isForPerson({ method, headers }: FastifyRequest): boolean {
  return (method === 'GET' || method === 'HEAD') && /\btext\/html\b/.test(headers.accept ?? '')
}

/** The addresses that only programs call. */
const FOR_PROGRAMS = /^\/(api|v2)\//

/** An error as a page, where one was asked for; else the payload unchanged. */
export function errorPayload(request: FastifyRequest, reply: FastifyReply, payload: unknown): unknown {
  if (reply.statusCode < 400 || typeof payload !== 'string' || !isForPerson(request) || FOR_PROGRAMS.test(request.url))
    return payload
  if (!String(reply.getHeader('content-type')).startsWith('application/json')) return payload
  const title = reply.statusCode === 404 ? 'Page not found' : 'This did not work'
  const root = pathToRoot(request.url)
  reply.headers({
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': MESSAGE_POLICY,
    'X-Frame-Options': 'DENY',
  })
  reply.removeHeader('content-length')
  return messagePage(title, readMessage(payload), [
    { href: `${root}console/`, text: 'Console' },
    { href: `${root}docs/api`, text: 'API reference' },
  ])
}

function readMessage(payload: string): string {
  const body = parseJson(payload)
  const hasMessage = typeof body === 'object' && body !== null && 'message' in body && typeof body.message === 'string'
  return hasMessage ? String(body.message) : 'The server’s log says why.'
}
