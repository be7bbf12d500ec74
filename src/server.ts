import type { Logger } from 'pino'
import { createAuthenticate } from './accounts/api-key.ts'
import { createKeyUseTracker } from './accounts/key-use.ts'
import { createUnknownProxyReport } from './alerts/unknown-proxy.ts'
import { createDamagedFiles, recordDamagedFile } from './assets/damaged-file.ts'
import type { CheckDeps } from './assets/media-check.ts'
import type { EndVideoSessions } from './catalogue/deletion.ts'
import type { Config } from './config/config.ts'
import { dataPaths } from './config/data-paths.ts'
import { startControlSocket } from './control/socket.ts'
import { openDemo } from './demo/demo.ts'
import type { Damage } from './encode/repair.ts'
import { createAccountEvents } from './events/account-events.ts'
import { CONSOLE_FOLDER, isConsoleBuilt } from './http/console/files.ts'
import { createInterfaces } from './http/interfaces.ts'
import { isDemoAllowed } from './http/server/from-this-machine.ts'
import { closeApp, listen } from './http/server/listen.ts'
import { startBackgroundWork } from './installation/background-work.ts'
import { findLastBackup } from './installation/backup/last-backup.ts'
import { type FirstStart, prepareFirstStart } from './installation/first-start.ts'
import { logErrors } from './installation/log-errors.ts'
import { startMaintenance } from './installation/maintenance.ts'
import { hasKeyFile } from './installation/master-key.ts'
import { type Overrides, openFoundation } from './installation/open-foundation.ts'
import { watchReadiness } from './installation/readiness.ts'
import { readServerState } from './installation/server-state.ts'
import { createSystem } from './installation/system.ts'
import { cacheKey, createSegmentCache } from './playback/media/segment-cache.ts'
import { openPlayback, savePlayback } from './playback/open.ts'
import { createOtpDefaultsFinder } from './playback/otp-defaults.ts'
import { endSessionsOfAccount, endSessionsOfVideos } from './playback/sessions/session-store.ts'
import { openRateLimiting } from './rate-limits/open.ts'
import { type SandboxAdvice, sandboxAdvice } from './sandbox/bubblewrap.ts'
import { openUsage } from './usage/usage.ts'
import { createFindSignedIn } from './users/authenticate.ts'
import { createChallenges } from './users/passkey.ts'
import { createPasswords } from './users/password.ts'
import { createSignInLimit } from './users/sign-in-limit.ts'
import { consoleUrl } from './users/sign-in-link.ts'
import { canSignIn } from './users/user.ts'
import { createWatermarkImages } from './watermark/watermark-image.ts'

/** A server that answers. */
export type ReelgateServer = {
  url: string
  firstStart: FirstStart | undefined
  /** Where people open the console, and whether one of them can sign in. Undefined: it was not built. */
  consoleAccess: { url: string; canSignIn: boolean } | undefined
  /** Where the demo video will play that this start makes. */
  demoUrl: string | undefined
  /** Undefined: bubblewrap runs. */
  sandboxAdvice: SandboxAdvice | undefined
  /** Resolves when another server had the database and has released it: what this one has in memory is out of date. Start a new one. */
  outdated: Promise<void>
  /** Stops accepting calls, finishes those in flight, gives chunks back; at most 10 s. */
  stop(): Promise<void>
}

/**
 * Opens every part once and connects them; the one place that does.
 * @throws Failure with one sentence that says what to do
 */
export async function startServer(config: Config, log: Logger, overrides: Overrides = {}): Promise<ReelgateServer> {
  const opened = new AsyncDisposableStack() // closed in reverse order, each part whatever becomes of the others
  try {
    return await openServer(config, log, overrides, opened)
  } catch (error) {
    await opened.disposeAsync()
    throw error
  }
}

async function openServer(
  config: Config,
  log: Logger,
  overrides: Overrides,
  opened: AsyncDisposableStack,
): Promise<ReelgateServer> {
  const paths = dataPaths(config.dataDir)
  const foundation = await openFoundation(config, log, overrides, opened)
  const { db, slowQueryDb, write, signals, masterKey, folders, tmp, nowS, wallNowS, clock, sandbox, outbound, ownership, space } =
    foundation
  const { limits, bans } = await openRateLimiting({ db, write, signals, nowS, log }, config.limits)

  const watermarkImages = createWatermarkImages({ db, write, nowS, masterKey, sandbox, outbound, tmp, log })
  opened.defer(() => watermarkImages.stop())
  const usage = openUsage({ db, write, wallNowS })
  opened.defer(() => logErrors(log, 'usage: saving it failed', usage.save))
  const damagedFiles = createDamagedFiles((...file) => repairFile(...file))
  const playing = {
    db,
    write,
    signals,
    masterKey,
    folders,
    damagedFiles,
    clock,
    recordView: usage.recordView,
    watermarkImages: watermarkImages,
    log,
  }
  const playback = await openPlayback({ ...playing, countriesFile: config.countriesFile, isRateLimited: limits !== undefined })
  opened.defer(() => logErrors(log, 'sessions: saving them failed', () => savePlayback(playback)))
  const hotSegments = createSegmentCache()
  signals.on('segment-damaged', (segment) => hotSegments.forget(cacheKey(segment, segment.renditionId, segment.number)))
  const endVideoSessions: EndVideoSessions = (tx, videoIds, why) => endSessionsOfVideos(tx, videoIds, nowS(), why)
  const needs = { config, endVideoSessions, saveUsage: usage.save, log }
  const { encoding, receiving, retry, deletion, masterKeyRotation, wake } = await startBackgroundWork(foundation, needs, opened)
  const { repairSegment, reencrypt } = encoding
  const repairFile: CheckDeps['recordDamagedFile'] = (...file) => recordDamagedFile({ write, signals, log }, ...file)
  const { quota } = receiving
  const reportDamage = (damage: Damage) =>
    void logErrors(log, 'video: recording damage failed', async () => void (await repairSegment(damage)))

  let url = ''
  const publicUrl = () => config.publicUrl ?? url
  const keyUses = createKeyUseTracker({ write, nowS })
  opened.defer(() => logErrors(log, 'API keys: saving their last use failed', () => keyUses.save()))
  const playbackOtps = { db, write, nowS, outbound, watermarkImages, findDefaults: createOtpDefaultsFinder({ db, signals }) }
  const demo = isDemoAllowed(config) ? openDemo({ ...receiving, sandbox, playbackOtps }) : undefined
  const metrics = config.metrics && (await import('./http/metrics/metrics.ts')).createMetrics(config.metrics)
  const erasing = {
    viewings: playback.viewings,
    savePlayback: () => savePlayback(playback),
    eraseFromUsage: usage.eraseViewer,
  }
  const events = createAccountEvents({ db, slowQueryDb, sessions: playback.sessions, nowS, wallNowS, log })
  opened.defer(() => events.stop())
  const readiness = watchReadiness(foundation, log)
  opened.defer(() => readiness.stop())
  const alertOfProxy = createUnknownProxyReport({ db, write, nowS, log })
  const reportUnknownProxy = (address: string) =>
    void logErrors(log, 'proxy: recording an alert failed', () => alertOfProxy(address))
  const accounts = { db, write, signals, nowS, endAccountSessions: endSessionsOfAccount }
  const app = createInterfaces({
    ...{ config, limits, publicUrl, refusal: ownership.refusal, playback, usage, demo, log },
    owners: {
      ...{
        ...deletion,
        slowQueryDb,
        masterKey,
        nowS,
        folders,
        tmp,
        damagedFiles,
        bans,
        outbound,
        sandbox,
        hasRoom: space.hasRoom,
        playbackOtps,
      },
      quota,
      events,
      authenticate: createAuthenticate({ db, signals, nowS }, keyUses.record),
      retry,
      ...erasing,
    },
    uploads: receiving,
    segments: { hotSegments, reportDamage },
    people: {
      endAccountSessions: endSessionsOfAccount,
      system: createSystem({ config, db, slowQueryDb, sandbox, wallNowS, databaseProblem: () => ownership.damage() }),
      findSignedIn: createFindSignedIn({ db, write, signals, nowS, log }),
      signIn: {
        ...{ db, write, masterKey, nowS, passwords: createPasswords(), challenges: createChallenges() },
        signInLimit: limits && createSignInLimit(nowS),
      },
    },
    health: readiness,
    reportUnknownProxy,
    metrics,
  })
  url = await listen(app, config)
  opened.defer(() => closeApp(app))
  const stateDeps = { config, slowQueryDb, sessions: playback.sessions, counters: encoding.counters, nowS, wallNowS }
  const metricsServer = await metrics?.listen(() => readServerState(stateDeps), log)
  opened.defer(() => metricsServer?.stop())
  const media = { db, slowQueryDb, write, reportDamage: repairSegment, recordDamagedFile: repairFile, isEncoding: true }
  const rotation = async () => masterKeyRotation
  const { alertMail } = config
  const commands = {
    accounts,
    alertMail,
    bans,
    media,
    rotation,
    reencrypt,
    stops: playback,
    localUrl: () => url,
    publicUrl,
    playbackOtps,
  }
  const control = await startControlSocket(
    paths.controlSocket,
    {
      ...deletion,
      ...commands,
      slowQueryDb,
      masterKey,
      nowS,
      outbound,
      quota,
      ...erasing,
      copy: async () => foundation.restoredCopy,
    },
    log,
  )
  opened.defer(() => control.stop())
  const { stop: stopMaintenance } = startMaintenance({
    ...{ db, slowQueryDb, write, nowS, folders, masterKey, deletion, usage, keyUses, bans, log },
    ...{ reportDamage: repairSegment, recordDamagedFile: repairFile },
    savePlayback: () => savePlayback(playback),
    ...{ wallNowS, isDiskLow: space.isLow, isSandboxMissing: sandboxAdvice(sandbox) !== undefined },
    areWebhooksHeld: () => foundation.restoredCopy.isPaused(),
    findLastBackupS: async () => (await findLastBackup({ db }))?.atS,
    viewerDataDays: config.viewerDataDays,
    reserve: paths.reserve,
  })
  opened.defer(stopMaintenance)

  const hasConsole = isConsoleBuilt(CONSOLE_FOLDER)
  const has = { hasKeyFile: hasKeyFile(config), hasDemo: demo !== undefined, hasConsole }
  const firstStart = await prepareFirstStart(foundation, has)
  wake()
  const demoUrl = (await demo?.begin()) ? `${url}/demo` : undefined
  if (demo) opened.defer(() => demo.stop())
  return {
    url,
    firstStart,
    consoleAccess: hasConsole ? { url: consoleUrl(publicUrl()), canSignIn: await canSignIn({ db }) } : undefined,
    demoUrl,
    sandboxAdvice: sandboxAdvice(sandbox),
    outdated: ownership.released,
    stop: () => opened.disposeAsync(),
  }
}
