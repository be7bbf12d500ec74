import { randomBytes } from 'node:crypto'
import { recordAuditEvent } from '../audit/audit-log.ts'
import { parseBucketUrl } from '../config/bucket.ts'
import type { Config } from '../config/config.ts'
import type { Database, Db } from '../db/database.ts'
import { findSetting, saveSetting } from '../db/setting.ts'
import { Failure, StorageUnavailable } from '../errors.ts'
import { hasLivingServer } from '../servers/server-store.ts'
import { type Bucket, openBucket } from '../storage/s3/bucket.ts'
import { putMarker, readMarker } from '../storage/s3/s3-store.ts'
import { BUCKET_ID, describeBucket } from './bucket.ts'
import { findMovedBlobs, listMovedBlobs } from './moved-blob-store.ts'

// Which place has this installation’s files. A bucket and the database have the same id, the bucket in its marker, the database in a
// setting; without the setting the files are in the data folder. So a bucket that is configured and not used yet, or not any more,
// changes nothing, and a start with either address of a move continues it.

/** Of a move that is not finished. */
const MOVE = 'storage-move'
/** Of the last move that was finished. */
const MOVED = 'storage-moved'

/** Ids are empty for the data folder. */
export type StoredMove = {
  from: string
  to: string
  fromName: string
  toName: string
  beganAtS: number
  /** Files go back to where they were. */
  isTurnedRound?: boolean
}

/**
 * `damaged`: the first names of files that were not copied, since the old place did not have them as they were published. `left`: the ids
 * of all places that were left so far.
 */
export type FinishedMove = StoredMove & {
  endedAtS: number
  files: number
  damaged: string[]
  damagedCount: number
  left: string[]
}

/** `id`: of the marker below its prefix; undefined: there is none. */
type FoundBucket = { bucket: Bucket; id: string | undefined; error?: unknown }

/** Where files are, and during a move where they go. `bucket` undefined: the data folder. */
export type LocatedFiles = {
  at: { id: string; bucket: Bucket | undefined }
  to: { id: string; bucket: Bucket | undefined } | undefined
  /** Of a move, whether they go back. */
  isTurnedRound: boolean
  /** Of those in the configuration, also when nothing uses them. */
  buckets: readonly Bucket[]
}

export type ReadSetting = (name: string) => Promise<string | undefined>
type Buckets = Pick<Config, 'bucket' | 'otherBucket'>

/**
 * Whether several servers may use this installation: none of its files is in the data folder of one, and none moves, which one server does.
 * @param hasVideos whether there may be files
 */
export async function mayHaveSeveralServers(readSetting: ReadSetting, hasVideos: boolean): Promise<boolean> {
  if (await readMove(readSetting)) return false
  return (await readSetting(BUCKET_ID)) !== undefined || !hasVideos
}

/** Which buckets of the configuration have this installation’s files. @throws Failure when the files are elsewhere */
export async function locateFiles(readSetting: ReadSetting, { bucket, otherBucket }: Buckets): Promise<LocatedFiles> {
  const own = (await readSetting(BUCKET_ID)) ?? ''
  const move = await readMove(readSetting)
  const buckets = [bucket, otherBucket].flatMap((address) => (address ? [openBucket(address)] : []))
  const found =
    own === '' && !move ? buckets.map((bucket) => ({ bucket, id: undefined })) : await Promise.all(buckets.map(readId))
  const at = { id: own, bucket: own === '' ? undefined : await findBucket(found, own, readSetting) }
  if (!move) return { at, to: undefined, isTurnedRound: false, buckets }
  const to = { id: move.to, bucket: move.to === '' ? undefined : findTarget(found, move) }
  return { at, to, isTurnedRound: move.isTurnedRound === true, buckets }
}

async function readId(bucket: Bucket): Promise<FoundBucket> {
  try {
    return { bucket, id: await readMarker(bucket) }
  } catch (error) {
    return { bucket, id: undefined, error }
  }
}

async function findBucket(found: readonly FoundBucket[], own: string, readSetting: ReadSetting): Promise<Bucket> {
  const its = found.find(({ id }) => id === own)
  if (its) return its.bucket
  const [first] = found
  if (!first) throw new Failure('unavailable', 'The files of this installation are in a bucket. Set REELGATE_STORAGE_URL to it.')
  const last = await readFinishedMove(readSetting)
  const away = findAway(found, own, (await readMove(readSetting))?.fromName ?? last?.toName)
  if (away) return away
  if (last?.to === own && first.id !== undefined && last.left.includes(first.id))
    throw new Failure(
      'unavailable',
      `The files of this installation were moved to ${last.toName}. Set REELGATE_STORAGE_URL to it.`,
    )
  if (first.id !== undefined) throw belongsToOthers(first.bucket)
  throw new Failure('unavailable', notBelow(first.bucket))
}

/**
 * While a bucket does not answer, the one with a name is held, or any where that is not known: viewers go on, and a check compares its id
 * later.
 */
function findAway(found: readonly FoundBucket[], id: string, name: string | undefined): Bucket | undefined {
  const away = found.filter(({ error }) => error !== undefined)
  const its = away.find(({ bucket }) => describeBucket(bucket.address) === name) ?? away[0]
  if (!its) return undefined
  if (!(its.error instanceof StorageUnavailable)) throw its.error
  its.bucket.holdUntil(async (unheld) => {
    if ((await readMarker(unheld)) !== id) throw new StorageUnavailable(notBelow(its.bucket))
  }, its.error)
  return its.bucket
}

function notBelow({ address }: Bucket): string {
  return `The files of this installation are not below ${describeBucket(address)}. Set REELGATE_STORAGE_URL to the bucket and prefix where they are.`
}

function findTarget(found: readonly FoundBucket[], move: StoredMove): Bucket {
  const target = found.find(({ id }) => id === move.to)
  const bucket = target?.bucket ?? findAway(found, move.to, move.toName)
  if (bucket) return bucket
  throw new Failure('unavailable', `${describeMove(move)} Set REELGATE_STORAGE_URL or REELGATE_STORAGE_OTHER_URL to it.`)
}

function describeMove({ fromName, toName }: StoredMove): string {
  return `The files of this installation are being moved from ${fromName} to ${toName}, which is not in the configuration.`
}

/**
 * The same at a start, which makes an empty prefix of REELGATE_STORAGE_URL the place of a new installation’s files.
 * @throws Failure when the files are elsewhere, or the prefix belongs to another installation
 */
export async function claimFiles({ db, write }: Pick<Database, 'db' | 'write'>, config: Buckets): Promise<LocatedFiles> {
  const readSetting = (name: string) => findSetting(db, name)
  const move = await readMove(readSetting)
  if (move) await claimTarget(db, move, config)
  else if (config.bucket) await claimFirst({ db, write }, openBucket(config.bucket))
  return locateFiles(readSetting, config)
}

/** Of a server that was killed between the setting and the marker, before any file moved. */
async function claimTarget(db: Db, move: StoredMove, { bucket, otherBucket }: Buckets): Promise<void> {
  const target = [bucket, otherBucket].flatMap((address) => (address ? [openBucket(address)] : [])).find(isNamed(move.toName))
  if (!target || (await listMovedBlobs(db)).length > 0) return
  const id = await readMarker(target).catch(ignoreAway(move.to))
  if (id === undefined) await putMarker(target, move.to)
}

/** What a bucket has that does not answer is known later. */
const ignoreAway = (id: string) => (error: unknown) => {
  if (!(error instanceof StorageUnavailable)) throw error
  return id
}

const isNamed = (name: string) => (bucket: Bucket) => describeBucket(bucket.address) === name

async function claimFirst({ db, write }: Pick<Database, 'db' | 'write'>, bucket: Bucket): Promise<void> {
  const own = await findSetting(db, BUCKET_ID)
  const hasVideos = (await db.selectFrom('video').select('id').limit(1).executeTakeFirst()) !== undefined
  const id = await findMarker(bucket, own, hasVideos)
  const { left = [] } = (await readFinishedMove((name) => findSetting(db, name))) ?? {}
  if (own === undefined && id !== undefined && !left.includes(id)) throw belongsToOthers(bucket)
  if (id !== undefined || hasVideos) return
  if (own !== undefined && (await hasLivingServer(db, Date.now() / 1000))) throw new Failure('unavailable', notBelow(bucket))
  await claim(bucket, write, own ?? newId())
}

/** One that has no files, since videos have theirs elsewhere, need not answer; nor does the installation’s own. */
async function findMarker(bucket: Bucket, own: string | undefined, hasVideos: boolean): Promise<string | undefined> {
  if (own !== undefined) return hasVideos ? own : readMarker(bucket).catch(ignoreAway(own))
  return hasVideos ? readMarker(bucket).catch(() => undefined) : readMarker(bucket)
}

const newId = () => randomBytes(16).toString('hex')

/** The setting comes first: a marker without one would belong to no installation. */
async function claim(bucket: Bucket, write: Database['write'], id: string): Promise<void> {
  await write((tx) => saveSetting(tx, BUCKET_ID, id))
  await putMarker(bucket, id)
}

function belongsToOthers(bucket: Bucket): Failure {
  return new Failure(
    'unavailable',
    `The files below ${describeBucket(bucket.address)} belong to another installation. Set REELGATE_STORAGE_URL to another prefix.`,
  )
}

// --- moves ---

/** How commands name the data folder, where others name the address of a bucket. */
export const DATA_FOLDER = 'folder'

/**
 * The bucket of the configuration that a command names; undefined: the data folder.
 * @throws Failure when the server could not reach it after its next start
 */
export function findPlace(buckets: readonly Bucket[], named: string): Bucket | undefined {
  if (named === DATA_FOLDER) return undefined
  const wanted = parseBucketUrl(named)
  if (!wanted)
    throw new Failure(
      'invalid',
      'Expected --storage folder, or s3://BUCKET/PREFIX?endpoint=https://HOST as in REELGATE_STORAGE_URL.',
    )
  const found = buckets.find(
    ({ address: { bucket, prefix, endpoint } }) =>
      bucket === wanted.bucket && prefix === wanted.prefix && (!named.includes('endpoint=') || endpoint === wanted.endpoint),
  )
  if (found) return found
  throw new Failure(
    'invalid',
    `The server has no keys for s3://${wanted.bucket}/${wanted.prefix}. Set REELGATE_STORAGE_URL to it, or REELGATE_STORAGE_OTHER_URL where the files are in another bucket, restart the server, and run the same command again.`,
  )
}

/** The move that is not finished, if there is one. */
export async function readMove(readSetting: ReadSetting): Promise<StoredMove | undefined> {
  const saved = await readSetting(MOVE)
  return saved ? JSON.parse(saved) : undefined
}

export async function readFinishedMove(readSetting: ReadSetting): Promise<FinishedMove | undefined> {
  const saved = await readSetting(MOVED)
  return saved ? JSON.parse(saved) : undefined
}

/**
 * Records a move before its first file. Its setting comes before the marker, as that of a first start.
 * @returns the id of the target
 * @throws Failure when the prefix of a bucket is in use
 */
export async function recordMove(write: Database['write'], move: Omit<StoredMove, 'to'>, bucket: Bucket | undefined) {
  if (bucket && (await readMarker(bucket)) !== undefined)
    throw new Failure(
      'conflict',
      `There are files below ${describeBucket(bucket.address)} already, of another installation or of an earlier move. Remove all objects below that prefix, or name another one.`,
    )
  const to = bucket ? newId() : ''
  const { beganAtS: atS, toName } = move
  const event = { atS, accountId: undefined, by: 'command-line', kind: 'storage:move-began', subjects: [toName] } as const
  await write(async (tx) => {
    await saveSetting(tx, MOVE, JSON.stringify({ ...move, to } satisfies StoredMove))
    await recordAuditEvent(tx, event)
  })
  if (bucket) await putMarker(bucket, to)
  return to
}

/** From now on the files of a move that is not finished go back. */
export async function recordTurn(write: Database['write'], move: StoredMove, atS: number): Promise<void> {
  const event = { atS, accountId: undefined, by: 'command-line', kind: 'storage:move-began', subjects: [move.fromName] } as const
  await write(async (tx) => {
    await saveSetting(tx, MOVE, JSON.stringify({ ...move, isTurnedRound: true } satisfies StoredMove))
    await recordAuditEvent(tx, event)
  })
}

/** A move as it goes, whichever way. */
export function directionOf(move: StoredMove): Pick<StoredMove, 'from' | 'to' | 'fromName' | 'toName'> {
  const { from, to, fromName, toName } = move
  return move.isTurnedRound ? { from: to, to: from, fromName: toName, toName: fromName } : { from, to, fromName, toName }
}

/** From now on all files are in the new place. */
export async function recordMoved(write: Database['write'], finished: FinishedMove): Promise<void> {
  await write(async (tx) => {
    await saveSetting(tx, MOVED, JSON.stringify(finished))
    await tx.deleteFrom('setting').where('name', '=', MOVE).execute()
    if (finished.to === '') await tx.deleteFrom('setting').where('name', '=', BUCKET_ID).execute()
    else await saveSetting(tx, BUCKET_ID, finished.to)
  })
}

/** Which of these blobs are in the new place of a move. */
export async function findMoved(db: Db, names: readonly string[]): Promise<string[]> {
  return [...(await findMovedBlobs(db, names))]
}

/** In rows that are restored: their files are where they are restored to. */
export async function forgetPlaces(tx: Db): Promise<void> {
  await tx.deleteFrom('setting').where('name', 'in', [BUCKET_ID, MOVE, MOVED]).execute()
  await tx.deleteFrom('movedBlob').execute()
}

/** Changes when a move begins or ends: what a command has read of files since counts no more. */
export async function placesVersion(readSetting: ReadSetting): Promise<string> {
  return JSON.stringify([await readSetting(BUCKET_ID), await readSetting(MOVE)])
}
