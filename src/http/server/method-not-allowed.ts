import type { FastifyReply, FastifyRequest } from 'fastify'
import { Failure } from '../../errors.ts'
import type { App } from './app.ts'

/** A route as it was registered, such as `/api/videos/:id`. */
export type KnownRoute = { methods: string[]; url: string }

declare module 'fastify' {
  interface FastifyInstance {
    /** All routes, of every interface; full once the server listens. */
    knownRoutes: KnownRoute[]
  }
}

/** Refuses a method that no route takes at an address which others reach; `Allow` names these. Limits come first, the body is not read. */
export function addMethodNotAllowed(app: App): void {
  app.decorate('knownRoutes', [])
  app.addHook('onRoute', ({ method, url }) => void app.knownRoutes.push({ methods: [method].flat(), url }))
  app.addHook('preParsing', async (request, reply) => {
    if (request.is404) refuseMethod(app.knownRoutes, request, reply)
  })
}

/** @throws Failure `method-not-allowed` where other methods reach the address, as it is named most exactly */
export function refuseMethod(routes: readonly KnownRoute[], request: FastifyRequest, reply: FastifyReply): void {
  const methods = methodsAt(routes, request.url)
  if (methods.length === 0 || methods.includes(request.method)) return
  reply.header('Allow', methods.join(', '))
  throw new Failure('method-not-allowed', `${request.method} is not possible here. Use ${methods.join(' or ')}.`)
}

/** The methods of the routes that name the address most exactly: `/api/videos/tags` is no video. */
function methodsAt(routes: readonly KnownRoute[], address: string): string[] {
  const path = partsOf(address.replace(/[?#].*$/s, '')).map(decodeURIComponent)
  const matching = routes.filter(({ url }) => matches(partsOf(url), path))
  const mostWords = Math.max(...matching.map(wordsOf))
  return [...new Set(matching.filter((route) => wordsOf(route) === mostWords).flatMap(({ methods }) => methods))]
}

/** A slash at the end means nothing. */
function partsOf(path: string): string[] {
  return path.replace(/\/$/, '').split('/')
}

function matches(wanted: readonly string[], path: readonly string[]): boolean {
  if (wanted.at(-1) === '*') return path.length >= wanted.length && matches(wanted.slice(0, -1), path.slice(0, wanted.length - 1))
  return (
    wanted.length === path.length &&
    wanted.every((part, at) => (part.startsWith(':') ? path[at] !== '' : isSameWord(part, path[at])))
  )
}

/** In any case, so that `/api/videos/TAGS` is no video either. */
function isSameWord(word: string, given: string | undefined): boolean {
  return word.toLowerCase() === given?.toLowerCase()
}

function wordsOf({ url }: KnownRoute): number {
  return partsOf(url).filter((part) => !part.startsWith(':') && part !== '*').length
}
