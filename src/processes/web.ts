import { createAuthenticate } from '../accounts/api-key.ts'
import { createKeyUseTracker } from '../accounts/key-use.ts'
import { createUnknownProxyReport } from '../alerts/unknown-proxy.ts'
import { createCaptionParser } from '../assets/caption.ts'
import { createDamagedFiles } from '../assets/damaged-file.ts'
import { createPosterRenderer } from '../assets/poster.ts'
import { dataPaths } from '../config/data-paths.ts'
import { startControlSocket } from '../control/socket.ts'
import { type Demo, openDemo } from '../demo/demo.ts'
import type { Damage } from '../encode/repair.ts'
import { createAccountEvents } from '../events/account-events.ts'
import { createInterfaces } from '../http/interfaces.ts'
import { isDemoAllowed } from '../http/server/from-this-machine.ts'
import { closeApp, listen } from '../http/server/listen.ts'
import { readDefaultOptions } from '../http/wire/otp-options.ts'
import { logErrors, logErrorsQuietly, runRegularly } from '../installation/log-errors.ts'
import type { Foundation } from '../installation/open-foundation.ts'
import { watchReadiness } from '../installation/readiness.ts'
import { readServerState } from '../installation/server-state.ts'
import { createSystem } from '../installation/system.ts'
import { recordWatched } from '../lti/grade.ts'
import { createPlatformKeys } from '../lti/platform-keys.ts'
import { createTroubleRecorder } from '../lti/trouble.ts'
import { createDirectBucket, type DirectBucket } from '../playback/media/direct-bucket.ts'
import { cacheKey, createSegmentCache } from '../playback/media/segment-cache.ts'
import { createSegmentCheck } from '../playback/media/segment-check.ts'
import { openPlayback, savePlayback } from '../playback/open.ts'
import { createOtpDefaultsFinder } from '../playback/otp-defaults.ts'
import { isWatching } from '../playback/sessions/live-session.ts'
import { endSessionsOfAccount } from '../playback/sessions/session-store.ts'
import { openRateLimiting } from '../rate-limits/open.ts'
import { createSharedCounts, type SharedCounts } from '../rate-limits/shared-counts.ts'
import { openUsage } from '../usage/usage.ts'
import { createFindSignedIn } from '../users/authenticate.ts'
import { createChallenges } from '../users/challenges.ts'
import { createPasswords } from '../users/password.ts'
import { createSignInLimit } from '../users/sign-in-limit.ts'
import { createWatermarkImages } from '../watermark/watermark-image.ts'
import type { HandOut } from '../workers/hand-out.ts'

export type Web = {
  /** Where clients on this machine reach it. */
  url: string
  publicUrl(): string
  demo: Demo | undefined
}

/** Answers over HTTP, and commands over the control socket, until the server stops. @param handOut absent: no worker is answered */
export async function startWeb(foundation: Foundation, handOut?: HandOut): Promise<Web> {
  const { config, log, opened, signals, servers, sandbox, ownership, space, restoredCopy, rotation } = foundation
  const { repairSegment, recordDamagedFile, receiving, deletion } = foundation
  const counts = openSharedCounts(foundation)
  const { limits, bans } = await openRateLimiting({ ...foundation, counts }, config.limits)

  const watermarkImages = createWatermarkImages(foundation)
  opened.defer(() => watermarkImages.stop())
  const usage = openUsage(foundation)
  runRegularly(foundation, { everyMs: 5_000, work: usage.save, failure: 'usage: saving it failed' })
  signals.on('video-removal', usage.save)
  const damagedFiles = createDamagedFiles(recordDamagedFile)
  const playback = await openPlayback({
    ...{ ...foundation, damagedFiles, watermarkImages },
    recordView: usage.recordView,
    recordAddress: usage.recordAddress,
    recordSentBytes: usage.recordSentBytes,
    onTenth: recordWatched,
    mediaOrigin: config.mediaOrigin,
    directBucket: await openDirectBucket(foundation),
    countriesFile: config.countriesFile,
    isRateLimited: limits !== undefined,
  })
  servers.countSessions(() => [...playback.sessions.values()].filter((session) => isWatching(session, foundation.nowS())).length)
  const erasing = {
    viewings: playback.viewings,
    savePlayback: () => savePlayback(playback),
    eraseFromUsage: usage.eraseViewer,
  }
  runRegularly(foundation, { everyMs: 5_000, work: erasing.savePlayback, failure: 'sessions: saving them failed' })
  const hotSegments = createSegmentCache()
  signals.on('segment-damaged', (segment) => hotSegments.forget(cacheKey(segment, segment.renditionId, segment.number)))
  const reportDamage = (damage: Damage) =>
    void logErrors(log, 'video: recording damage failed', async () => void (await repairSegment(damage)))

  let url = ''
  const publicUrl = () => config.publicUrl ?? url
  const keyUses = createKeyUseTracker(foundation)
  runRegularly(foundation, { everyMs: 60_000, work: keyUses.save, failure: 'API keys: saving their last use failed' })
  const playbackOtps = { ...foundation, watermarkImages, findDefaults: createOtpDefaultsFinder(foundation) }
  const demo = isDemoAllowed(config) ? openDemo({ ...receiving, sandbox, playbackOtps }) : undefined
  const metrics = config.metrics && (await import('../http/metrics/metrics.ts')).createMetrics(config.metrics)
  const events = createAccountEvents({ ...foundation, sessions: playback.sessions })
  opened.defer(() => events.stop())
  const readiness = watchReadiness(foundation, log)
  opened.defer(() => readiness.stop())
  const alertOfProxy = createUnknownProxyReport(foundation)
  const workers = { ...foundation, workerTasks: handOut }
  /** What the API, the console and commands call. */
  const features = {
    ...{ ...foundation, ...receiving, ...deletion, ...erasing, bans, playbackOtps, publicUrl },
    endAccountSessions: endSessionsOfAccount,
  }
  const app = createInterfaces({
    ...{
      config,
      limits,
      publicUrl,
      refusal: foundation.refusal,
      playback,
      usage,
      demo,
      metrics,
      handOut,
      log,
    },
    owners: {
      ...{ ...features, damagedFiles, events, hasRoom: space.hasRoom, transcriber: config.transcriber },
      authenticate: createAuthenticate(foundation, keyUses.record),
    },
    uploads: { ...receiving, ...deletion },
    lti: {
      ...{ ...foundation, platformKeys: createPlatformKeys(foundation) },
      recordTrouble: createTroubleRecorder(foundation),
    },
    segments: {
      hotSegments,
      reportDamage,
      check: createSegmentCheck({ ...foundation, segments: foundation.folders.segments, reportDamage: repairSegment }),
    },
    people: {
      endAccountSessions: endSessionsOfAccount,
      system: createSystem({ ...foundation, databaseProblem: () => ownership.damage() }),
      workers,
      findSignedIn: createFindSignedIn(foundation),
      signIn: {
        ...{ ...foundation, passwords: createPasswords(), challenges: createChallenges(foundation) },
        signInLimit: limits && createSignInLimit(foundation.nowS, limits.share),
      },
    },
    health: readiness,
    reportUnknownProxy: (address) => void logErrors(log, 'proxy: recording an alert failed', () => alertOfProxy(address)),
  })
  url = await listen(app, config)
  opened.defer(() => closeApp(app))
  const state = { ...foundation, sessions: playback.sessions, viewQualities: playback.viewQualities, workerTasks: handOut }
  const metricsServer = await metrics?.listen(() => readServerState(state), log)
  opened.defer(() => metricsServer?.stop())
  const control = await startControlSocket(
    dataPaths(config.dataDir).controlSocket,
    {
      ...{
        ...features,
        hasRoom: space.hasRoom,
        accounts: features,
        stops: playback,
        alertMail: config.alertMail,
        transcriber: config.transcriber,
      },
      media: { ...foundation, reportDamage: repairSegment, isEncoding: true },
      workers,
      rotation: async () => rotation,
      copy: async () => restoredCopy,
      localUrl: () => url,
      readOtpDefaults: async (of, options) => (await readDefaultOptions(playbackOtps, of, options)).options,
      captionParser: createCaptionParser(),
      posterRenderer: createPosterRenderer(),
    },
    log,
  )
  opened.defer(() => control.stop())
  return { url, publicUrl, demo }
}

const EXCHANGE_COUNTS_EVERY_MS = 250

/** Counts limits together with other servers, once there are any. */
function openSharedCounts(foundation: Foundation): SharedCounts | undefined {
  const { batches, servers, nowS } = foundation
  if (!batches || !servers.mayHaveOthers) return undefined
  const counts = createSharedCounts({ batches, server: servers.id, nowS })
  const exchange = async () => {
    if (servers.isShared()) await counts.exchange()
  }
  runRegularly(foundation, { everyMs: EXCHANGE_COUNTS_EVERY_MS, work: exchange, failure: 'limits: exchanging counts failed' })
  return counts
}

const CHECK_BUCKET_EVERY_MS = 5 * 60_000

/** Finds out again and again whether players may load from the bucket, which others may change. */
async function openDirectBucket(foundation: Foundation): Promise<DirectBucket | undefined> {
  const { config, log, opened, findFilesBucket } = foundation
  const { directPlayers: players } = config
  if (!players) return undefined
  const direct = createDirectBucket({ ...foundation, findAddress: () => findFilesBucket()?.address, players })
  const check = () => logErrorsQuietly(log, 'segments: asking whether players may load them from the bucket failed', direct.check)
  await check()
  const timer = setInterval(check, CHECK_BUCKET_EVERY_MS)
  opened.defer(() => clearInterval(timer))
  return direct
}
