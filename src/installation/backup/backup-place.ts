import { mkdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Value } from 'typebox/value'
import { parseBucketUrl } from '../../config/bucket.ts'
import type { Config } from '../../config/config.ts'
import { dataPaths, MEDIA_FOLDERS, ofMediaFolders } from '../../config/data-paths.ts'
import { type FileList, openFileList } from '../../db/sqlite/snapshot.ts'
import { Failure } from '../../errors.ts'
import { copyBlob } from '../../storage/copy.ts'
import { bulkFolder } from '../../storage/folder.ts'
import type { FolderLock } from '../../storage/folder-lock.ts'
import { type Bucket, openBucket } from '../../storage/s3/bucket.ts'
import { openLocalCache } from '../../storage/s3/local-cache.ts'
import { isMissing, listObjects, readBody, removeObjects } from '../../storage/s3/objects.ts'
import { blobsInBucket, partBytesFor, putMarker, readMarker } from '../../storage/s3/s3-store.ts'
import { isSameBucket } from '../bucket.ts'
import type { Copies } from './add-media.ts'
import {
  type BackupName,
  backedUpFiles,
  finishBackup,
  listBackups,
  Manifest,
  openBackupFolder,
  removeOldBackups,
  type UnusableBackup,
  unfinishedPaths,
} from './backup-folder.ts'

/** Where backups are, in a folder or below the prefix of a bucket, with the same names in both. */
export type BackupPlace = {
  /** As sentences name it. */
  name: string
  /** The files of all of them. */
  files: Copies
  /** A folder in which the next one is written until it is finished. */
  work: string
  /** Makes the place, or opens an existing one, for one backup at a time. @throws Failure `conflict` */
  open(): Promise<FolderLock>
  list(): Promise<{ backups: BackupName[]; unusable: UnusableBackup[] }>
  /** Its rows or its list as a file of this machine, in a folder where it is not one; it may be damaged, or not there. @returns its path */
  fetch(name: string, part: 'rows' | 'list', into: string): Promise<string>
  /** Makes what is in `work` a backup, all of it or nothing. @returns its name */
  finish(manifest: Manifest): Promise<string>
  removeOld(keep: number): Promise<void>
}

/** @throws Failure `invalid` */
export function openBackupPlace(config: Config, place: string): BackupPlace {
  return place.startsWith('s3:') ? bucketPlace(config, place) : folderPlace(place)
}

function folderPlace(folder: string): BackupPlace {
  return {
    name: folder,
    files: backedUpFiles(folder),
    work: folder,
    open: async () => openBackupFolder(folder),
    list: async () => listBackups(folder),
    fetch: async (name, part) => join(folder, name, `${FILES[part]}`),
    finish: async (manifest) => (await finishBackup(folder, manifest)).name,
    removeOld: (keep) => removeOldBackups(folder, keep),
  }
}

const FILES = { rows: 'rows.db', list: 'files.db', manifest: 'manifest.json' } as const

/** What the marker of a prefix with backups says, in place of the id of an installation whose files it has. */
const BACKUPS = 'backups'

/** @throws Failure `invalid` when it is no address, has no keys, or is the bucket of the installation itself */
function bucketPlace(config: Config, url: string): BackupPlace {
  const { region, credentials } = config.backupKeys
  const address = parseBucketUrl(url, region)
  if (!address)
    throw new Failure('invalid', `${url} is no address of a bucket: s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION.`)
  if (!credentials)
    throw new Failure(
      'invalid',
      `${url} needs keys: set REELGATE_BACKUP_ACCESS_KEY_ID and REELGATE_BACKUP_SECRET_ACCESS_KEY, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.`,
    )
  if ([config.bucket, config.otherBucket].some((own) => own && isSameBucket(own, address)))
    throw new Failure('invalid', `${url} is the bucket of the videos themselves, and would be lost with it. Name another bucket.`)
  const words = {
    bucket: `The bucket of the backups ${placeName(url)}`,
    address: 'this command',
    keys: 'REELGATE_BACKUP_ACCESS_KEY_ID, REELGATE_BACKUP_SECRET_ACCESS_KEY, or without them those in AWS_…,',
  }
  const bucket = openBucket({ ...address, credentials }, { words })
  const paths = dataPaths(config.dataDir)
  const cache = openLocalCache(paths.tmp, 0) // of no use: nothing here needs a local copy
  const blobsIn = (folder: string) => blobsInBucket(bucket, { folder, partBytes: partBytesFor(config.uploadMaxBytes), cache })
  const work = paths.backupToBucket

  async function fetch(name: string, part: 'rows' | 'list', into: string): Promise<string> {
    mkdirSync(into, { recursive: true, mode: 0o700 })
    await copyBlob(blobsIn(name), bulkFolder(into, into), FILES[part])
    return join(into, FILES[part])
  }

  async function list() {
    const found: { backups: BackupName[]; unusable: UnusableBackup[] } = { backups: [], unusable: [] }
    for (const name of (await listNames(bucket)).sort().reverse()) {
      const manifest = await readManifest(bucket, name)
      if (Value.Check(Manifest, manifest)) found.backups.push({ name, manifest })
      else if (manifest !== undefined)
        found.unusable.push({
          name,
          why: `${name} at ${placeName(url)} is damaged, or was written by a newer version of Reelgate. Use that version, or remove this one backup.`,
        })
    }
    return found
  }

  return {
    name: placeName(url),
    files: ofMediaFolders((kind) => blobsIn(`media/${kind}`)),
    work,
    async open() {
      await claimForBackups(bucket, url)
      const lock = openBackupFolder(work)
      for (const { name } of listBackups(work).backups) await rm(join(work, name), { recursive: true }) // of a run that was killed
      return lock
    },
    list,
    fetch,
    async finish(manifest) {
      const { name } = await finishBackup(work, manifest)
      const [from, to] = [bulkFolder(join(work, name), work), blobsIn(name)]
      for (const file of [FILES.rows, FILES.list, FILES.manifest])
        if (!(await copyBlob(from, to, file))) throw new Error(`${file} of a new backup cannot be read`)
      await rm(join(work, name), { recursive: true })
      return name
    },
    removeOld: async (keep) => removeOld(bucket, { ...(await list()), keep, into: unfinishedPaths(work).root, fetch }),
  }
}

/** Without its endpoint. */
const placeName = (url: string) => url.split('?', 1)[0] ?? url

/** @throws Failure `conflict` when there is anything else below the prefix */
async function claimForBackups(bucket: Bucket, url: string): Promise<void> {
  const marker = await readMarker(bucket)
  if (marker === BACKUPS) return
  const [first] = await Array.fromAsync(firstOf(listObjects(bucket, bucket.address.prefix)))
  if (first === undefined) return putMarker(bucket, BACKUPS)
  throw new Failure(
    'conflict',
    `${placeName(url)} has something else in it: ${first.key}. Name an empty prefix, or one of earlier backups.`,
  )
}

async function* firstOf<T>(items: AsyncIterable<T>): AsyncGenerator<T> {
  for await (const item of items) return yield item
}

/** Names begin with a year; nothing else below the prefix does. */
async function listNames(bucket: Bucket): Promise<string[]> {
  const { prefix } = bucket.address
  const names = new Set<string>()
  for await (const { key } of listObjects(bucket, `${prefix}2`)) names.add(key.slice(prefix.length).split('/', 1)[0] ?? '')
  return [...names]
}

/** Undefined: there is none, because the backup was not finished, or is being removed. */
async function readManifest(bucket: Bucket, name: string): Promise<unknown> {
  const key = `${bucket.address.prefix}${name}/${FILES.manifest}`
  const text = await bucket.ask({ method: 'GET', key }, readBody).catch((error: unknown) => {
    if (!isMissing(error)) throw error
  })
  if (text === undefined) return undefined
  try {
    return JSON.parse(text.toString())
  } catch {
    return { isDamaged: true }
  }
}

type RemoveOld = Awaited<ReturnType<BackupPlace['list']>> & Pick<BackupPlace, 'fetch'> & { keep: number; into: string }

/** As `removeOldBackups`: first the backups, each with its manifest first, and then the files that no other one names. */
async function removeOld(bucket: Bucket, { backups, unusable, keep, into, fetch }: RemoveOld): Promise<void> {
  const { prefix } = bucket.address
  const kept = [...backups.slice(0, keep), ...unusable]
  for (const name of await listNames(bucket))
    if (!kept.some((other) => other.name === name))
      for (const file of [FILES.manifest, FILES.rows, FILES.list])
        await bucket.send({ method: 'DELETE', key: `${prefix}${name}/${file}` })
  const lists: FileList[] = []
  try {
    for (const { name, ...backup } of kept) {
      if ('manifest' in backup && backup.manifest.filesIn) continue
      const list = tryToOpen(await fetch(name, 'list', join(into, name)))
      if (!list) return
      lists.push(list)
    }
    for (const kind of MEDIA_FOLDERS) {
      const root = `${prefix}media/${kind}/`
      let unnamed: string[] = []
      for await (const { key } of listObjects(bucket, root)) {
        if (!lists.some((list) => list.find(kind, key.slice(root.length)))) unnamed.push(key)
        if (unnamed.length < 1000) continue
        await removeObjects(bucket, unnamed)
        unnamed = []
      }
      await removeObjects(bucket, unnamed)
    }
  } finally {
    for (const list of lists) list[Symbol.dispose]()
    await rm(into, { recursive: true, force: true })
  }
}

function tryToOpen(path: string): FileList | undefined {
  try {
    return openFileList(path)
  } catch {
    return undefined
  }
}
