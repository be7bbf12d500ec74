import type { Logger } from 'pino'
import type { VideoFolders } from '../catalogue/deletion.ts'
import type { GenerationKey } from '../catalogue/generation-key.ts'
import { unwrapContentKey } from '../crypto/content-key.ts'
import type { MasterKey } from '../crypto/master-key.ts'
import { checkSeal, openSealedBlocks, type Seal } from '../crypto/sealed-file.ts'
import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { openSourceSeal } from '../ingest/source.ts'
import { findSource } from '../ingest/source-store.ts'
import type { SealedBlocks, SealedSource } from '../sandbox/media-run.ts'
import type { Signals } from '../signals/signals.ts'
import { BlobLost, type BlobStore } from '../storage/blob-store.ts'
import { findGeneration } from './generation-store.ts'
import type { GenerationWithKey } from './publication.ts'

/** What all work on a video needs: its rows, its files and the key to them. */
export type VideoDeps = {
  db: Db
  slowQueryDb: Db
  write: Write
  signals: Signals
  wallNowS: () => number
  masterKey: MasterKey
  folders: VideoFolders
  /** A folder for files that a run of ffmpeg needs. */
  tmp: string
  log: Logger
}

/** A video's encrypted source with its key, for ffmpeg; undefined once the video is deleted. @param number absent: of what it plays */
export async function findSealedSource(
  deps: Pick<VideoDeps, 'db' | 'masterKey' | 'folders'>,
  videoId: string,
  number?: number,
): Promise<SealedSource | undefined> {
  const row = await findSource(deps.db, videoId, number)
  if (!row?.wrappedKey) return undefined
  const seal = openSourceSeal(deps, { ...row, wrappedKey: row.wrappedKey })
  const { sources } = deps.folders
  return {
    withLocalCopy: (use) => sources.withLocalCopy(row.file, use, () => checkSeal(seal, row.macs)),
    openInPlace: sources.mayCopy(row.sizeBytes) ? undefined : () => openInPlace(sources, row, seal),
    keyHex: seal.key.toString('hex'),
    ivHex: seal.iv.toString('hex'),
    sizeBytes: row.sizeBytes,
  }
}

async function openInPlace(
  sources: BlobStore,
  { file, macs }: { file: string; macs: Buffer },
  seal: Seal,
): Promise<SealedBlocks> {
  const blob = await sources.open(file)
  const readVerified = await openSealedBlocks(blob, seal, macs)
  return {
    sizeBytes: blob.sizeBytes,
    async read(number: number) {
      const block = await readVerified(number)
      if (!block) throw new BlobLost('its object has other bytes than were stored')
      return block
    },
    [Symbol.asyncDispose]: blob.close,
  }
}

/** A generation with its content key; undefined once the video is deleted. */
export async function findGenerationWithKey(
  { db, masterKey }: Pick<VideoDeps, 'db' | 'masterKey'>,
  { videoId, generation }: GenerationKey,
): Promise<GenerationWithKey | undefined> {
  const row = await findGeneration(db, { videoId, generation })
  if (!row?.wrappedContentKey) return undefined
  const { plan, encoder, sourceNumber, wrappedContentKey } = row
  return {
    videoId,
    generation,
    plan,
    encoder,
    sourceNumber,
    contentKey: unwrapContentKey(masterKey, videoId, generation, wrappedContentKey),
  }
}
