import type { AddressInfo } from 'node:net'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Logger } from 'pino'
import { addAccount, isUnused } from './accounts/account.ts'
import { createAuthenticate } from './accounts/api-key.ts'
import { type DeletionDeps, removeTombstones } from './catalogue/deletion.ts'
import { findNamedPosters, POSTER_BLOB } from './catalogue/poster-store.ts'
import { startControl } from './cli/control.ts'
import { type Config, dataPaths, listenUrl } from './config.ts'
import type { FolderLock } from './db/sqlite.ts'
import type { Write } from './db/write.ts'
import { addDemo, openDemo } from './demo/demo.ts'
import { resumeCutOffRuns } from './encode/chunk-store.ts'
import { findNamedSegments, SEGMENT_BLOB } from './encode/film-store.ts'
import { createEncodeWork } from './encode/film-work.ts'
import { createSegmentNews } from './encode/publication.ts'
import { openSandbox } from './encode/sandbox.ts'
import { Failure } from './errors.ts'
import { createApp } from './http/app.ts'
import { clientAddresses } from './http/client-address.ts'
import { currentInterface } from './http/current/interface.ts'
import { isLoopbackHost } from './http/demo/from-this-machine.ts'
import { demoInterface } from './http/demo/routes.ts'
import { healthInterface } from './http/health.ts'
import { posterInterface } from './http/media/posters.ts'
import { mediaInterface } from './http/media/segments.ts'
import { playbackInterface } from './http/playback/routes.ts'
import { readPlayerAssets } from './http/player/assets.ts'
import { playerInterface } from './http/player/routes.ts'
import { uploadInterface } from './http/upload/routes.ts'
import { v2Interface } from './http/v2/interface.ts'
import { findNamedSources, SOURCE_BLOB } from './ingest/source-store.ts'
import { checkStorage, type Installation, lockDataFolder, noteMark, openInstallation } from './installation.ts'
import { startDispatcher } from './jobs/dispatcher.ts'
import { sweepBans } from './limits/bans.ts'
import { openLimits } from './limits/limits.ts'
import { openOutbound } from './outbound/allowance.ts'
import { startPlaybackClock } from './playback/clock.ts'
import { createFilms } from './playback/film.ts'
import { createHotSegments } from './playback/hot-segments.ts'
import { createMarkImages } from './playback/mark-image.ts'
import { mediaSecret } from './playback/media-path.ts'
import { createNonces } from './playback/proof.ts'
import { type LiveSessions, saveSessions, sessionsOfVideos } from './playback/session.ts'
import { resumeSlots } from './playback/stream-slot.ts'
import { sweepPlayback } from './playback/sweep.ts'
import { createTickets } from './playback/ticket.ts'
import { phraseOf } from './protect/recovery-phrase.ts'
import { hasRoomIn } from './storage/space.ts'
import { createSweep, createUnfinishedSweep, fileSystemNowS } from './storage/sweep.ts'

/** A server that answers. */
export type ReelgateServer = {
  url: string
  /** What this start made that exists nowhere else: tell the owner, once. */
  firstStart: FirstStart | undefined
  /** Where a demo film that this start makes will play. */
  demoUrl: string | undefined
  /** Without bubblewrap ffmpeg runs with limits alone. */
  bubblewrap: boolean
  /** Stops accepting, finishes what is in flight, gives chunks back; at most 10 s. */
  stop(): Promise<void>
}

export type FirstStart = {
  account: { accountId: string; apiKey: string } | undefined
  /** Undefined when the environment holds the key. */
  recoveryPhrase: string[] | undefined
}

const PLAYER_FOLDER = join(import.meta.dirname, '..', 'dist', 'player')
const SAVE_SESSIONS_EVERY_MS = 5_000
const LOCK_TRIES = 10
const LOCK_PAUSE_MS = 150
const SWEEP_EVERY_MS = 3_600_000
/** Names of one folder that a sweep looks at: a second or two of work, never the whole of a large installation at once. */
const SWEPT_NAMES = 100_000
/** In-flight answers get so long at a stop; then their connections are closed. */
const STOP_GRACE_MS = 6_000

/** What tests may replace: the clocks. */
export type Replaced = { wallNowS?: () => number }

/**
 * Puts everything together; the one place that does.
 * @throws Failure with one sentence that says what to do
 */
export async function startServer(config: Config, log: Logger, replaced: Replaced = {}): Promise<ReelgateServer> {
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
  replaced: Replaced,
  opened: AsyncDisposableStack,
): Promise<ReelgateServer> {
  const outbound = openOutbound(config.outboundAllow)
  const lock = await lockForServer(config)
  opened.defer(() => lock.release())
  const player = readPlayerAssets(PLAYER_FOLDER)
  const sandboxOpens = openSandbox(config.toolFolders) // ffmpeg is tried while the database opens
  sandboxOpens.catch(() => undefined) // what it has to say is heard below, after the database
  const installation = await openInstallation(config)
  opened.defer(() => installation.close())
  const sandbox = await sandboxOpens
  const { db, slowDb, write, masterKey, folders } = installation

  let isDamaged = false
  void installation.damage.then((damage) => {
    if (damage === undefined) return
    isDamaged = true
    log.fatal({ damage }, 'the database is damaged: nothing is written any more; stop Reelgate and restore it from a backup')
  })

  const nowS = replaced.wallNowS ?? (() => Math.floor(Date.now() / 1000))
  const clock = await startPlaybackClock(db, write, nowS, (markS) =>
    logged(log, 'how far the database has come could not be noted', () => noteMark(config, markS)),
  )
  opened.defer(() => logged(log, 'the playback clock could not be saved', () => clock.stop()))
  await resumeSlots({ write, clock })

  const markImages = createMarkImages({ db, write, nowS, masterKey, sandbox, outbound, tmp: folders.sources.tmp, log })
  opened.defer(() => markImages.stop())
  const bans = { db, write, nowS: clock.nowS, log }
  const limits = config.limits && (await openLimits(bans, config.limits))
  const limiting = { limits, addressOf: clientAddresses(config.trustedProxies) }

  const live: LiveSessions = new Map()
  const playback = {
    db,
    write,
    nowS: clock.nowS,
    nonces: createNonces(masterKey, clock.nowS),
    tickets: createTickets(masterKey, clock.nowS),
    films: createFilms(db, masterKey),
    sessions: live,
    mediaSecret: mediaSecret(masterKey),
    markImages,
    paced: limits !== undefined,
    log,
  }
  opened.defer(() => logged(log, 'sessions could not be saved', () => saveSessions(playback)))

  const hasRoom = watchSpace([config.dataDir, folders.sources.tmp], log)
  const news = createSegmentNews()
  const sessions = sessionsOfVideos(playback)
  await write(resumeCutOffRuns)
  const encoders = startDispatcher({
    places: config.encoders ?? availableParallelism(),
    claim: createEncodeWork(
      { db, write, nowS, masterKey, sandbox, folders, news, sessions, hasRoom: () => hasRoom(0), log },
      () => encoders.wake(),
    ).claim,
    log,
  })
  opened.defer(() => encoders.stop())

  const deletion: DeletionDeps = {
    db,
    write,
    nowS,
    folders,
    log,
    sessions,
    stopEncoding: async (videoIds) => void (await Promise.all(videoIds.map(encoders.stopJobs))),
  }
  const removals = inTurn(() => removeTombstones(deletion), log)
  opened.defer(async () => removals.idle())

  const playbackOtps = { write, nowS: clock.nowS, outbound, markImages }
  const authenticate = createAuthenticate({ db, write })
  let url = ''
  const publicUrl = () => config.publicUrl ?? url
  const app = createApp(log, limiting)
  app.register(currentInterface, {
    ...deletion,
    ...limiting,
    prefix: '/api',
    slowDb,
    authenticate,
    masterKey,
    publicUrl,
    deletionsWaiting: removals.run,
    playbackOtps,
  })
  app.register(v2Interface, {
    ...deletion,
    ...limiting,
    prefix: '/v2',
    slowDb,
    authenticate,
    deletionsWaiting: removals.run,
    playbackOtps,
  })
  app.register(uploadInterface, {
    ...limiting,
    prefix: '/upload',
    db,
    write,
    nowS,
    masterKey,
    publicUrl,
    sources: folders.sources,
    uploadMaxBytes: config.uploadMaxBytes,
    hasRoom,
    sourceArrived: encoders.wake,
  })
  app.register(playerInterface, { ...playback, prefix: '/player', player })
  app.register(playbackInterface, { ...playback, ...limiting, prefix: '/play' })
  app.register(mediaInterface, {
    ...playback,
    ...limiting,
    prefix: '/media',
    segments: folders.segments,
    hotSegments: createHotSegments(),
    news,
    wakeEncoders: encoders.wake,
  })
  app.register(posterInterface, { prefix: '/poster', db, masterKey, posters: folders.posters })
  app.register(healthInterface, {
    checks: {
      database: async () => {
        if (isDamaged) throw new Error('the database is damaged')
        await sql`select 1`.execute(db)
        return undefined
      },
      storage: () => checkStorage(installation),
      space: async () => ((await hasRoom(0)) ? undefined : 'low'),
      ffmpeg: async () => void (await openSandbox(config.toolFolders)),
    },
  })
  const demo = mayShowDemo(config)
    ? openDemo({
        db,
        write,
        nowS,
        masterKey,
        sandbox,
        sources: folders.sources,
        sourceArrived: encoders.wake,
        hasRoom,
        playbackOtps,
        log,
      })
    : undefined
  if (demo) app.register(demoInterface, { demo })
  await listen(app, config)
  opened.defer(() => closeApp(app))
  url = listenUrl(config.host, (app.server.address() as AddressInfo).port)

  const control = await startControl(
    dataPaths(config.dataDir).controlSocket,
    {
      ...deletion,
      bans: { ...bans, forget: (subject: string) => limits?.forget(subject) },
      masterKey,
      localUrl: () => url,
      publicUrl,
      deletionsWaiting: removals.run,
      playbackOtps,
    },
    log,
  )
  opened.defer(() => control.stop())

  // A clock that has jumped must not make fresh files look old: the playback clock only goes as time does.
  const sweepFiles = sweepOf(installation, clock.nowS, log)
  const sweep = async () => {
    await logged(log, 'old rows could not be removed', () => sweepPlayback(playback))
    await logged(log, 'old bans could not be removed', () => sweepBans(bans))
    await logged(log, 'files that nothing names could not be removed', sweepFiles)
  }
  const save = () => logged(log, 'sessions could not be saved', () => saveSessions(playback))
  const timers = [setInterval(save, SAVE_SESSIONS_EVERY_MS), setInterval(sweep, SWEEP_EVERY_MS)]
  opened.defer(() => timers.forEach(clearInterval))
  void sweep()

  const account = (await isUnused({ db, write, nowS })) ? await makeFirstAccount(write, nowS(), demo !== undefined) : undefined
  const isFirstStart = account !== undefined || installation.masterKeyIsNew
  const phrase = isFirstStart && !config.masterKeyHex ? phraseOf(masterKey) : undefined
  encoders.wake()
  removals.run()
  const demoUrl = (await demo?.begin()) ? `${url}/demo` : undefined
  if (demo) opened.defer(() => demo.stop())
  return {
    url,
    firstStart: isFirstStart ? { account, recoveryPhrase: phrase } : undefined,
    demoUrl,
    bubblewrap: sandbox.bubblewrap,
    stop: () => opened.disposeAsync(),
  }
}

/** One transaction: a start that is cut off leaves both or neither, so there is never a second demo, nor half of one. */
async function makeFirstAccount(write: Write, nowS: number, withDemo: boolean) {
  return write(async (tx) => {
    const account = await addAccount(tx, 'owner', { mayUpload: true, mayImport: true }, nowS)
    if (withDemo) await addDemo(tx, nowS)
    return account
  })
}

/**
 * The demo is for this machine alone. A public address means a proxy in front, and what comes through one that says nothing of itself
 * looks as if it came from here; and where no loopback address is listened on, nobody could open it.
 */
function mayShowDemo({ demo, publicUrl, host }: Config): boolean {
  const addresses = [listenUrl(host, 80), ...(publicUrl === undefined ? [] : [publicUrl])]
  return demo && addresses.every((address) => isLoopbackHost(new URL(address).host))
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

/** Does what nobody waits for; its failure is for the log. */
async function logged(log: Logger, words: string, work: () => Promise<void>): Promise<void> {
  await work().catch((error) => log.error({ err: error }, words))
}

async function listen(app: ReturnType<typeof createApp>, config: Config): Promise<void> {
  try {
    await app.listen({ port: config.port, host: config.host })
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
    if (code === 'EADDRINUSE')
      throw new Failure('unavailable', `Port ${config.port} is in use by another program. Stop it, or set PORT to another one.`, {
        cause,
      })
    throw new Failure(
      'unavailable',
      `Reelgate cannot listen on ${config.host}:${config.port}. Set HOST and PORT to an address of this machine.`,
      { cause },
    )
  }
}

async function closeApp(app: ReturnType<typeof createApp>): Promise<void> {
  const impatience = setTimeout(() => app.server.closeAllConnections(), STOP_GRACE_MS)
  await app.close()
  clearTimeout(impatience)
}

/** Says when the space runs out and when there is some again: once each, though everybody asks. */
function watchSpace(folders: readonly string[], log: Logger): (forBytes: number) => Promise<boolean> {
  let wasLow = false
  return async (forBytes) => {
    const isLow = !(await hasRoomIn(folders, 0))
    if (isLow && !wasLow) log.warn('the disk is nearly full: uploads are refused and encodes wait until there is space')
    if (!isLow && wasLow) log.info('the disk has space again: uploads and encodes go on')
    wasLow = isLow
    return !isLow && (forBytes === 0 || hasRoomIn(folders, forBytes))
  }
}

/** Removes, a part in each run, what lies in the data folder and no row names: a crash between a rename and its commit leaves it. */
function sweepOf({ db, folders }: Installation, nowS: () => number, log: Logger): () => Promise<void> {
  const sweeps = {
    sources: createSweep(folders.sources, SOURCE_BLOB, (names) => findNamedSources(db, names)),
    segments: createSweep(folders.segments, SEGMENT_BLOB, (names) => findNamedSegments(db, names)),
    posters: createSweep(folders.posters, POSTER_BLOB, (names) => findNamedPosters(db, names)),
    tmp: createUnfinishedSweep(folders.sources),
  }
  return async () => {
    for (const [folder, sweep] of Object.entries(sweeps)) {
      const removed = await sweep(Math.min(nowS(), await fileSystemNowS(folders.sources)), SWEPT_NAMES)
      if (removed > 0) log.info({ folder, removed }, 'files that nothing names were removed')
    }
  }
}

/** Runs a piece of work one at a time; a call during a run makes one more run after it. */
function inTurn(work: () => Promise<void>, log: Logger) {
  let running: Promise<void> | undefined
  let again = false
  function run() {
    again = true
    running ??= (async () => {
      while (again) {
        again = false
        await work().catch((error) => log.error({ err: error }, 'deleted videos could not be removed'))
      }
    })().finally(() => {
      running = undefined
    })
  }
  return { run, idle: async () => running }
}
