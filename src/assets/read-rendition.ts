import { Readable } from 'node:stream'
import { createSegmentIvDeriver, decryptSegment, deriveWindowKey } from '../crypto/content-key.ts'
import { windowOfVideoSegment } from '../crypto/key-window.ts'
import type { Db } from '../db/database.ts'
import { findInit, listSegmentFiles } from '../encode/generation-store.ts'
import type { GenerationWithKey } from '../encode/publication.ts'
import type { Damage } from '../encode/repair.ts'
import { readSegment } from '../encode/segment-file.ts'
import { Failure } from '../errors.ts'
import type { BlobStore } from '../storage/blob-store.ts'

export type ReadRenditionDeps = {
  db: Db
  segments: BlobStore
  reportDamage(damage: Damage): Promise<boolean>
}

/** `numbers`: the segments that are needed; undefined: all. */
type Part = { renditionId: number; numbers?: ReadonlySet<number> | undefined }

/**
 * The init segment of a finished video rendition and segments of it, decrypted in memory, in their order.
 * @throws Failure `unavailable` when a segment is missing or differs from the published one, until it has been encoded again
 */
export function readRendition(deps: ReadRenditionDeps, video: GenerationWithKey, part: Part): Readable {
  return Readable.from(readFragments(deps, video, part), { objectMode: false })
}

async function* readFragments(
  { db, segments, reportDamage }: ReadRenditionDeps,
  video: GenerationWithKey,
  { renditionId, numbers }: Part,
): AsyncGenerator<Buffer> {
  const { videoId, generation, contentKey } = video
  const init = await findInit(db, video, renditionId)
  if (!init) throw new Error('a finished video has no init segment')
  yield init
  const deriveIv = createSegmentIvDeriver(contentKey)
  for (const segment of await listSegmentFiles(db, video, renditionId)) {
    const { number } = segment
    if (numbers && !numbers.has(number)) continue
    const read = await readSegment(segments, segment)
    if ('fault' in read) {
      const isRepaired = await reportDamage({ videoId, generation, renditionId, number, ...read.fault })
      const message = `Segment ${number} of rendition ${renditionId} is damaged: ${read.fault.problem}`
      throw isRepaired ? new Failure('unavailable', `${message}. It is being encoded again.`) : new Error(message)
    }
    yield decryptSegment(read.bytes, deriveWindowKey(contentKey, windowOfVideoSegment(number)), deriveIv(renditionId, number))
  }
}
