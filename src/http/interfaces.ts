import { fileURLToPath } from 'node:url'
import type { FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { createCaptionParser } from '../assets/caption.ts'
import { createPosterRenderer } from '../assets/poster.ts'
import type { DeletionDeps } from '../catalogue/deletion.ts'
import type { Config } from '../config/config.ts'
import type { Demo } from '../demo/demo.ts'
import type { Failure } from '../errors.ts'
import type { SourceDeps } from '../ingest/source.ts'
import { proxiesAmong, unknownProxiesAmong } from '../net/trusted-proxies.ts'
import type { SegmentCheck } from '../playback/media/segment-check.ts'
import { createSegmentReader } from '../playback/media/segment-reader.ts'
import type { SegmentDeps } from '../playback/media/segments.ts'
import type { PlaybackDeps } from '../playback/playback-deps.ts'
import { createTrafficMeter } from '../playback/sessions/traffic.ts'
import type { RateLimits } from '../rate-limits/rate-limits.ts'
import type { Usage } from '../usage/usage.ts'
import { type ApiRoutesDeps, apiInterface } from './api/interface.ts'
import { metaInterface } from './api/meta.ts'
import { CONSOLE_FOLDER, isConsoleBuilt } from './console/files.ts'
import { type ConsoleApiDeps, consoleApiInterface } from './console/interface.ts'
import { consolePages } from './console/pages.ts'
import type { PasskeyRoutesDeps } from './console/passkeys.ts'
import { demoInterface } from './demo/routes.ts'
import { collectApiRoutes } from './docs/api-routes.ts'
import { docsInterface } from './docs/routes.ts'
import { type LtiRoutesDeps, ltiInterface } from './lti/routes.ts'
import { downloadInterface } from './media/downloads.ts'
import { posterInterface } from './media/posters.ts'
import { mediaInterface } from './media/segments.ts'
import type { Metrics } from './metrics/metrics.ts'
import { playbackInterface } from './play/routes.ts'
import { readPlayerAssets } from './player/assets.ts'
import { playerInterface } from './player/routes.ts'
import { createApp } from './server/app.ts'
import { readApiKey } from './server/caller.ts'
import { clientAddresses, getPeerAddress, reportUnknownProxies } from './server/client-address.ts'
import { limitConnections } from './server/connection-limits.ts'
import { type HealthDeps, healthInterface, refuseAll } from './server/health.ts'
import { refuseUnclearHosts } from './server/host-header.ts'
import type { LimitDeps } from './server/limit.ts'
import { uploadInterface } from './upload/routes.ts'
import { type V2Deps, v2Interface } from './v2/interface.ts'
import { watchInterface } from './watch/routes.ts'
import type { App } from './wire/app-type.ts'
import { createResponseCache } from './wire/response-cache.ts'
import { type WorkerRoutesDeps, workerInterface } from './worker/routes.ts'

/** What the interfaces need of the features. */
type InterfaceDeps = {
  config: Pick<Config, 'trustedProxies' | 'limits' | 'viewerDataDays' | 'mediaAccel'>
  log: Logger
  limits: RateLimits | undefined
  publicUrl(): string
  /** Called for each request of a proxy that is not trusted. */
  reportUnknownProxy(address: string): void
  /** The error for every call while another server has the database. */
  refusal(): Failure | undefined
  /** For calls with an API key, in either version of the API. */
  owners: Omit<ApiRoutesDeps & V2Deps, keyof LimitDeps | keyof OwnParts>
  /** People who sign in to the console. */
  people: Omit<PasskeyRoutesDeps, keyof LimitDeps | 'publicUrl'> &
    Pick<ConsoleApiDeps, 'endAccountSessions' | 'system' | 'workers'>
  uploads: SourceDeps & DeletionDeps
  playback: PlaybackDeps
  usage: Usage
  segments: Pick<SegmentDeps, 'hotSegments' | 'reportDamage'> & { check: SegmentCheck }
  health: Pick<HealthDeps, 'readChecks' | 'areWebhooksHeld'>
  demo: Demo | undefined
  lti: Pick<LtiRoutesDeps, 'platformKeys' | 'recordTrouble' | 'wallNowS'>
  /** Undefined: workers are not answered. */
  handOut: WorkerRoutesDeps['handOut'] | undefined
  /** Undefined: nothing is measured. */
  metrics: Pick<Metrics, 'countRequests'> | undefined
}

/** What this file puts together for the calls of owners. */
type OwnParts = Pick<ApiRoutesDeps, 'posterRenderer' | 'captionParser' | 'stops' | 'pages' | 'viewerDataDays' | 'publicUrl'>

/** The server with everything that it answers over HTTP; it does not listen yet. */
export function createInterfaces(deps: InterfaceDeps): App {
  const { config, log, limits, publicUrl, playback, usage, demo } = deps
  const isProxy = proxiesAmong(config.trustedProxies)
  const limiting = { limits, addressOf: clientAddresses(isProxy) }
  const { masterKey, folders, damagedFiles, authenticate } = deps.owners
  const ownParts: OwnParts = {
    posterRenderer: createPosterRenderer(),
    captionParser: createCaptionParser(),
    stops: playback,
    pages: createResponseCache(),
    viewerDataDays: config.viewerDataDays,
    publicUrl,
  }
  const owners = { ...deps.owners, ...limiting, ...ownParts }
  const segments = {
    ...deps.segments,
    segmentReader: createSegmentReader(folders.segments),
    // Only a trusted proxy understands the header; to others it would show how files are named.
    // It asks again, with the other header, for a file that it cannot read.
    accelPathFor: ({ raw, headers }: FastifyRequest) =>
      headers['reelgate-accel'] !== 'off' && isProxy(getPeerAddress(raw.socket)) ? config.mediaAccel : undefined,
  }
  const traffic = limits && createTrafficMeter(playback.sessions, playback.nowS, limits.share)
  const player = readPlayerAssets(fileURLToPath(import.meta.resolve('#player/manifest.json')))

  const app = createApp(log, limiting)
  deps.metrics?.countRequests(app)
  refuseUnclearHosts(app)
  reportUnknownProxies(app, unknownProxiesAmong(config.trustedProxies), deps.reportUnknownProxy)
  limitConnections(app, isProxy)
  refuseAll(app, deps.refusal)
  const routes = collectApiRoutes(app)
  app.register(apiInterface, { ...owners, findCaller: async (request) => authenticate(readApiKey(request)), prefix: '/api' })
  app.register(consoleApiInterface, { ...owners, ...deps.people, prefix: '/console/api' })
  app.register(consolePages, { ...limiting, consoleFolder: CONSOLE_FOLDER, prefix: '/console' })
  app.register(metaInterface, { ...limiting, db: playback.db, publicUrl, prefix: '/api/meta' })
  app.register(watchInterface, { ...limiting, db: playback.db, publicUrl })
  app.register(v2Interface, { ...owners, prefix: '/v2' })
  app.register(uploadInterface, { ...deps.uploads, ...limiting, publicUrl, prefix: '/upload' })
  app.register(playerInterface, { ...playback, ...limiting, player })
  app.register(playbackInterface, { ...playback, ...limiting, checkSegment: deps.segments.check, prefix: '/play' })
  app.register(mediaInterface, { ...playback, ...limiting, ...segments, usage, traffic, prefix: '/media' })
  if (deps.handOut) app.register(workerInterface, { ...limiting, db: playback.db, handOut: deps.handOut, prefix: '/worker' })
  app.register(ltiInterface, { ...owners, ...deps.lti, prefix: '/lti' })
  app.register(downloadInterface, { ...deps.owners, ...limiting, usage, prefix: '/download' })
  app.register(posterInterface, {
    ...limiting,
    db: playback.db,
    masterKey,
    posters: folders.posters,
    damagedFiles,
    authenticate,
    prefix: '/poster',
  })
  app.register(docsInterface, {
    ...limiting,
    hasConsole: isConsoleBuilt(CONSOLE_FOLDER),
    routes,
    publicUrl,
    limitNumbers: config.limits,
  })
  app.register(healthInterface, { ...deps.health, ...limiting })
  if (demo) app.register(demoInterface, { ...limiting, demo })
  return app
}
