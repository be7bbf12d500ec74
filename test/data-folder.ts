import { createDecipheriv } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { VideoFolders } from '../src/catalogue/deletion.ts'
import { MEDIA_FOLDERS, type MediaFolder } from '../src/config/data-paths.ts'
import { unwrapContentKey } from '../src/crypto/content-key.ts'
import { type MasterKey, readMasterKeyFile, unwrap } from '../src/crypto/master-key.ts'
import { createFileHash, type Seal } from '../src/crypto/sealed-file.ts'
import { storedFiles } from '../src/installation/open.ts'
import type { BlobStore } from '../src/storage/blob-store.ts'
import { CLOCK_PROBE } from '../src/storage/folder.ts'
import type { BucketAddress } from '../src/storage/s3/bucket.ts'
import { changeRows, readRows, type Stored } from './rows.ts'

/** The clear bytes of a sealed file, opened in one piece, as no reader of ours does. */
export function openSeal(sealed: Buffer, seal: Seal): Buffer {
  const decipher = createDecipheriv('aes-128-cbc', seal.key, seal.iv)
  return Buffer.concat([decipher.update(sealed), decipher.final()])
}

/** What a test needs of a running or stopped server to look into its folder and its rows. */
export type Installed = Stored & {
  masterKeyFile: string
  /** Undefined: the files of videos are in the data folder. */
  bucket?: BucketAddress | undefined
}

const opened = new Map<string, VideoFolders>()

/** The files of its videos, wherever they are. */
export function filesOf({ dataDir, bucket }: Pick<Installed, 'dataDir' | 'bucket'>): VideoFolders {
  const limits = { cacheBytes: 2 ** 30, uploadMaxBytes: 2 ** 30, mediaAccel: undefined }
  const files = opened.get(dataDir) ?? storedFiles({ dataDir, bucket, ...limits })
  opened.set(dataDir, files)
  return files
}

/** One of them. */
export function blobOf(installed: Pick<Installed, 'dataDir' | 'bucket'>, folder: MediaFolder, name = '') {
  const store = filesOf(installed)[folder]
  return {
    name,
    read: () => store.read(name),
    write: (bytes: Buffer | string) => store.put(name, Buffer.from(bytes)),
    /** As a disk loses it: its folder stays. */
    remove: () => (installed.bucket ? store.remove(name) : rm(join(installed.dataDir, folder, name))),
    /** Whether it is there, and was not retired. */
    exists: async () => (await namesIn(store, '')).includes(name),
  }
}

/** The blobs below a folder, without those that a bucket keeps for a week although no row names them. */
async function namesIn(store: BlobStore, folder: string): Promise<string[]> {
  const retired = await Array.fromAsync(store.listRetired())
  const names = await Array.fromAsync(store.list(folder, ''))
  return names.filter((name) => !retired.some((each) => (each.isFolder ? name.startsWith(`${each.name}/`) : name === each.name)))
}

/** Whether there is anything of a folder in a folder of files of videos, such as `segments`. */
export async function hasFolder({ dataDir, bucket }: Pick<Installed, 'dataDir' | 'bucket'>, kind: MediaFolder, folder: string) {
  if (!bucket) return existsSync(join(dataDir, kind, folder))
  return (await namesIn(filesOf({ dataDir, bucket })[kind], folder)).length > 0
}

/** Everything that is below a folder of the data folder, files and folders, relative and sorted; of what is in the bucket, its files. */
export async function listFiles({ dataDir, bucket }: Installed, folder = '.'): Promise<string[]> {
  const [kind, ...below] = folder.split('/')
  const inBucket = bucket ? MEDIA_FOLDERS.filter((known) => known === kind || folder === '.') : []
  if (inBucket.length === 0) return listLocalFiles(dataDir, folder)
  const lists = inBucket.map(async (known) => {
    const names = await namesIn(filesOf({ dataDir, bucket })[known], below.join('/'))
    return names.map((name) =>
      folder === '.' ? `${known}/${name}` : name.slice(below.map((part) => `${part}/`).join('').length),
    )
  })
  return [...(await Promise.all(lists)).flat(), ...(folder === '.' ? await listLocalFiles(dataDir, folder) : [])].sort()
}

async function listLocalFiles(dataDir: string, folder: string): Promise<string[]> {
  const entries = await readdir(join(dataDir, folder), { recursive: true, withFileTypes: true })
  return entries
    .filter(({ name }) => !name.startsWith(CLOCK_PROBE)) // a sweep reads the clock at any moment
    .map((entry) =>
      `${join(entry.parentPath, entry.name)}${entry.isDirectory() ? '/' : ''}`.slice(join(dataDir, folder).length + 1),
    )
    .sort()
}

export function getMasterKey({ masterKeyFile }: Installed): MasterKey {
  const key = readMasterKeyFile(masterKeyFile)
  if (!key) throw new Error(`there is no master key ${masterKeyFile}`)
  return key
}

export type StoredSource = {
  /** In the folder `sources`, or the bucket. */
  blob: string
  path: string
  seal: Seal
  sizeBytes: number
  sha256: Buffer
  macs: Buffer /** As it was uploaded. */
  clear(): Promise<Buffer>
}

/** A video's source as it lies there, with what opens it; undefined while there is none. */
export function findStoredSource(installed: Installed, videoId: string): StoredSource | undefined {
  type Row = { file: string; size_bytes: number; sha256: Buffer; wrapped_key: Buffer; iv: Buffer; macs: Buffer }
  const [row] = readRows<Row>(installed, 'select * from source where video_id = ?', videoId)
  if (!row) return undefined
  const path = join(installed.dataDir, 'sources', row.file)
  const seal = { key: unwrap(getMasterKey(installed), `reelgate source-key 1 ${videoId}`, row.wrapped_key), iv: row.iv }
  return {
    blob: row.file,
    path,
    seal,
    sizeBytes: row.size_bytes,
    sha256: row.sha256,
    macs: row.macs,
    clear: async () => openSeal(await filesOf(installed).sources.read(row.file), seal),
  }
}

export function getStoredSource(installed: Installed, videoId: string): StoredSource {
  const source = findStoredSource(installed, videoId)
  if (!source) throw new Error(`the video ${videoId} has no source`)
  return source
}

/** What a source's row has as the hash of these bytes. */
export function sourceHash(clear: Buffer): Buffer {
  const hash = createFileHash()
  hash.update(clear)
  return hash.digest()
}

/** The private key with which the server agrees with browsers on their proof keys. */
export function getServerPrivateKey(installed: Installed): Buffer {
  type Row = { id: string; wrapped_private_key: Buffer }
  const [row] = readRows<Row>(installed, 'select id, wrapped_private_key from server_key')
  if (!row) throw new Error('there is no server key')
  return unwrap(getMasterKey(installed), `reelgate server-key 1 ${row.id}`, row.wrapped_private_key)
}

/** The content key of the generation that plays. */
export function getContentKey(installed: Installed, videoId: string): Buffer {
  type Row = { number: number; wrapped_content_key: Buffer }
  const sql =
    'select number, wrapped_content_key from generation join video on id = video_id and number = generation where id = ?'
  const [row] = readRows<Row>(installed, sql, videoId)
  if (!row) throw new Error(`the video ${videoId} has no generation`)
  return unwrapContentKey(getMasterKey(installed), videoId, row.number, row.wrapped_content_key)
}

export type StoredSegment = { rendition_id: number; number: number; file: string; size_bytes: number }

/** The published segments of the generation that plays. */
export function listSegments(installed: Installed, videoId: string): StoredSegment[] {
  const sql =
    'select rendition_id, number, file, size_bytes from segment join video on id = video_id and video.generation = segment.generation where id = ? order by 1, 2'
  return readRows<StoredSegment>(installed, sql, videoId)
}

/** Makes a finished video one that is not, without changing its segments. @returns makes it finished again */
export function markUnfinished(installed: Installed, videoId: string): () => void {
  // A chunk that is not done keeps the server from finishing it.
  changeRows(installed, `update chunk set state = 'failed' where video_id = ? and first_segment = 0`, videoId)
  changeRows(installed, 'update generation set finished_at_s = null where video_id = ?', videoId)
  return () => {
    changeRows(installed, 'update generation set finished_at_s = created_at_s where video_id = ?', videoId)
    changeRows(installed, `update chunk set state = 'done' where video_id = ? and first_segment = 0`, videoId)
  }
}

/** How many segments all renditions of a video will have; 0 before it is planned. */
export function countPlannedSegments(installed: Installed, videoId: string): number {
  const renditions =
    'select count(*) from rendition r where r.video_id = c.video_id and r.generation = c.generation and r.kind = c.kind'
  const sql = `select sum(segment_count * (${renditions})) as planned from chunk c where video_id = ?`
  return Number(readRows<{ planned: number | null }>(installed, sql, videoId)[0]?.planned ?? 0)
}

/** Resolves when every segment of every rendition of the video is there; throws when the video fails. */
export async function untilEncoded(installed: Installed, videoId: string): Promise<void> {
  type Row = { status: string; status_reason: string | null; finished_at_s: number | null }
  const sql =
    'select status, status_reason, finished_at_s from video left join generation on video_id = id and number = generation where id = ?'
  for (;;) {
    const [video] = readRows<Row>(installed, sql, videoId)
    if (!video || !['Queued', 'Processing', 'ready'].includes(video.status))
      throw new Error(`the video will not finish: ${video?.status} ${video?.status_reason}`)
    if (video.finished_at_s !== null) return
    await pause(100)
  }
}

/** None is made while the server is stopped, or the account disabled. */
const STORYBOARD_WAIT_MS = 60_000

/** As `untilEncoded`, and its storyboard is there, too: nothing more is made of the video, and files that it replaced are gone. */
export async function untilFinished(installed: Installed, videoId: string): Promise<void> {
  await untilStoryboardMade(installed, videoId)
  const endsAtMs = performance.now() + STORYBOARD_WAIT_MS
  while ((await hasUnnamedPosters(installed, videoId)) && performance.now() < endsAtMs) await pause(20)
}

/** As `untilFinished`; of pictures that are made again after damage, the sweep removes the former ones. */
export async function untilStoryboardMade(installed: Installed, videoId: string): Promise<void> {
  await untilEncoded(installed, videoId)
  const sql =
    'select 1 from generation join video on id = video_id and number = generation where id = ? and storyboard_made_at_s is null'
  const endsAtMs = performance.now() + STORYBOARD_WAIT_MS
  while (readRows(installed, sql, videoId).length > 0 && performance.now() < endsAtMs) await pause(50)
}

/** Files of posters that a better one has replaced are removed a moment after their rows. */
async function hasUnnamedPosters(installed: Installed, videoId: string): Promise<boolean> {
  const blobs = await namesIn(filesOf(installed).posters, videoId)
  const rows = readRows<{ blob: string }>(installed, 'select blob from file where video_id = ?', videoId)
  const named = new Set(rows.map(({ blob }) => blob))
  return blobs.some((blob) => !named.has(blob))
}

/** Processes whose command line names the folder: encoders of this installation, of the sandbox and below it. */
export async function findEncoders({ dataDir }: Installed): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const lines = await Promise.all(
    pids.map(async (pid) => ({ pid, line: await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '') })),
  )
  return lines.filter(({ line }) => line.includes(dataDir) && /ffmpeg|ffprobe|bwrap|prlimit/.test(line)).map(({ pid }) => pid)
}

/** Until the storyboard of what a video plays is made. */
export async function untilStoryboard(installed: Installed, videoId: string): Promise<void> {
  const sql = `select file.id from file join video on video.id = video_id and video.generation = file.generation
    where type = 'storyboard' and video_id = ?`
  while (readRows(installed, sql, videoId).length === 0) await pause(50)
}
