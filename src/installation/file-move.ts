import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { totalFileSizeAfter } from '../assets/file-damage-store.ts'
import { type Batch, type CheckDeps, nextSegmentsAndFiles, openFileCheck } from '../assets/media-check.ts'
import type { Config } from '../config/config.ts'
import { MEDIA_FOLDERS, type MediaFolder } from '../config/data-paths.ts'
import type { MasterKey } from '../crypto/master-key.ts'
import { findSetting } from '../db/setting.ts'
import { segmentKey, totalSizeAfter } from '../encode/damage-store.ts'
import { findSegmentFault } from '../encode/segment-file.ts'
import { Failure, logLevelFor } from '../errors.ts'
import { listGrowingSources } from '../ingest/source-store.ts'
import type { Servers } from '../servers/servers.ts'
import { checkHash } from '../storage/copy.ts'
import { inBatches } from '../storage/orphan-sweep.ts'
import type { Bucket } from '../storage/s3/bucket.ts'
import type { Space } from '../storage/space.ts'
import { forEachAtOnce } from './backup/for-each-at-once.ts'
import {
  directionOf,
  type FinishedMove,
  findPlace,
  readFinishedMove,
  readMove,
  recordMove,
  recordMoved,
  recordTurn,
  type StoredMove,
} from './located-files.ts'
import type { MovedBlobs } from './moved-blob-store.ts'
import { createFoldersOf } from './open.ts'
import type { Place, Places } from './places.ts'

// Moves all files of a running installation to another place. First the files that rows name, each compared with what was published;
// then whatever else the old place has, such as that of an encode which is not finished.

/** As many segments are copied at a time; other files, which may be large, one by one. */
const COPIES = 4
const RETRY_MS = 5_000
const MAX_RETRY_MS = 60_000
const LOOK_AGAIN_MS = 2_000
const MAX_NAMED = 20

export type MoveStatus = {
  state: 'none' | 'moving' | 'done'
  /** Where the files are, or go. */
  to: string
  from: string
  files: number
  movedBytes: number
  totalBytes: number
  /** The first names of files that cannot be copied: the old place does not have them as they were published. */
  damaged: string[]
  damagedCount: number
  /** What the move waits for, or why it does not get further. Empty: nothing. */
  waitsFor: string
  /** From when on nothing uses the old place; 0 while it is used. */
  unusedFromS: number
}

export type FileMove = {
  /**
   * Begins a move, unless it is under way or was finished. One that is under way is turned round by naming the place that it leaves.
   * @param to as commands name a place: see `findPlace`
   * @throws Failure with what to do
   */
  begin(to: string): Promise<void>
  status(): Promise<MoveStatus>
  /** Continues a move that an earlier run of the server began. */
  resume(): Promise<void>
  /** Resolves when nothing is copied any more. The signal of the server ends it. */
  stop(): Promise<void>
}

type FileMoveDeps = Pick<CheckDeps, 'db' | 'slowQueryDb' | 'write' | 'recordDamagedFile'> & {
  config: Pick<Config, 'dataDir'>
  servers: Pick<Servers, 'hasOthers'>
  places: Places
  moved: MovedBlobs
  masterKey: MasterKey
  openPlace(id: string, bucket: Bucket | undefined): Place
  buckets: readonly Bucket[]
  repairSegment: CheckDeps['reportDamage']
  space: Pick<Space, 'hasRoom'>
  wallNowS: () => number
  log: Logger
  /** Aborted when the server stops. */
  signal: AbortSignal
}

/** How long players may use addresses of segments in a bucket that they were given before. */
const ADDRESSES_USED_S = 2 * 3600

export function createFileMove(deps: FileMoveDeps): FileMove {
  const { db, slowQueryDb, write, places, moved, masterKey, log, wallNowS } = deps
  const readSetting = (name: string) => findSetting(db, name)
  const progress = { files: 0, movedBytes: 0, totalBytes: 0, waitsFor: '' }
  /** What could not be copied: it is read once in a run of the server. */
  const skipped = new Set<string>()
  /** Of these, files of videos. */
  const damaged = new Set<string>()
  let running: Promise<void> = Promise.resolve()
  /** Aborted when the move is turned round. */
  let turning = new AbortController()
  let { signal } = deps
  let beginning: Promise<void> = Promise.resolve()

  async function begin(bucket: Bucket | undefined): Promise<void> {
    const now = places.receiving()
    const toName = deps.openPlace('', bucket).name
    if (now.name === toName) return
    if (places.target() && !places.isTurnedRound() && places.current().name === toName) return turnRound(bucket)
    if (places.target()) throw new Failure('conflict', `The files are being moved to ${now.name}. Wait until that is finished.`)
    if (deps.servers.hasOthers())
      throw new Failure(
        'conflict',
        'Files move where one server uses the installation. Stop the others first; they start again when it is finished.',
      )
    await moved.clear() // of a run that was killed after the last move
    await createFoldersOf(deps.config, bucket)
    const move = { from: now.id, fromName: now.name, toName, beganAtS: wallNowS() }
    const to = await recordMove(write, move, bucket)
    places.begin(deps.openPlace(to, bucket))
    log.info({ from: now.name, to: toName }, 'files: moving to another place')
    running = run()
  }

  /** What was copied is copied back, as it may have been written again meanwhile; what was not is where it was. */
  async function turnRound(bucket: Bucket | undefined): Promise<void> {
    turning.abort()
    await running
    turning = new AbortController()
    if (!places.target()) return begin(bucket) // it has just ended
    await recordTurn(write, await getMove(), wallNowS())
    places.turnRound()
    for (const known of [skipped, damaged]) known.clear()
    log.info({ to: places.receiving().name }, 'files: moving back')
    running = run()
  }

  async function run(): Promise<void> {
    signal = AbortSignal.any([deps.signal, turning.signal])
    Object.assign(progress, { files: 0, movedBytes: 0, totalBytes: 0, waitsFor: '' })
    for (let retryMs = RETRY_MS; !signal.aborted; retryMs = Math.min(2 * retryMs, MAX_RETRY_MS)) {
      try {
        return await moveAll()
      } catch (error) {
        if (signal.aborted) return
        progress.waitsFor = error instanceof Failure ? error.message : 'Moving a file failed, and is tried again: see the log.'
        log[logLevelFor(error, 'error')]({ err: error }, 'files: moving them failed; retrying')
        await pause(retryMs, undefined, { signal }).catch(() => undefined)
      }
    }
  }

  async function moveAll(): Promise<void> {
    progress.totalBytes = (await totalSizeAfter(slowQueryDb, undefined)) + (await totalFileSizeAfter(slowQueryDb, 0))
    do {
      while ((await moveNamed()) > 0) signal.throwIfAborted()
    } while ((await waitForUses()) || !(await moveRest()))
    await finish()
  }

  /** Copies what rows name. @returns how many files it copied */
  async function moveNamed(): Promise<number> {
    let copied = 0
    Object.assign(progress, { files: 0, movedBytes: 0 })
    for (let after: Batch['last']; ; ) {
      signal.throwIfAborted()
      const { segments, files, last } = await nextSegmentsAndFiles(db, after)
      if (!last) return copied
      const keys = [...segments.map(({ file }) => `segments/${file}`), ...files.map(({ folder, name }) => `${folder}/${name}`)]
      const there = await moved.find(keys)
      const isLeft = (key: string) => isIn(there, key) && !skipped.has(key)
      await forEachAtOnce(segments, COPIES, async (segment) => {
        const { file, sizeBytes, sha256 } = segment
        const key = `segments/${file}`
        if (isLeft(key)) {
          await assertRoom(sizeBytes)
          const outcome = await places.copy('segments', file, checkHash(sha256), signal)
          if (outcome === 'copied') copied++
          if (outcome === 'lost') await reportSegment(key, segment)
        }
        count(sizeBytes)
      })
      for (const file of files) {
        const { folder, name, videoId, sizeBytes } = file
        const key = `${folder}/${name}`
        if (isLeft(key)) {
          await assertRoom(sizeBytes)
          const outcome = await places.copy(folder, name, openFileCheck(masterKey, file), signal)
          if (outcome === 'copied') copied++
          if (outcome === 'lost')
            skip(key, (await deps.recordDamagedFile({ videoId, name }, 'missing, unreadable or changed')) !== undefined)
        }
        count(sizeBytes)
      }
      after = last
    }
  }

  /** Whether a file is where the move takes files from. @param listed of some files those that are listed as moved */
  function isIn(listed: ReadonlySet<string>, key: string): boolean {
    return listed.has(key) === places.isTurnedRound()
  }

  /** Uploads and the database need the rest of a disk. */
  async function assertRoom(sizeBytes: number): Promise<void> {
    if (places.receiving().bucket || (await deps.space.hasRoom(sizeBytes))) return
    throw new Failure('unavailable', 'The disk of the data folder is nearly full. Free some space; then the move continues.')
  }

  function count(sizeBytes: number): void {
    progress.files++
    progress.movedBytes += sizeBytes
    progress.waitsFor = ''
  }

  /** It is encoded again, into the new place, where its video plays. */
  async function reportSegment(key: string, segment: Batch['segments'][number]): Promise<void> {
    const fault = await findSegmentFault(places.files.segments, segment)
    if (fault) skip(key, await deps.repairSegment({ ...segmentKey(segment), ...fault }))
  }

  function skip(key: string, isDamaged: boolean): void {
    skipped.add(key)
    if (!isDamaged) return // its row is gone
    damaged.add(key)
    log.warn({ file: key }, 'files: one was not moved: it is missing or damaged')
  }

  /** What is received or read in the old place stays there until it is whole. @returns whether there was something to wait for */
  async function waitForUses(): Promise<boolean> {
    let waited = false
    for (;;) {
      const keys = (await listGrowingSources(db)).map((file) => `sources/${file}`)
      const there = await moved.find(keys)
      const growing = keys.filter((key) => isIn(there, key)).length
      if (growing === 0) break
      waited = true
      progress.waitsFor = `${growing} uploads or imports that began before the move.`
      await pause(LOOK_AGAIN_MS, undefined, { signal })
    }
    progress.waitsFor = 'Encodes and exports that began before the move.'
    await Promise.race([places.untilUnused(), aborted(signal)])
    signal.throwIfAborted()
    progress.waitsFor = ''
    return waited
  }

  /** Copies what the old place has besides. @returns whether it has nothing left */
  async function moveRest(): Promise<boolean> {
    let isWhole = true
    for (const folder of MEDIA_FOLDERS) {
      for await (const names of inBatches(places.leaving().files[folder].list('', ''))) {
        const there = await moved.find(names.map((name) => `${folder}/${name}`))
        for (const name of names) {
          signal.throwIfAborted()
          const key = `${folder}/${name}`
          if (!isIn(there, key) || skipped.has(key)) continue
          const outcome = await places.copy(folder, name, undefined, signal)
          if (outcome === 'lost') isWhole = (await isGone(folder, name)) && isWhole
        }
      }
    }
    if (!isWhole) await pause(RETRY_MS, undefined, { signal })
    return isWhole
  }

  /** Removed meanwhile; not so one that cannot be read, or grows: its row is about to be committed. */
  async function isGone(folder: MediaFolder, name: string): Promise<boolean> {
    return (await places.leaving().files[folder].stat(name)) === undefined
  }

  async function finish(): Promise<void> {
    const move = directionOf(await getMove())
    const { beganAtS } = await getMove()
    const names = [...damaged]
    const { files } = progress
    const counts = { files: files - names.length, damaged: names.slice(0, MAX_NAMED), damagedCount: names.length }
    const before = await readFinishedMove(readSetting)
    const left = [...(before?.left ?? []), move.from]
    await recordMoved(write, { ...move, beganAtS, endedAtS: wallNowS(), ...counts, left })
    places.end()
    log.info({ from: move.fromName, to: move.toName, ...counts }, 'files: moved')
    await moved.clear()
  }

  async function getMove(): Promise<StoredMove> {
    const move = await readMove(readSetting)
    if (!move) throw new Error('there is no move')
    return move
  }

  return {
    async begin(to) {
      beginning = beginning.catch(() => undefined).then(() => begin(findPlace(deps.buckets, to)))
      await beginning
    },
    async status() {
      const target = places.target()
      if (!target) return describeFinished(places.current().name, await readFinishedMove(readSetting))
      const { fromName: from, toName: to } = directionOf(await getMove())
      const names = [...damaged]
      return {
        ...{ state: 'moving', from, to, ...progress, unusedFromS: 0 },
        ...{ damaged: names.slice(0, MAX_NAMED), damagedCount: names.length },
      }
    },
    async resume() {
      if (places.target()) running = run()
    },
    async stop() {
      await beginning.catch(() => undefined)
      await running
    },
  }
}

function describeFinished(here: string, last: FinishedMove | undefined): MoveStatus {
  const none = { files: 0, movedBytes: 0, totalBytes: 0, waitsFor: '' }
  if (!last) return { ...none, state: 'none', to: here, from: '', damaged: [], damagedCount: 0, unusedFromS: 0 }
  const { fromName: from, toName: to, from: fromId, endedAtS, files, damaged, damagedCount } = last
  const unusedFromS = endedAtS + (fromId === '' ? 0 : ADDRESSES_USED_S)
  return { ...none, state: 'done', from, to, files, damaged, damagedCount, unusedFromS }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
