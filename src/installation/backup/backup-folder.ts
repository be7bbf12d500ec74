import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { MEDIA_FOLDERS, type MediaFolder, ofMediaFolders } from '../../config/data-paths.ts'
import { type FileList, openFileList } from '../../db/sqlite/snapshot.ts'
import { Failure } from '../../errors.ts'
import { type BulkFolder, bulkFolder } from '../../storage/folder.ts'
import { type FolderLock, takeFolderLock } from '../../storage/folder-lock.ts'
import { syncInPlace, syncNames } from '../../storage/sync.ts'

// A folder of backups: one folder for each of them, named after its time, with its rows and the list of its files; and `media`, which
// has the files of all of them once.

const Part = Type.Object({ sizeBytes: Type.Integer(), sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }) })

/** What a backup is and what it needs, in the file manifest.json. */
export const Manifest = Type.Object({
  /** 2: the files of videos are not in the backup. */
  format: Type.Union([Type.Literal(1), Type.Literal(2)]),
  /** The version of Reelgate that made it. */
  version: Type.String(),
  /** The time of its rows, ISO 8601. */
  time: Type.String(),
  /** The id of the installation's oldest account. */
  installation: Type.String(),
  database: Type.Union([Type.Literal('sqlite'), Type.Literal('postgres')]),
  /** The id of the master key that opens it, in hexadecimal digits. The key itself is never in a backup. */
  masterKey: Type.String(),
  migrations: Type.Array(Type.String()),
  videos: Type.Integer(),
  /** rows.db */
  rows: Part,
  /** files.db: the name, size and SHA-256 of each file. */
  list: Part,
  files: Type.Object({ count: Type.Integer(), sizeBytes: Type.Integer() }),
  /** The first of the files that rows name and that were missing or damaged in the installation itself. */
  lost: Type.Array(Type.String()),
  lostCount: Type.Integer(),
  /** Of format 2: the bucket with the files, as sentences name it, and the id in its marker. */
  filesIn: Type.Optional(Type.Object({ bucket: Type.String(), id: Type.String() })),
})
export type Manifest = Static<typeof Manifest>

export type BackupName = { name: string; manifest: Manifest }

/** A finished backup, and the files of this machine with its rows and its list. */
export type Backup = BackupName & { rowsFile: string; listFile: string }

const MANIFEST = 'manifest.json'
const ROWS = 'rows.db'
const LIST = 'files.db'
const MEDIA = 'media'
const UNFINISHED = 'unfinished'
const LOCK = 'lock.db'
/** The time of a backup, without colons, which some file systems reject. */
const NAME = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z$/

const backupName = (time: string) => time.replaceAll(':', '-')

/** The files of all backups. */
export function backedUpFiles(folder: string): Readonly<Record<MediaFolder, BulkFolder>> {
  return ofMediaFolders((kind) => bulkFolder(join(folder, MEDIA, kind), join(folder, UNFINISHED, MEDIA)))
}

/** Where a backup is written until it is finished. */
export function unfinishedPaths(folder: string) {
  const root = join(folder, UNFINISHED)
  return { root, media: join(root, MEDIA), rows: join(root, ROWS), list: join(root, LIST), manifest: join(root, MANIFEST) }
}

/**
 * Makes the folder, or opens an existing one, for one backup at a time.
 * @throws Failure `conflict` when it has anything else in it, or another backup is being made
 */
export function openBackupFolder(folder: string): FolderLock {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const foreign = readdirSync(folder).find((name) => ![MEDIA, UNFINISHED, LOCK, 'lost+found'].includes(name) && !NAME.test(name))
  if (foreign !== undefined)
    throw new Failure(
      'conflict',
      `${folder} has something else in it: ${foreign}. Name an empty folder, or one of earlier backups.`,
    )
  syncNames(folder)
  const lock = takeFolderLock(join(folder, LOCK))
  if (!lock) throw new Failure('conflict', `Another backup is being made in ${folder}. Wait until it has finished.`)
  rmSync(join(folder, UNFINISHED), { recursive: true, force: true })
  mkdirSync(join(folder, UNFINISHED, MEDIA), { recursive: true, mode: 0o700 })
  return lock
}

/** A backup that cannot be restored: its manifest is missing or damaged, or was written by a newer version. */
export type UnusableBackup = { name: string; why: string }

/** The finished backups of a folder, newest first, and those that cannot be used. */
export function listBackups(folder: string): { backups: Backup[]; unusable: UnusableBackup[] } {
  const found: { backups: Backup[]; unusable: UnusableBackup[] } = { backups: [], unusable: [] }
  if (!existsSync(folder)) return found
  const names = readdirSync(folder).filter((name) => NAME.test(name))
  for (const name of names.sort().reverse()) {
    const [path, rowsFile, listFile] = [join(folder, name, MANIFEST), join(folder, name, ROWS), join(folder, name, LIST)]
    const manifest = parseJson(path)
    if (Value.Check(Manifest, manifest)) found.backups.push({ name, manifest, rowsFile, listFile })
    else
      found.unusable.push({
        name,
        why: `${path} is damaged, or was written by a newer version of Reelgate. Use that version, or remove this one backup.`,
      })
  }
  return found
}

function parseJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return undefined
  }
}

/** Turns the unfinished backup into a finished one, all at once. */
export async function finishBackup(folder: string, manifest: Manifest): Promise<Backup> {
  const unfinished = unfinishedPaths(folder)
  const name = backupName(manifest.time)
  await rm(join(unfinished.root, MEDIA), { recursive: true })
  await writeFile(unfinished.manifest, `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600, flush: true })
  syncInPlace(unfinished.root)
  await rename(unfinished.root, join(folder, name))
  syncInPlace(folder)
  return { name, manifest, rowsFile: join(folder, name, ROWS), listFile: join(folder, name, LIST) }
}

/**
 * Removes all but the newest backups, and then the files that none of those names. A backup that cannot be used stays with its files,
 * because a newer version may need them; if its list cannot be read, no files are removed.
 */
export async function removeOldBackups(folder: string, keep: number): Promise<void> {
  const { backups, unusable } = listBackups(folder)
  for (const { name } of backups.slice(keep)) await rm(join(folder, name), { recursive: true })
  syncInPlace(folder) // before their files are removed: a backup is whole or not there
  const kept: FileList[] = []
  try {
    const withFiles = backups.slice(0, keep).filter(({ manifest }) => !manifest.filesIn)
    for (const { name } of [...withFiles, ...unusable]) {
      const list = tryToOpenList(join(folder, name, LIST))
      if (!list) return
      kept.push(list)
    }
    const files = backedUpFiles(folder)
    for (const kind of MEDIA_FOLDERS)
      for await (const name of files[kind].list('', ''))
        if (!kept.some((list) => list.find(kind, name))) await files[kind].remove(name)
  } finally {
    for (const list of kept) list[Symbol.dispose]()
  }
}

function tryToOpenList(path: string): FileList | undefined {
  try {
    return openFileList(path)
  } catch {
    return undefined
  }
}
