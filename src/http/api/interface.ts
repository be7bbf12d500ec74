import type { FastifyRequest, RouteOptions } from 'fastify'
import type { Caller } from '../../accounts/permission.ts'
import { Failure } from '../../errors.ts'
import type { FindCaller } from '../server/caller.ts'
import { identify } from '../server/identify.ts'
import type { LimitDeps } from '../server/limit.ts'
import { refuseMethod } from '../server/method-not-allowed.ts'
import { identifyToken, readUploadToken, type TokenRouteDeps } from '../server/upload-tokens.ts'
import type { App } from '../wire/app-type.ts'
import { addBodyParsers } from '../wire/bodies.ts'
import { sendListsAsCsv } from '../wire/list-csv.ts'
import { accountRoutes } from './account.ts'
import { alertRoutes } from './alerts.ts'
import { audioRoutes } from './audio.ts'
import { auditRoutes } from './audit-log.ts'
import { banRoutes } from './bans.ts'
import { chapterRoutes } from './chapters.ts'
import { type EventRoutesDeps, eventRoutes } from './events.ts'
import { fileRoutes } from './files.ts'
import { folderRoutes } from './folders.ts'
import { importRoutes } from './imports.ts'
import { keyRoutes } from './keys.ts'
import { listRoutes } from './list.ts'
import { ltiRoutes } from './lti.ts'
import { otpRoutes } from './otp.ts'
import { otpDefaultsRoutes } from './otp-defaults.ts'
import { posterRoutes } from './posters.ts'
import { qualityRoutes } from './quality.ts'
import { queueRoutes } from './queue.ts'
import { refusalRoutes } from './refusals.ts'
import { replacementRoutes } from './replacements.ts'
import { resumableUploadRoutes } from './resumable-uploads.ts'
import { sessionRoutes } from './sessions.ts'
import { statisticsRoutes } from './statistics.ts'
import { storyboardRoutes } from './storyboard.ts'
import { tagRoutes } from './tags.ts'
import { trashRoutes } from './trash.ts'
import { uploadTokenRoutes } from './upload-tokens.ts'
import { uploadRoutes } from './uploads.ts'
import { usageRoutes } from './usage.ts'
import { videoRoutes } from './videos.ts'
import { viewerRoutes } from './viewers.ts'
import { webhookRoutes } from './webhooks.ts'

/** Largest body that is read without authentication: names, passwords and the answers of passkeys are shorter. */
const MAX_PUBLIC_BODY_BYTES = 4 * 1024

type ApiDeps = CallerDeps & ApiRoutesDeps

type CallerDeps = LimitDeps & {
  findCaller: FindCaller
  /** Undefined: upload tokens are not accepted. */
  tokens?: TokenRouteDeps
}

/** In the order of the API reference. */
const ROUTES = [
  listRoutes,
  videoRoutes,
  tagRoutes,
  trashRoutes,
  folderRoutes,
  uploadRoutes,
  replacementRoutes,
  resumableUploadRoutes,
  uploadTokenRoutes,
  importRoutes,
  otpRoutes,
  otpDefaultsRoutes,
  webhookRoutes,
  ltiRoutes,
  usageRoutes,
  banRoutes,
  keyRoutes,
  accountRoutes,
  auditRoutes,
  queueRoutes,
  refusalRoutes,
  statisticsRoutes,
  qualityRoutes,
  sessionRoutes,
  alertRoutes,
  viewerRoutes,
  fileRoutes,
  audioRoutes,
  chapterRoutes,
  storyboardRoutes,
  posterRoutes,
] as const

type IntersectionOf<Union> = (Union extends unknown ? (all: Union) => void : never) extends (all: infer All) => void ? All : never

export type ApiRoutesDeps = IntersectionOf<Parameters<(typeof ROUTES)[number]>[1]> & EventRoutesDeps

/** The current interface, `/api`: `Authorization: Apisecret <secret>`, JSON in and out (wire-contract.md, sections 2 and 3). */
export async function apiInterface(app: App, deps: ApiDeps): Promise<void> {
  authenticateCallers(app, { ...deps, tokens: deps })
  apiRoutes(app, deps)
  eventRoutes(app, deps)
}

/** Reads bodies, authenticates each request before its route, and answers for unknown routes. */
export function authenticateCallers(app: App, deps: CallerDeps): void {
  addBodyParsers(app)
  sendListsAsCsv(app)
  app.addHook('onRoute', assertNamesPermission)
  app.addHook('onRoute', limitPublicBody)
  // Before anything of a body is read.
  app.addHook('onRequest', async (request, reply) => {
    const { permission = 'viewer', isPublic, isForAdministrators } = request.routeOptions.config
    if (isPublic) return
    const token = readUploadToken(request)
    if (token !== undefined && deps.tokens) {
      request.tokenHolder = await identifyToken(deps.tokens, { request, reply }, token)
      return
    }
    const identified = identify(deps, { request, reply }, permission, () => deps.findCaller(request))
    if (request.is404) {
      await identified.catch(throwLimited) // which routes exist is no secret: 404 needs no key
    } else {
      request.holder = await identified
      if (isForAdministrators) requireAdministrator(request.holder)
    }
    if (!request.is404 && !isReserved(request.params)) return
    refuseMethod(request.server.knownRoutes, request, reply)
    throw noSuchRoute(request)
  })
  const noSuchRoute = (request: FastifyRequest) =>
    new Failure('not-found', `There is no such route. The nearest is ${nearestTo(request, app.prefix)}.`)
  app.setNotFoundHandler(async (request) => {
    throw noSuchRoute(request)
  })
}

/** The operations, for either way of authentication. */
export function apiRoutes(app: App, deps: ApiRoutesDeps): void {
  for (const addRoutes of ROUTES) addRoutes(app, deps)
}

/** Words of the paths, which are never taken for a video's id. */
const RESERVED = /^(folders|tags|importurl)$/i

function isReserved(params: unknown): boolean {
  return typeof params === 'object' && params !== null && 'id' in params && RESERVED.test(String(params.id))
}

/** @throws Failure `forbidden` */
function requireAdministrator(caller: Caller): void {
  if ('isAdministrator' in caller && caller.isAdministrator) return
  throw new Failure('forbidden', 'Only an administrator of this installation may do this.')
}

function throwLimited(error: unknown): void {
  if (error instanceof Failure && error.kind === 'limited') throw error
}

function assertNamesPermission(route: RouteOptions): void {
  if (!route.config?.permission && !route.config?.isPublic)
    throw new Error(`the route ${route.method} ${route.url} names no permission`)
}

function limitPublicBody(route: RouteOptions): void {
  if (route.config?.isPublic) route.bodyLimit ??= MAX_PUBLIC_BODY_BYTES
}

/** The route of this interface whose path is most similar to that of the request. */
function nearestTo({ url, server }: FastifyRequest, prefix: string): string {
  const [path = ''] = url.slice(0, MAX_COMPARED_LENGTH).split('?')
  const parts = path.split('/').filter((part, at) => part !== '' || at === 0)
  const similarities = server.knownRoutes
    .filter((route) => route.url.startsWith(`${prefix}/`))
    .map((route) => ({ route, similarity: pathSimilarity(route.url.split('/'), parts) }))
  const [nearest] = similarities.toSorted((a, b) => b.similarity - a.similarity)
  return `${nearest?.route.methods.join(' or ')} ${nearest?.route.url}`
}

/** Of an address: it is compared with each route, letter by letter. */
const MAX_COMPARED_LENGTH = 200

/** How similar two paths are, part by part; a parameter counts less than an equal word. */
function pathSimilarity(expected: readonly string[], actual: readonly string[]): number {
  const similarity = actual.reduce((sum, part, index) => sum + partSimilarity(expected[index] ?? '', part), 0)
  return similarity - Math.abs(expected.length - actual.length) / 2
}

function partSimilarity(expected: string, actual: string): number {
  if (expected.toLowerCase() === actual.toLowerCase()) return 1
  if (expected.startsWith(':')) return 0.4
  const differsAt = [...actual].findIndex((letter, index) => letter !== expected[index])
  return (differsAt === -1 ? actual.length : differsAt) / Math.max(expected.length, actual.length)
}
