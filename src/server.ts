import { availableParallelism } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { sql } from 'kysely'
import type { Logger } from 'pino'
import { addAccount, hasNoAccounts } from './accounts/account.ts'
import { createAuthenticate } from './accounts/api-key.ts'
import { createKeyUseTracker, type KeyUseTracker } from './accounts/key-use.ts'
import { createCaptionParser } from './assets/caption.ts'
import { startMp4Scheduler } from './assets/mp4-scheduler.ts'
import { createPosterRenderer } from './assets/poster.ts'
import { findPublicCaptions, openCaption } from './assets/public-captions.ts'
import { openMainPoster } from './assets/public-poster.ts'
import { type DeletionDeps, startRemovals } from './catalogue/deletion.ts'
import { type Config, dataPaths, listenUrl } from './config.ts'
import { startControlSocket } from './control/socket.ts'
import { phraseFromKey } from './crypto/recovery-phrase.ts'
import type { BanRow } from './db/tables.ts'
import type { Write } from './db/write.ts'
import { addDemo, openDemo } from './demo/demo.ts'
import { findDemoVideo } from './demo/demo-store.ts'
import { type ChunkJob, type ChunkQueue, resumeChunks, rowQueue } from './encode/chunk-queue.ts'
import { createSegmentEvents } from './encode/publication.ts'
import { type Damage, reportDamage } from './encode/repair.ts'
import { findSandbox, readVersion, type Sandbox, type SandboxAdvice, sandboxAdvice, tryBubblewrap } from './encode/sandbox.ts'
import { createEncodeScheduler } from './encode/scheduler.ts'
import { DatabaseInUse, Failure } from './errors.ts'
import { apiInterface } from './http/api/interface.ts'
import { metaInterface } from './http/api/meta.ts'
import { isLoopbackHost } from './http/demo/from-this-machine.ts'
import { demoInterface } from './http/demo/routes.ts'
import { collectApiRoutes } from './http/docs/api-routes.ts'
import { docsInterface } from './http/docs/routes.ts'
import { downloadInterface } from './http/media/downloads.ts'
import { posterInterface } from './http/media/posters.ts'
import { mediaInterface } from './http/media/segments.ts'
import { playbackInterface } from './http/play/routes.ts'
import { readPlayerAssets } from './http/player/assets.ts'
import { playerInterface } from './http/player/routes.ts'
import { createApp } from './http/server/app.ts'
import { clientAddresses, proxiesAmong } from './http/server/client-address.ts'
import { limitConnections } from './http/server/connections.ts'
import { healthInterface, type Notices, refuseWhileDatabaseInUse } from './http/server/health.ts'
import { closeApp, listen } from './http/server/listen.ts'
import { uploadInterface } from './http/upload/routes.ts'
import { v2Interface } from './http/v2/interface.ts'
import { startImportScheduler } from './ingest/import-work.ts'
import {
  checkStorage,
  type Installation,
  identifyingFiles,
  lockDataFolder,
  openInstallation,
} from './installation/installation.ts'
import { logErrors, startMaintenance } from './installation/maintenance.ts'
import { startDispatcher } from './jobs/dispatcher.ts'
import { createOutboundPolicy } from './outbound/policy.ts'
import { openCountries } from './playback/countries.ts'
import { deriveMediaSecret } from './playback/media-path.ts'
import { createPlayableVideos } from './playback/playable-video.ts'
import { startPlaybackClock } from './playback/playback-clock.ts'
import { createNonces } from './playback/proof.ts'
import { cacheKey, createSegmentCache } from './playback/segment-cache.ts'
import { type LiveSessions, saveSessions, sessionsOfAccounts, sessionsOfVideos } from './playback/session.ts'
import { resumeStreamSlots } from './playback/stream-slot.ts'
import { createTickets } from './playback/ticket.ts'
import { createTrafficMeter } from './playback/traffic.ts'
import { openRateLimits } from './rate-limits/rate-limits.ts'
import type { FolderLock } from './storage/folder-lock.ts'
import { watchSpace } from './storage/space.ts'
import { openUsage } from './usage/usage.ts'
import { createWatermarkImages } from './watermark/watermark-image.ts'
import { openRestoredCopy, WHY_PAUSED } from './webhooks/restored-copy.ts'
import { startWebhookSender } from './webhooks/sender.ts'

/** A server that answers. */
export type ReelgateServer = {
  url: string
  /** What this start made that exists nowhere else: tell the owner, once. */
  firstStart: FirstStart | undefined
  /** Where a demo video that this start makes will play. */
  demoUrl: string | undefined
  /** Undefined: bubblewrap runs. */
  sandboxAdvice: SandboxAdvice | undefined
  /** Resolves when another server had the database and has let go: what this one has in memory is out of date. Stop it, and start one. */
  outdated: Promise<void>
  /** Stops accepting, finishes what is in flight, gives chunks back; at most 10 s. */
  stop(): Promise<void>
}

export type FirstStart = {
  account: { accountId: string; apiKey: string } | undefined
  /** Undefined when the environment holds the key. */
  recoveryPhrase: string[] | undefined
}

/** How often to look for videos that nobody told of: a source whose commit got no answer may have been kept. */
const LOOK_EVERY_MS = 5_000
const LOCK_TRIES = 10
const LOCK_PAUSE_MS = 150

/** What a caller has already, and what tests may replace: the clock. */
export type Overrides = { sandbox?: Promise<Sandbox>; wallNowS?: () => number }

/**
 * Puts everything together; the one place that does.
 * @throws Failure with one sentence that says what to do
 */
export async function startServer(config: Config, log: Logger, replaced: Overrides = {}): Promise<ReelgateServer> {
  // What is opened is closed in reverse order, each whatever becomes of the others.
  const opened = new AsyncDisposableStack()
  try {
    return await openServer(config, log, replaced, opened)
  } catch (error) {
    await opened.disposeAsync()
    throw error
  }
}

async function openServer(
  config: Config,
  log: Logger,
  replaced: Overrides,
  opened: AsyncDisposableStack,
): Promise<ReelgateServer> {
  const house = await openHouse(config, log, replaced, opened)
  const limiting = await openLimiting(house)
  const playback = await openPlayback(house, limiting, opened)
  const work = await openWork(house, playback, opened)
  const keyUses = createKeyUseTracker(playback)
  opened.defer(() => logErrors(log, 'the last use of keys could not be saved', () => keyUses.save()))
  const { url, demo } = await openDoors(house, limiting, playback, work, keyUses, opened)
  const { bans } = limiting
  const { deletion, noteDamage } = work
  const { reserve } = dataPaths(config.dataDir)
  const upkeep = startMaintenance({ ...house, playback, deletion, noteDamage, usage: playback.usage, keyUses, bans, reserve })
  opened.defer(() => upkeep.stop())

  const { db, write, nowS, masterKey, masterKeyIsNew } = house
  const account = (await hasNoAccounts({ db })) ? await makeFirstAccount(write, nowS(), demo !== undefined) : undefined
  const isFirstStart = account !== undefined || masterKeyIsNew
  const recoveryPhrase = isFirstStart && !config.masterKeyHex ? phraseFromKey(masterKey) : undefined
  await tryBubblewrap(house.sandbox)
  work.encoders.wake()
  work.importers.wake()
  work.mp4s.wake()
  work.removals.run()
  const demoUrl = (await demo?.begin()) ? `${url}/demo` : undefined
  if (demo) opened.defer(() => demo.stop())
  return {
    url,
    firstStart: isFirstStart ? { account, recoveryPhrase } : undefined,
    demoUrl,
    sandboxAdvice: sandboxAdvice(house.sandbox),
    outdated: house.hold.free,
    stop: () => opened.disposeAsync(),
  }
}

/** The data folder in this process's hands, and what else everything stands on: ffmpeg, clocks, the way outside. */
async function openHouse(config: Config, log: Logger, replaced: Overrides, opened: AsyncDisposableStack) {
  const sandboxOpens = replaced.sandbox ?? findSandbox(config) // ffmpeg is tried while all else opens
  sandboxOpens.catch(() => undefined) // what it has to say is heard below, after the database
  const outbound = createOutboundPolicy(config.outboundAllow)
  const lock = await lockForServer(config)
  opened.defer(() => lock.release())
  const player = readPlayerAssets(fileURLToPath(import.meta.resolve('#player/manifest.json')))
  const { dataDir } = config
  const { sources, segments, posters, files, tmp } = dataPaths(dataDir)
  const space = watchSpace([dataDir, sources, segments, posters, files, tmp], log)
  const installation = await openInstallation(config, space.noteFull)
  opened.defer(() => installation.close())
  const sandbox = await sandboxOpens
  void installation.damage.then((damage) => {
    if (damage === undefined) return
    log.fatal({ damage }, 'the database is damaged: nothing is written any more; stop Reelgate and restore it from a backup')
  })

  const hold = watchDatabase(installation, log, space.noteFull)
  const { db, write } = installation
  const wallNowS = replaced.wallNowS ?? (() => Math.floor(Date.now() / 1000))
  const clockS = replaced.wallNowS ? undefined : installation.clockS
  const clock = await startPlaybackClock({ db, write, clockS }, wallNowS, (markS) =>
    logErrors(log, 'how far the database has come could not be noted', () => installation.noteMark(markS)),
  )
  opened.defer(() => logErrors(log, 'the playback clock could not be saved', () => clock.stop()))
  const copy = await openRestoredCopy(installation, identifyingFiles(config), clock.nowS)
  if (copy.isHeld()) log.warn({ why: WHY_PAUSED }, 'webhook: held')
  const clocks = { wallNowS, clock, nowS: clock.nowS }
  return {
    ...installation,
    installation,
    hold,
    copy,
    config,
    log,
    outbound,
    player,
    sandbox,
    ...clocks,
    space,
    hasRoom: space.hasRoom,
  }
}

/** What becomes of the database is logged, and whether another server holds it is asked by every way in. */
function watchDatabase(installation: Installation, log: Logger, full: () => void) {
  const held = Promise.withResolvers<void>()
  const free = Promise.withResolvers<void>()
  let refusal: DatabaseInUse | undefined
  installation.watch({
    away: (why) => log.error({ why }, 'the database is away: calls are refused, all else waits for it'),
    back: () => log.info('the database is back: everything goes on'),
    full,
    held() {
      refusal = new DatabaseInUse()
      log.error('the database is held by another server: this one gives out nothing until that one has stopped')
      held.resolve()
    },
    free() {
      log.warn('the database is free again: this server starts again')
      free.resolve()
    },
  })
  return { refusal: () => refusal, held: held.promise, free: free.promise }
}

type House = Awaited<ReturnType<typeof openHouse>>

async function openLimiting({ config, db, write, nowS, log }: House) {
  const rows = { db, write, nowS }
  const limits = config.limits && (await openRateLimits({ ...rows, log }, config.limits))
  // What is lifted or over in the rows is forgotten in memory, too.
  const bans = {
    ...rows,
    forget: (subject: string) => limits?.forget(subject),
    pardon: (subject: string) => limits?.pardon(subject),
    forgetEnded: () => limits?.forgetEnded(),
    endOf: (ban: BanRow) => limits?.endOf(ban) ?? ban.endsAtS,
  }
  const isProxy = proxiesAmong(config.trustedProxies)
  return { bans, limits, isProxy, addressOf: clientAddresses(isProxy) }
}

type Limiting = Awaited<ReturnType<typeof openLimiting>>

/** What viewers' requests need; the sessions in memory are saved at the end. */
async function openPlayback(house: House, { limits }: Limiting, opened: AsyncDisposableStack) {
  const { config, db, write, masterKey, clock, nowS, folders, log } = house
  await resumeStreamSlots({ write, clock })
  const markImages = createWatermarkImages({ ...house, tmp: folders.sources.tmp })
  opened.defer(() => markImages.stop())
  const sessions: LiveSessions = new Map()
  const usage = openUsage(house)
  opened.defer(() => logErrors(log, 'usage could not be saved', usage.save))
  const playback = {
    db,
    write,
    nowS,
    nowMs: () => performance.now(),
    nonces: createNonces(masterKey, nowS),
    tickets: createTickets(masterKey, nowS),
    videos: createPlayableVideos(db, masterKey),
    sessions,
    mediaSecret: deriveMediaSecret(masterKey),
    captions: {
      find: (videoId: string) => findPublicCaptions({ db }, videoId),
      open: (videoId: string, id: number) => openCaption({ db, masterKey, folders }, videoId, id),
    },
    mainPoster: (video: { videoId: string; accountId: string }) =>
      openMainPoster({ db, masterKey, posters: folders.posters }, video),
    markImages,
    countries: openCountries(config.countriesFile),
    paced: limits !== undefined,
    usage,
    noteView: usage.noteView,
    log,
  }
  opened.defer(() => logErrors(log, 'sessions could not be saved', () => saveSessions(playback)))
  return playback
}

type Playback = Awaited<ReturnType<typeof openPlayback>>

/** What goes on behind the requests: importing, encoding, and removing what was deleted. */
async function openWork(house: House, playback: Playback, opened: AsyncDisposableStack) {
  const { config, db, write, wallNowS, hasRoom, log } = house
  const news = createSegmentEvents()
  const sessions = sessionsOfVideos(playback)
  const chunkQueue = await openChunkQueue(config, log, opened)
  const encoding = {
    chunkQueue,
    news,
    sessions,
    hasRoom: () => hasRoom(0),
    findOwnVideo: async () => (await findDemoVideo(db))?.id,
    stopJobs: (id: string) => encoders.stopJobs(id),
  }
  const encoders = startDispatcher({
    places: config.encoders ?? availableParallelism(),
    claim: createEncodeScheduler({ ...house, ...encoding }, () => encoders.wake()).claim,
    lookEveryMs: LOOK_EVERY_MS,
    log,
  })
  opened.defer(() => encoders.stop())
  void house.hold.held.then(() => encoders.stop()) // the queue has connections of its own
  await resumeChunks(write, chunkQueue)
  chunkQueue.watch(encoders.wake)
  const importing = { ...house, ...config, sources: house.folders.sources, sourceArrived: () => encoders.wake() }
  const importers = await startImportScheduler(importing)
  opened.defer(() => importers.stop())
  const hotSegments = createSegmentCache()
  const damaged = async (damage: Damage) => {
    const isDamaged = await reportDamage({ write, chunkQueue, log }, damage)
    hotSegments.forget(cacheKey(damage, damage.renditionId, damage.number))
    encoders.wake()
    return isDamaged
  }
  const mp4s = startMp4Scheduler({ ...house, noteDamage: damaged })
  opened.defer(() => mp4s.stop())
  const removals = startRemovals({ ...house, saveUsage: playback.usage.save })
  opened.defer(() => removals.stop())
  const sending = await startWebhookSender(house)
  opened.defer(() => sending.stop())
  const deletion: DeletionDeps = {
    db,
    write,
    wallNowS,
    sessions,
    stopWork: async (videoIds) =>
      void (await Promise.all(videoIds.flatMap((id) => [importers, encoders, mp4s].map(({ stopJobs }) => stopJobs(id))))),
    removeFiles: removals.run,
  }
  return { chunkQueue, news, hotSegments, noteDamage: damaged, encoders, importers, mp4s, removals, deletion }
}

type Work = Awaited<ReturnType<typeof openWork>>

/** pg-boss is loaded where there is a PostgreSQL. */
async function openChunkQueue({ databaseUrl }: Config, log: Logger, opened: AsyncDisposableStack): Promise<ChunkQueue> {
  if (databaseUrl === undefined) return rowQueue
  const { openBossQueue } = await import('./jobs/boss.ts')
  const queue = await openBossQueue<ChunkJob>({ url: databaseUrl, name: 'chunk', log })
  opened.defer(() => queue.stop())
  return queue
}

/** Every way in: the interfaces over HTTP, and the socket of the command line. */
async function openDoors(
  house: House,
  { bans, ...limiting }: Limiting,
  playback: Playback,
  { chunkQueue, news, hotSegments, noteDamage, encoders, importers, mp4s, deletion }: Work,
  keyUses: KeyUseTracker,
  opened: AsyncDisposableStack,
) {
  const { config, db, slowDb, write, masterKey, nowS, folders, outbound, hasRoom, log } = house
  let url = ''
  const publicUrl = () => config.publicUrl ?? url
  const playbackOtps = { write, nowS, outbound, markImages: playback.markImages }
  const downloads = { db, slowDb, write, masterKey, folders, nowS }
  const authenticate = createAuthenticate(playback, keyUses.note)
  const owners = {
    ...deletion,
    ...limiting,
    bans,
    nowS,
    slowDb,
    authenticate,
    masterKey,
    publicUrl,
    playbackOtps,
    idempotency: { db, write, nowS, masterKey },
    hooks: house,
    outbound,
    importWaits: importers.wake,
    mp4Waits: mp4s.wake,
    stopMp4: mp4s.stopJobs,
    folders,
    downloads,
    sandbox: house.sandbox,
    drawing: createPosterRenderer(),
    reading: createCaptionParser(),
    hasRoom,
  }
  const uploads = {
    ...deletion,
    ...limiting,
    masterKey,
    nowS,
    publicUrl,
    sources: folders.sources,
    hasRoom,
    sourceArrived: encoders.wake,
    log,
  }
  const segments = {
    traffic: limiting.limits && createTrafficMeter(playback.sessions, nowS),
    noteDamage: (damage: Damage) =>
      void logErrors(log, 'a damaged segment could not be noted', async () => void (await noteDamage(damage))),
    segments: folders.segments,
    hotSegments,
    chunkQueue,
    news,
    wakeEncoders: encoders.wake,
  }
  const demo = mayShowDemo(config) ? openDemo({ ...house, ...uploads, playbackOtps }) : undefined

  const app = createApp(log, limiting)
  limitConnections(app, limiting.isProxy)
  refuseWhileDatabaseInUse(app, house.hold.refusal)
  const routes = collectApiRoutes(app)
  app.register(apiInterface, { ...owners, prefix: '/api' })
  app.register(metaInterface, { ...limiting, db, publicUrl, prefix: '/api/meta' })
  app.register(v2Interface, { ...owners, prefix: '/v2' })
  app.register(uploadInterface, { ...uploads, uploadMaxBytes: config.uploadMaxBytes, prefix: '/upload' })
  app.register(playerInterface, { ...playback, ...limiting, player: house.player })
  app.register(playbackInterface, { ...playback, ...limiting, prefix: '/play' })
  app.register(mediaInterface, { ...playback, ...limiting, ...segments, prefix: '/media' })
  app.register(downloadInterface, { ...downloads, ...limiting, usage: playback.usage, prefix: '/download' })
  app.register(posterInterface, { ...limiting, db, masterKey, posters: folders.posters, authenticate, prefix: '/poster' })
  app.register(docsInterface, { ...limiting, routes, publicUrl, limitNumbers: config.limits })
  app.register(healthInterface, { ...limiting, checks: checksOf(house), notices: () => noticesOf(house) })
  if (demo) app.register(demoInterface, { ...limiting, demo })
  url = listenUrl(config.host, await listen(app, config))
  opened.defer(() => closeApp(app))

  const control = await startControlSocket(
    dataPaths(config.dataDir).controlSocket,
    {
      ...owners,
      media: { db, slowDb, write, noteDamage },
      accounts: { ...playback, sessions: sessionsOfAccounts(playback) },
      copy: async () => house.copy,
      localUrl: () => url,
    },
    log,
  )
  opened.defer(() => control.stop())
  return { url, demo }
}

/** What `/readyz` says besides. */
async function noticesOf({ space, copy }: House): Promise<Notices> {
  return { space: (await space.isLow()) ? 'low' : 'ok', ...(copy.isHeld() && { webhooks: 'held' }) }
}

/** What `/readyz` asks. */
function checksOf({ installation, hold, sandbox, db }: House) {
  let isDamaged = false
  void installation.damage.then((damage) => {
    isDamaged = damage !== undefined
  })
  return {
    database: async () => {
      const held = hold.refusal()
      if (held) throw held
      if (isDamaged) throw new Error('the database is damaged')
      await sql`select 1`.execute(db)
      return undefined
    },
    storage: () => checkStorage(installation),
    ffmpeg: async () => {
      await readVersion(sandbox)
      return undefined
    },
    sandbox: async () => ((await tryBubblewrap(sandbox)) ? undefined : ('low' as const)),
  }
}

/** One transaction: a start that is cut off leaves both or neither, so there is never a second demo, nor half of one. */
async function makeFirstAccount(write: Write, nowS: number, withDemo: boolean) {
  return write(async (tx) => {
    const account = await addAccount(tx, 'owner', { mayUpload: true, mayImport: true }, nowS, 'server')
    if (withDemo) await addDemo(tx, nowS)
    return account
  })
}

/**
 * The demo is for this machine alone. A public address or a trusted proxy means a proxy in front, and what comes through one that says
 * nothing of itself looks as if it came from here; and where no loopback address is listened on, nobody could open it.
 */
function mayShowDemo({ demo, publicUrl, host, trustedProxies }: Config): boolean {
  const addresses = [listenUrl(host, 80), ...(publicUrl === undefined ? [] : [publicUrl])]
  return demo && trustedProxies.length === 0 && addresses.every((address) => isLoopbackHost(new URL(address).host))
}

/** A command line holds the lock for a moment only; a server for its life. */
async function lockForServer(config: Config): Promise<FolderLock> {
  for (let tries = 0; tries < LOCK_TRIES; tries++) {
    const lock = lockDataFolder(config)
    if (lock) return lock
    await pause(LOCK_PAUSE_MS)
  }
  throw new Failure(
    'unavailable',
    `Another Reelgate server runs on ${config.dataDir}. Stop it first, or set REELGATE_DATA to another folder.`,
  )
}
