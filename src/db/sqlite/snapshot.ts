import SqliteDatabase from 'better-sqlite3'
import type { MediaFolder } from '../../config/data-paths.ts'
import { syncInPlace } from '../../storage/sync.ts'

// All rows of an installation as of one moment, in a file of their own: the rows of a backup.

const BUSY_TIMEOUT_MS = 5_000

/** Writes all rows as of now to a new file, durably. A server may use the database meanwhile. */
export function writeSqliteSnapshot(path: string, target: string): void {
  const connection = new SqliteDatabase(path, { readonly: true, timeout: BUSY_TIMEOUT_MS })
  try {
    connection.prepare('vacuum into ?').run(target)
  } finally {
    connection.close()
  }
  makeSingleFile(target)
}

/** Leaves the write-ahead mode, so that the snapshot is one file, and reading it makes no others. */
export function makeSingleFile(path: string): void {
  const connection = new SqliteDatabase(path)
  try {
    connection.pragma('journal_mode = DELETE')
  } finally {
    connection.close()
  }
  syncInPlace(path)
}

/** A file that a row names, with what its row says of it. */
export type NamedFile = {
  folder: MediaFolder
  name: string
  /** Of the file as its owner sees it; a sealed file is a little longer. */
  sizeBytes: number
  videoId: string
  generation: number | null
  /** Of a segment: the SHA-256 of the published file, and its place. Null of all others. */
  sha256: Buffer | null
  renditionId: number | null
  number: number | null
  /** What opens a sealed file: its own key, or that of its generation. */
  wrappedKey: Buffer | null
  wrappedContentKey: Buffer | null
  iv: Buffer | null
  macs: Buffer | null
}

export type Snapshot = Disposable & {
  setting(name: string): string | undefined
  /** Which of these blobs are in the new place of a move that is not finished. */
  findMoved(names: readonly string[]): ReadonlySet<string>
  /** The names of the migrations that made its tables, in order. */
  migrations(): string[]
  /** The id of the oldest account, which says which installation it is; undefined before the first start. */
  oldestAccountId(): string | undefined
  videoCount(): number
  /** The sum of the sizes of `files`. */
  mediaSizeBytes(): number
  files(): Iterable<NamedFile>
}

const FILES = `(select 'segments' as folder, file as name, size_bytes, video_id, generation, sha256, rendition_id, number,
    null as wrapped_key, null as iv, null as macs from segment
  union all select 'sources', file, size_bytes, video_id, null, null, null, null, wrapped_key, iv, macs from source
  union all select case when type in ('poster', 'storyboard', 'poster-candidate') then 'posters' else 'files' end, blob, size_bytes, video_id, generation, null, null, null,
    wrapped_key, iv, macs from file where blob is not null) named
  join video on video.id = named.video_id
  left join generation on generation.video_id = named.video_id and generation.number = named.generation
  where deleted_at_s is null or named.video_id in (select video_id from trashed_video)`

const FILE_COLUMNS = `folder, name, named.size_bytes as sizeBytes, named.video_id as videoId, named.generation, sha256,
  rendition_id as renditionId, named.number, wrapped_key as wrappedKey, wrapped_content_key as wrappedContentKey, iv, macs`

export function openSnapshot(path: string): Snapshot {
  const connection = new SqliteDatabase(path, { readonly: true })
  const number = (sql: string) => connection.prepare<[], { number: number | null }>(sql).get()?.number ?? 0
  return {
    setting: (name) =>
      connection.prepare<[string], { value: string }>('select value from setting where name = ?').get(name)?.value,
    migrations: () =>
      connection
        .prepare<[], { name: string }>('select name from kysely_migration order by name')
        .all()
        .map(({ name }) => name),
    oldestAccountId: () =>
      connection.prepare<[], { id: string }>('select id from account order by created_at_s, id limit 1').get()?.id,
    videoCount: () => number('select count(*) as number from video where deleted_at_s is null'),
    mediaSizeBytes: () => number(`select sum(named.size_bytes) as number from ${FILES}`),
    findMoved(names) {
      const find = connection.prepare<[string], { name: string }>('select name from moved_blob where name = ?')
      return new Set(names.filter((name) => find.get(name)))
    },
    files: () => connection.prepare<[], NamedFile>(`select ${FILE_COLUMNS} from ${FILES}`).iterate(),
    [Symbol.dispose]: () => void connection.close(),
  }
}

/** A file of a backup, with the checksum by which a restore verifies it. */
export type ListedFile = {
  folder: MediaFolder
  name: string
  sizeBytes: number
  sha256: Buffer
  /** When the file in the backup was last read and found intact; 0 in lists of versions that did not record it. */
  verifiedAtMs: number
}

export type FileList = Disposable & {
  find(folder: MediaFolder, name: string): Omit<ListedFile, 'folder' | 'name'> | undefined
  total(): { count: number; sizeBytes: number }
  files(): Iterable<ListedFile>
}

/** The list of a backup's files, in a file of its own: of any length in constant memory. */
export function openFileList(path: string): FileList {
  const connection = new SqliteDatabase(path, { readonly: true })
  const hasTime = connection.prepare("select 1 from pragma_table_info('file') where name = 'verified_at_ms'").get() !== undefined
  const columns = `select folder, name, size_bytes as sizeBytes, sha256, ${hasTime ? 'verified_at_ms' : '0'} as verifiedAtMs from file`
  const find = connection.prepare<[string, string], ListedFile>(`${columns} where folder = ? and name = ?`)
  return {
    find: (folder, name) => find.get(folder, name),
    total: () =>
      connection
        .prepare<[], { count: number; sizeBytes: number }>(
          'select count(*) as count, coalesce(sum(size_bytes), 0) as sizeBytes from file',
        )
        .get() ?? { count: 0, sizeBytes: 0 },
    files: () => connection.prepare<[], ListedFile>(columns).iterate(),
    [Symbol.dispose]: () => void connection.close(),
  }
}

export type NewFileList = Disposable & {
  add(file: ListedFile): void
  /** Makes it durable. */
  finish(): void
}

export function createFileList(path: string): NewFileList {
  const connection = new SqliteDatabase(path)
  // Before `finish` it is worth nothing: a backup that was interrupted writes another one.
  connection.pragma('journal_mode = OFF')
  connection.pragma('synchronous = OFF')
  connection.exec(`create table file (folder text not null, name text not null, size_bytes integer not null, sha256 blob not null,
    verified_at_ms integer not null, primary key (folder, name)) without rowid, strict`)
  connection.exec('begin')
  const insert = connection.prepare<[string, string, number, Buffer, number]>('insert into file values (?, ?, ?, ?, ?)')
  return {
    add: ({ folder, name, sizeBytes, sha256, verifiedAtMs }) => void insert.run(folder, name, sizeBytes, sha256, verifiedAtMs),
    finish() {
      connection.exec('commit')
      connection.close()
      syncInPlace(path)
    },
    [Symbol.dispose]: () => void connection.close(),
  }
}
