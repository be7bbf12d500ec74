import type { FastifyReply, FastifyRequest } from 'fastify'
import { Failure } from '../../errors.ts'
import type { App } from '../wire/app-type.ts'

/** A route as it was registered, such as `/api/videos/:id`. */
type KnownRoute = { methods: string[]; url: string }

declare module 'fastify' {
  interface FastifyInstance {
    /** All routes, of every interface; full once the server listens. */
    knownRoutes: KnownRoute[]
  }
}

/** Answers 405 with `Allow` when an address exists, but not for this method. Limits are checked before; the body is not read. */
export function addMethodNotAllowed(app: App): void {
  app.decorate('knownRoutes', [])
  app.addHook('onRoute', ({ method, url }) => void app.knownRoutes.push({ methods: [method].flat(), url }))
  app.addHook('preParsing', (request, reply, payload, done) => {
    if (request.is404) refuseMethod(app.knownRoutes, request, reply)
    done(null, payload)
  })
}

/** @throws Failure `method-not-allowed` when the address exists for other methods; the most specific route decides */
export function refuseMethod(routes: readonly KnownRoute[], request: FastifyRequest, reply: FastifyReply): void {
  const methods = methodsAt(routes, request.url)
  if (methods.length === 0 || methods.includes(request.method)) return
  reply.header('Allow', methods.join(', '))
  throw new Failure('method-not-allowed', `${request.method} is not allowed here. Use ${methods.join(' or ')}.`)
}

/** The methods of the most specific routes for an address: `/api/videos/tags` is not a video. */
function methodsAt(routes: readonly KnownRoute[], address: string): string[] {
  const path = splitPath(address.replace(/[?#].*$/s, '')).map(decodeURIComponent)
  if (routes.some(({ url }) => splitPath(url).some((word, at) => isMiscased(word, path[at])))) return []
  const matching = routes.filter(({ url }) => matches(splitPath(url), path))
  const maxWords = Math.max(...matching.map(countWords))
  return [...new Set(matching.filter((route) => countWords(route) === maxWords).flatMap(({ methods }) => methods))]
}

/** A trailing slash is ignored. */
function splitPath(path: string): string[] {
  return path.replace(/\/$/, '').split('/')
}

function matches(pattern: readonly string[], path: readonly string[]): boolean {
  if (pattern.at(-1) === '*')
    return path.length >= pattern.length && matches(pattern.slice(0, -1), path.slice(0, pattern.length - 1))
  return (
    pattern.length === path.length && pattern.every((part, at) => (part.startsWith(':') ? path[at] !== '' : part === path[at]))
  )
}

/** Whether a word of a path differs from that of a route in its case alone: `/api/videos/TAGS` is unknown, and no video. */
function isMiscased(word: string, candidate = ''): boolean {
  return word !== candidate && word.toLowerCase() === candidate.toLowerCase()
}

function countWords({ url }: KnownRoute): number {
  return splitPath(url).filter((part) => !part.startsWith(':') && part !== '*').length
}
