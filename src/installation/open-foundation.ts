import { hash } from 'node:crypto'
import { availableParallelism, hostname } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { VideoFolders } from '../catalogue/deletion.ts'
import type { Config } from '../config/config.ts'
import { dataPaths } from '../config/data-paths.ts'
import type { Database } from '../db/database.ts'
import { releaseRun } from '../encode/chunk-store.ts'
import { Failure } from '../errors.ts'
import { type Claims, openClaims } from '../jobs/claims.ts'
import { createOutboundPolicy, type OutboundPolicy } from '../outbound/policy.ts'
import { type PlaybackClock, startPlaybackClock } from '../playback/playback-clock.ts'
import { openSandbox, type Sandbox } from '../sandbox/bubblewrap.ts'
import { joinServers, onlyServer, type Servers } from '../servers/servers.ts'
import { createSignals, type Signals } from '../signals/signals.ts'
import type { FolderLock } from '../storage/folder-lock.ts'
import { fileIdentity } from '../storage/identity.ts'
import type { Bucket } from '../storage/s3/bucket.ts'
import { type Space, watchSpace } from '../storage/space.ts'
import { releaseDeliveries } from '../webhooks/delivery-store.ts'
import { openRestoredCopy, type RestoredCopy } from '../webhooks/restored-copy.ts'
import { identifyingFiles } from './database.ts'
import { createFileMove, type FileMove } from './file-move.ts'
import { lockDataFolder } from './lock.ts'
import { logErrors, logErrorsQuietly, runRegularly } from './log-errors.ts'
import type { BoundMasterKey } from './master-key.ts'
import { createRotation, type MasterKeyRotation } from './master-key-rotation.ts'
import { openInstallation } from './open.ts'
import { openVideoWork, type VideoWork } from './video-work.ts'
import { type DatabaseOwnership, watchDatabase } from './watch-database.ts'
import { watchKeyRing } from './watch-key-ring.ts'
import { createRowWatch } from './watch-rows.ts'

/** How a server runs: with what, and how it ends. */
export type Run = {
  config: Config
  log: Logger
  /** Closes what was opened, in reverse order. */
  opened: AsyncDisposableStack
  /** Aborted when the server stops. */
  signal: AbortSignal
}

/** What every process of a server is built on: the locked data folder, its database and key, clocks, ffmpeg, outbound requests. */
export type Foundation = Run &
  Pick<Database, 'db' | 'slowQueryDb' | 'write' | 'batches' | 'truncateWal'> &
  BoundMasterKey &
  VideoWork & {
    signals: Signals
    servers: Servers
    claims: Claims
    rotation: MasterKeyRotation
    /** Whether this start made the master key. */
    masterKeyIsNew: boolean
    folders: VideoFolders
    /** Where the files of videos are or may move to, if not on a disk of this machine. */
    bucket: Bucket | undefined
    /** The bucket that has all files. Undefined: they are in the data folder, or are being moved. */
    findFilesBucket(): Bucket | undefined
    fileMove: FileMove
    /** Where files are made that are not finished. */
    tmp: string
    ownership: DatabaseOwnership
    /** Why this server must answer nothing; undefined: it may. */
    refusal(): Failure | undefined
    restoredCopy: RestoredCopy
    sandbox: Sandbox
    /** How many chunks this server encodes concurrently. 0: by workers alone, but for what may not leave it. */
    encoderSlots: number
    outbound: OutboundPolicy
    space: Space
    wallNowS: () => number
    /** The playback clock, which never goes back. */
    nowS: () => number
    clock: PlaybackClock
  }

/** What a caller has already, and what tests replace: the clock. */
export type Overrides = { sandbox?: Promise<Sandbox>; wallNowS?: () => number }

const LOCK_TRIES = 10
const LOCK_PAUSE_MS = 150
const WATCH_ROWS_EVERY_MS = 1_000

/**
 * Locks and opens the data folder for a server.
 * @throws Failure with one sentence that says what to do
 */
export async function openFoundation(run: Run, overrides: Overrides): Promise<Foundation> {
  const { config, log, opened } = run
  const openingSandbox = overrides.sandbox ?? openSandbox(config) // ffmpeg is tried while everything else opens
  openingSandbox.catch(() => undefined) // its error is thrown below, after those of the database
  const outbound = createOutboundPolicy(config.outboundAllow)
  const lock = await lockForServer(config)
  opened.defer(() => lock.release())
  const { sources, segments, posters, files, tmp, cache } = dataPaths(config.dataDir)
  const disk = watchSpace([config.dataDir, sources, segments, posters, files, tmp, cache], log)
  const installation = await openInstallation(config, disk.onDiskFull)
  const { places, buckets } = installation
  const bucket = places.current().bucket ?? buckets[0]
  const isDiskFilled = () => places.receiving().bucket === undefined
  const space = bucket ? spaceWithBucket(disk, bucket, isDiskFilled) : disk
  opened.defer(() => installation.close())
  if (installation.howToUndoUpgrade) log.warn({ undo: installation.howToUndoUpgrade }, 'database: upgraded to this version')
  const sandbox = await openingSandbox
  const ownership = watchDatabase(installation, log, disk.onDiskFull)

  const {
    db,
    slowQueryDb,
    write,
    batches,
    truncateWal,
    channel,
    masterKeyIsNew,
    folders,
    masterKey,
    nextMasterKey,
    hasUnneededKey,
  } = installation
  const bound = { masterKey, nextMasterKey, hasUnneededKey }
  const wallNowS = overrides.wallNowS ?? (() => Math.floor(Date.now() / 1000))
  const serverClockS = overrides.wallNowS ? undefined : installation.serverClockS
  const clock = await startPlaybackClock({ db, write, serverClockS }, wallNowS, (markS) =>
    logErrors(log, 'database: saving its high-water mark failed', () => installation.saveHighWaterMark(markS)),
  )
  opened.defer(() => logErrors(log, 'playback clock: saving it failed', () => clock.stop()))
  const restoredCopy = await openRestoredCopy({ db, write }, channel ? [] : identifyingFiles(config), clock.nowS)
  if (restoredCopy.isPaused()) log.warn({ why: restoredCopy.why }, 'webhook: held')
  const signals = createSignals(write, channel)
  opened.defer(() => signals.stop())
  const server = identifyServer(config)
  const claims = await openClaims({
    ...{ db, write, nowS: clock.nowS, signals, log, server: server.id },
    isOnlyServer: channel === undefined, // it has the lock of the data folder, and of the database
    release: { chunk: releaseRun, webhook: releaseDeliveries },
  })
  opened.defer(() => claims.stop())
  const servers = channel
    ? await joinServers({ ...server, channel, signals, takeBack: claims.maintain, log })
    : onlyServer(server.id, server.name)
  opened.defer(() => logErrorsQuietly(log, 'servers: not signed off; the others notice it after ten seconds', servers.stop))
  const database = { db, slowQueryDb, write, batches, truncateWal, claims, signals, servers }
  const keyRing = watchKeyRing({ db, masterKey, signals, log }, config)
  const watchRows = createRowWatch({ db, nowS: clock.nowS, signals })
  async function lookAtRows(): Promise<void> {
    await watchRows()
    if (channel) await restoredCopy.look()
    await keyRing.retry()
  }
  runRegularly(run, { everyMs: WATCH_ROWS_EVERY_MS, work: lookAtRows, failure: 'signals: changes of other processes not read' })
  const clocks = { wallNowS, clock, nowS: clock.nowS }
  const stored = { folders, bucket, tmp, space }
  const refusal = () => ownership.refusal() ?? keyRing.refusal() ?? servers.refusal()
  const encoding = { sandbox, encoderSlots: config.encoders ?? availableParallelism() }
  const base = { ...run, refusal, ...database, ...clocks, ...bound, ...stored, ownership, restoredCopy, ...encoding, outbound }
  /** Requests are refused with the reason, before their body is read. */
  async function hasRoom(forBytes?: number): Promise<boolean> {
    const outage = isDiskFilled() ? undefined : bucket?.outage()
    if (outage) throw outage.why
    return space.hasRoom(forBytes)
  }
  const videoWork = openVideoWork({ ...base, channel, hasRoom })
  const fileMove = createFileMove({ ...base, ...videoWork, ...installation, masterKey })
  const findFilesBucket = () => (places.target() ? undefined : places.current().bucket)
  const movable = { fileMove, findFilesBucket }
  return { ...base, ...videoWork, ...movable, masterKeyIsNew, rotation: createRotation(base, bound) }
}

/** The data folder of a server distinguishes it from all others. */
function identifyServer({ dataDir, serverName }: Config): { id: string; name: string } {
  const id = hash('sha256', `${hostname()} ${fileIdentity(dataPaths(dataDir).lock) ?? dataDir}`).slice(0, 32)
  return { id, name: serverName ?? `${hostname()}-${id.slice(0, 4)}` }
}

/** What is received goes to the bucket, not to the disk. While the bucket does not answer, work waits as it does for space. */
function spaceWithBucket(disk: Space, bucket: Bucket, isDiskFilled: () => boolean): Space {
  return {
    ...disk,
    hasRoom: async (forBytes) => (isDiskFilled() ? disk.hasRoom(forBytes) : !bucket.outage() && disk.hasRoom()),
  }
}

/** A command holds the lock for a moment only, a server for its whole life. */
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
