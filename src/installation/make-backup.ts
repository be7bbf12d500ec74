import { existsSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import type { Config } from '../config/config.ts'
import { dataPaths } from '../config/data-paths.ts'
import type { MasterKey } from '../crypto/master-key.ts'
import {
  createFileList,
  type FileList,
  type NamedFile,
  openFileList,
  openSnapshot,
  type Snapshot,
} from '../db/sqlite/snapshot.ts'
import type { SegmentKey } from '../encode/damage-store.ts'
import { Failure } from '../errors.ts'
import type { Bucket } from '../storage/s3/bucket.ts'
import { type AddedMedia, type AddMedia, addMedia } from './backup/add-media.ts'
import { type BackupName, type Manifest, type UnusableBackup, unfinishedPaths } from './backup/backup-folder.ts'
import { type BackupPlace, openBackupPlace } from './backup/backup-place.ts'
import { describeBackup, writeSnapshot } from './backup/backup-rows.ts'
import { explainEnd } from './backup/explain-end.ts'
import { BUCKET_ID, describeBucket } from './bucket.ts'
import { findMasterKey, idOf } from './master-key.ts'
import { MASTER_KEY_ID } from './master-key-id.ts'
import { findStoredFiles } from './open.ts'
import type { Places } from './places.ts'

type BackupListener = {
  /** @param part 0 to 1 */
  progress(step: 'rows' | 'media', part: number): void
  /**
   * Has damaged segments encoded again, where a server runs, and waits for it. Resolves when none of them will be repaired any more.
   */
  repair?(segments: readonly SegmentKey[]): Promise<void>
  signal: AbortSignal
}

export type BackupOptions = {
  /** A folder, or the address of a bucket. */
  folder: string
  /** Copies files that are in a bucket; those of a data folder always are. */
  media?: boolean
  /** How many backups the folder keeps, this one included. */
  keep: number
  /** Reads every file again, not only those that are due. */
  verifyAll?: boolean
}

export type MadeBackup = BackupName & {
  /** Whether sealed files were compared with what was sealed, for which the master key is needed. */
  hasVerified: boolean
  /** Backups of the folder that cannot be used, and why. */
  unusable: readonly UnusableBackup[]
  /** What this backup added to its folder; a hard link takes no space. */
  copiedBytes: number
  linkedBytes: number
}

/** A file that is deleted between the snapshot and its copy needs another snapshot; by then all other files are there. */
const MAX_SNAPSHOTS = 20

/**
 * Adds a backup of an installation to a folder or a bucket; a server may be running. First the rows as of one moment, then the files that
 * they name. An interrupted backup leaves the earlier ones as they are, and the next one continues with the files that it copied.
 * @throws Failure with what to do
 */
export async function makeBackup(config: Config, options: BackupOptions, listener: BackupListener): Promise<MadeBackup> {
  const place = openBackupPlace(config, options.folder)
  if (config.databaseUrl === undefined && !existsSync(dataPaths(config.dataDir).database))
    throw new Failure('not-found', `There is no installation in ${config.dataDir}. Set REELGATE_DATA to its data folder.`)
  const lock = await place.open()
  const add = async () => {
    const made = await addBackup(config, place, options, listener)
    await place.removeOld(options.keep)
    return made
  }
  return explainEnd(
    add,
    listener.signal,
    `The disk of ${place.work} is full, so the backup is not finished; earlier ones are as they were. Free some space there, then run the same command again: it continues.`,
    'Interrupted: earlier backups are as they were. The same command continues with what was copied.',
  ).finally(lock.release)
}

async function addBackup(
  config: Config,
  place: BackupPlace,
  { media = false, verifyAll = false }: BackupOptions,
  listener: BackupListener,
): Promise<MadeBackup> {
  const unfinished = unfinishedPaths(place.work)
  const { backups, unusable } = await place.list()
  const known: FileList[] = []
  for (const { name } of backups.slice(0, 1))
    known.push(openFileList(await place.fetch(name, 'list', `${unfinished.media}/last`)))
  const total = { copiedBytes: 0, linkedBytes: 0 }
  const nowMs = Date.now()
  let missingBefore: ReadonlySet<string> = new Set()
  try {
    for (let attempt = 1; attempt <= MAX_SNAPSHOTS; attempt++) {
      const time = new Date()
      listener.progress('rows', 0)
      await rm(unfinished.rows, { force: true })
      await writeSnapshot(config, unfinished.rows)
      listener.signal.throwIfAborted()
      using snapshot = openSnapshot(unfinished.rows)
      assertSameInstallation(backups, place.name, snapshot)
      assertOneMasterKey(snapshot)
      const masterKey = findKeyOf(snapshot, config)
      const places = await findStoredFiles(config, {
        readSetting: async (name) => snapshot.setting(name),
        findMoved: async (names) => snapshot.findMoved(names),
      })
      const bucket = media ? undefined : findBucketToList(places)
      const added = await addFiles(place, snapshot, {
        places,
        isListed: bucket !== undefined,
        known,
        masterKey,
        nowMs,
        verifyAll,
        listener,
      })
      total.copiedBytes += added.copiedBytes
      total.linkedBytes += added.linkedBytes
      const missing = added.missing.map(({ folder, name }) => `${folder}/${name}`)
      // What is missing for the second time was not deleted in between: it is lost, and the backup has the rest.
      if (missing.every((name) => missingBefore.has(name))) {
        if (added.unavailable) throw added.unavailable
        const described = await describeBackup(config, snapshot, { time, folder: place.work, lost: missing })
        const manifest = bucket ? { ...described, ...filesIn(bucket.address, snapshot) } : described
        const name = await place.finish(manifest)
        return { name, manifest, ...total, hasVerified: masterKey !== undefined, unusable }
      }
      missingBefore = new Set(missing)
      await keepList(unfinished.list, known, attempt)
      await listener.repair?.(added.damaged.flatMap(segmentOf))
    }
  } finally {
    for (const list of known) list[Symbol.dispose]()
  }
  throw new Failure(
    'unavailable',
    'Files were deleted faster than they could be copied. Run the same command again: it continues.',
  )
}

function segmentOf({ videoId, generation, renditionId, number }: NamedFile): SegmentKey[] {
  return generation === null || renditionId === null || number === null ? [] : [{ videoId, generation, renditionId, number }]
}

/** The key that the rows need. Without it a backup is made all the same: it may be in a place that only the server can read. */
function findKeyOf(snapshot: Snapshot, config: Config): MasterKey | undefined {
  const ring = findMasterKey(config)
  return ring && [ring, ...ring.older].some((key) => idOf(key) === snapshot.setting(MASTER_KEY_ID)) ? ring : undefined
}

/** Of a backup whose files stay in their bucket. */
function filesIn(bucket: Bucket['address'], snapshot: Snapshot): Pick<Manifest, 'format' | 'filesIn'> {
  return { format: 2, filesIn: { bucket: describeBucket(bucket), id: snapshot.setting(BUCKET_ID) ?? '' } }
}

function assertSameInstallation([last]: readonly BackupName[], folder: string, snapshot: Snapshot): void {
  if (last === undefined || last.manifest.installation === snapshot.oldestAccountId()) return
  throw new Failure('conflict', `${folder} has backups of another installation. Name another folder.`)
}

/** During a rotation the rows need two keys; a backup is to open with one. */
function assertOneMasterKey(snapshot: Snapshot): void {
  if (!snapshot.setting(MASTER_KEY_ID)?.includes(' ')) return
  throw new Failure(
    'unavailable',
    'The master key is being rotated, which takes some seconds. Make the backup when that is finished: reelgate doctor says so.',
  )
}

/** The bucket in which files stay, and are listed alone; undefined: they are copied. @throws Failure while they leave it */
function findBucketToList(places: Places): Bucket | undefined {
  const { bucket } = places.current()
  if (bucket && places.target())
    throw new Failure(
      'unavailable',
      'Files are being moved out of their bucket: a backup without them would not say where each one is. Add --media, which copies them, or wait for the end of the move.',
    )
  return bucket
}

async function addFiles(
  place: BackupPlace,
  snapshot: Snapshot,
  {
    listener,
    places,
    isListed,
    ...options
  }: Pick<AddMedia, 'known' | 'masterKey' | 'nowMs' | 'verifyAll'> & {
    places: Places
    isListed: boolean
    listener: BackupListener
  },
): Promise<AddedMedia> {
  const totalBytes = Math.max(1, snapshot.mediaSizeBytes())
  const unfinished = unfinishedPaths(place.work)
  using list = createFileList(unfinished.list)
  const added = await addMedia(snapshot, list, {
    from: places.files,
    to: isListed ? undefined : place.files,
    scratch: unfinished.media,
    ...options,
    signal: listener.signal,
    progress: (sizeBytes) => listener.progress('media', Math.min(1, sizeBytes / totalBytes)),
  })
  list.finish()
  return added
}

/** What the last attempt has read is not read again by the next one. */
async function keepList(path: string, known: FileList[], attempt: number): Promise<void> {
  const kept = `${path}.${attempt}`
  await rename(path, kept)
  known.unshift(openFileList(kept))
  await rm(kept) // it stays readable until it is closed
}
