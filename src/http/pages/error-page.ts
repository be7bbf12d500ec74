import type { FastifyReply, FastifyRequest } from 'fastify'
import { parseJson } from '../../json.ts'
import { pathToRoot } from '../wire/path-to-root.ts'
import { type PageLanguage, pageLanguage, type SentenceName } from './languages.ts'
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
  const language = pageLanguage(request)
  const title = language.sentence(reply.statusCode === 404 ? 'page-not-found' : 'did-not-work')
  const root = pathToRoot(request.url)
  reply.headers({
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': MESSAGE_POLICY,
    'X-Frame-Options': 'DENY',
    Vary: 'Accept-Language',
  })
  reply.removeHeader('content-length')
  return messagePage(
    title,
    sentenceOf(reply.statusCode, readMessage(payload), language),
    [
      { href: `${root}console/`, text: 'Console' },
      { href: `${root}docs/api`, text: 'API reference' },
    ],
    language,
  )
}

const BY_STATUS: Readonly<Record<number, SentenceName>> = {
  404: 'not-found',
  429: 'limited',
  500: 'internal',
  503: 'unavailable',
}

/** What an error says to a person. @param message in English, which says more; also where no other language has a sentence for its status */
export function sentenceOf(status: number, message: string, { lang, sentence }: PageLanguage): string {
  const name = BY_STATUS[status]
  return lang === 'en' || name === undefined ? message : sentence(name)
}

function readMessage(payload: string): string {
  const body = parseJson(payload)
  const hasMessage = typeof body === 'object' && body !== null && 'message' in body && typeof body.message === 'string'
  return hasMessage ? String(body.message) : 'The server’s log says why.'
}
