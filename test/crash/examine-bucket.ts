import { cp, mkdir, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { FILE_BLOB_NAME } from '../../src/catalogue/file-store.ts'
import { MEDIA_FOLDERS, type MediaFolder } from '../../src/config/data-paths.ts'
import { SEGMENT_BLOB } from '../../src/encode/generation-store.ts'
import { SOURCE_BLOB_NAME } from '../../src/ingest/source-store.ts'
import { RETIRED_KEPT_S } from '../../src/storage/blob-store.ts'
import { createOrphanSweep, ORPHANS_KEPT_S } from '../../src/storage/orphan-sweep.ts'
import type { Bucket } from '../../src/storage/s3/bucket.ts'
import { readBody } from '../../src/storage/s3/objects.ts'
import { filesOf, type Installed } from '../data-folder.ts'
import { newFolder } from '../pipeline/videos.ts'
import { readRows } from '../rows.ts'
import { contentsOf } from '../s3.ts'
import { examine, newMemory } from './inspect-data-folder.ts'

const PATTERNS = { sources: SOURCE_BLOB_NAME, segments: SEGMENT_BLOB, posters: FILE_BLOB_NAME, files: FILE_BLOB_NAME }

/**
 * Of stopped servers, whose videos' files are in a bucket: looks for broken promises in rows and objects, then removes what eight days
 * later is removed.
 * @returns one sentence for each breach; what is in the bucket then, and what rows name
 */
export async function examineBucket(installed: Installed, bucket: Bucket, options: { isRestored?: boolean } = {}) {
  const folder = await newFolder()
  await cp(installed.dataDir, folder, { recursive: true, filter: (path) => !/\.(sock|reserve)$/.test(path) })
  const stored = await copyObjects(bucket, folder)
  const { breaches, orphans } = await examine({ ...installed, dataDir: folder, bucket: undefined }, newMemory(), options)
  const left = new Set(orphans.map((path) => relative(folder, path)))
  const files = filesOf({ dataDir: folder, bucket: bucket.address })
  const afterS = (await files.sources.nowS()) + 60
  for (const [kind, pattern] of Object.entries(PATTERNS) as [MediaFolder, RegExp][]) {
    const sweep = createOrphanSweep(
      files[kind],
      pattern,
      async (names) => new Set(names.filter((name) => !left.has(`${kind}/${name}`))),
    )
    for (const atS of [afterS + ORPHANS_KEPT_S, afterS + ORPHANS_KEPT_S + RETIRED_KEPT_S])
      await sweep(atS, Number.POSITIVE_INFINITY)
  }
  await files.sources.removeUnfinished(afterS)
  const { objects, uploads } = await contentsOf(bucket)
  // Parts of files that still arrive have the name of the file, and what they are of it.
  const arriving = readRows<{ file: string }>(installed, 'select file from resumable_upload where finished_at_s is null')
  const arrivingFiles = new Set(arriving.map(({ file }) => `sources/${file}`))
  return {
    breaches,
    kept: { objects: objects.filter((name) => name !== 'check' && !arrivingFiles.has(name.split('!')[0] ?? '')), uploads },
    named: { objects: ['reelgate', ...stored.filter((name) => !left.has(name))].sort(), uploads: [] },
  }
}

/** @returns the names of all files of videos */
async function copyObjects(bucket: Bucket, folder: string): Promise<string[]> {
  const { objects } = await contentsOf(bucket)
  const names = objects.filter((name) => MEDIA_FOLDERS.some((kind) => name.startsWith(`${kind}/`)))
  for (const kind of MEDIA_FOLDERS) await mkdir(join(folder, kind), { recursive: true })
  for (const name of names) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), await bucket.ask({ method: 'GET', key: bucket.address.prefix + name }, readBody))
  }
  return names
}
