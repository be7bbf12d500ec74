import { createHash, randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readConfig } from '../src/config/config.ts'
import { dataPaths } from '../src/config/data-paths.ts'
import { makeBackup } from '../src/installation/make-backup.ts'
import { openInstallation } from '../src/installation/open.ts'
import type { Measured, Row, Scope } from './row.ts'

const VIDEOS = 100
const SEGMENTS = 70
/** 4 s at 2.86 Mbit/s: 10 GB in all. */
const SEGMENT_BYTES = 1_430_000

export const BACKUP_ROWS: readonly Row[] = [
  {
    name: 'backup-second',
    what: 'bytes that a second backup adds after 1 of 100 videos was replaced, 10 GB in all; the peer is the first backup',
    unit: 'MB',
    aim: { ratioAtMost: 0.05 },
    measure: measureSecondBackup,
  },
]

/** From memory to disk: on one file system a backup would be hard links. The segments are sparse, so they take no memory. */
async function measureSecondBackup(scope: Scope): Promise<Measured> {
  const location = await mkdtemp('/dev/shm/reelgate-bench-')
  scope.defer(() => rm(location, { recursive: true, force: true }))
  const config = readConfig({ REELGATE_DATA: join(location, 'data') })
  await mkdir(config.dataDir)
  const folder = join(scope.folder, 'backups')
  const ids = Array.from({ length: VIDEOS + 1 }, () => randomBytes(16).toString('hex'))
  await changeVideos(config.dataDir, ids.slice(0, VIDEOS), [])
  const first = await addedMb(config, folder)
  await changeVideos(config.dataDir, ids.slice(VIDEOS), ids.slice(0, 1))
  const second = await addedMb(config, folder)
  return { ours: second, peer: first, ratio: second / first }
}

/** Of rows, media and their list. */
async function addedMb(config: ReturnType<typeof readConfig>, folder: string): Promise<number> {
  const listener = { signal: new AbortController().signal, progress: () => undefined }
  const { manifest, copiedBytes, linkedBytes } = await makeBackup(config, { folder, keep: 7 }, listener)
  if (linkedBytes > 0) throw new Error('/dev/shm and the repository are on one file system: nothing is copied')
  return (copiedBytes + manifest.rows.sizeBytes + manifest.list.sizeBytes) / 1e6
}

async function changeVideos(dataDir: string, added: readonly string[], removed: readonly string[]): Promise<void> {
  const { segments: segmentsFolder } = dataPaths(dataDir)
  const { db, write, close } = await openInstallation(readConfig({ REELGATE_DATA: dataDir }))
  const sha256 = createHash('sha256').update(Buffer.alloc(SEGMENT_BYTES)).digest()
  const accountId = 'a'.repeat(32)
  const isFirst = (await db.selectFrom('account').select('id').executeTakeFirst()) === undefined
  if (isFirst)
    await write((tx) =>
      tx.insertInto('account').values({ id: accountId, name: 'bench', createdAtS: 1, mayUpload: 1, mayImport: 1 }).execute(),
    )
  for (const id of added) {
    const segments = Array.from({ length: SEGMENTS }, (_, index) => ({ number: index + 1, file: `${id}/1/0/${index + 1}.m4s` }))
    for (const { file } of segments) await writeSparse(join(segmentsFolder, file))
    await write(async (tx) => {
      const named = { title: 'A video', description: '', fileName: 'video.mp4', status: 'ready' as const }
      await tx
        .insertInto('video')
        .values({ id, accountId, ...named, uploadTimeS: 1, generation: 1 })
        .execute()
      const key = { wrappedContentKey: randomBytes(64) }
      await tx
        .insertInto('generation')
        .values({ videoId: id, number: 1, plan: '{}', encoder: '', createdAtS: 1, ...key })
        .execute()
      await tx
        .insertInto('rendition')
        .values({ videoId: id, generation: 1, id: 0, kind: 'video', init: randomBytes(700) })
        .execute()
      const rows = segments.map((segment) => ({
        ...segment,
        videoId: id,
        generation: 1,
        renditionId: 0,
        sizeBytes: SEGMENT_BYTES,
        sha256,
      }))
      await tx.insertInto('segment').values(rows).execute()
    })
  }
  for (const id of removed) {
    await write((tx) => tx.updateTable('video').set({ deletedAtS: 2 }).where('id', '=', id).execute())
    await rm(join(segmentsFolder, id), { recursive: true })
  }
  await close()
}

async function writeSparse(path: string): Promise<void> {
  await mkdir(join(path, '..'), { recursive: true })
  await writeFile(path, '')
  await truncate(path, SEGMENT_BYTES)
  if ((await stat(path)).blocks > 0) throw new Error(`${path} is not sparse, so this would fill the memory`)
}
