import { LRUCache } from 'lru-cache'
import type { GenerationKey } from '../../catalogue/generation-key.ts'
import type { Db } from '../../db/database.ts'
import { findSegment } from '../../encode/generation-store.ts'
import type { Damage } from '../../encode/repair.ts'
import { findSegmentFault } from '../../encode/segment-file.ts'
import type { BlobStore } from '../../storage/blob-store.ts'
import { cacheKey } from './segment-cache.ts'

/** Compares the hash of a segment's file that a player could not read. What is damaged is encoded again, as wherever damage is found. */
export type SegmentCheck = (video: GenerationKey, renditionId: number, number: number) => Promise<void>

type SegmentCheckDeps = {
  db: Db
  nowS: () => number
  segments: Pick<BlobStore, 'open'>
  reportDamage(damage: Damage): Promise<unknown>
}

/** Viewers' programs may report what they like: it costs one read of a segment in this time. */
const CHECK_AGAIN_AFTER_S = 3600
const MAX_REMEMBERED = 10_000

export function createSegmentCheck({ db, nowS, segments, reportDamage }: SegmentCheckDeps): SegmentCheck {
  const checkedAtS = new LRUCache<string, number>({ max: MAX_REMEMBERED })
  return async ({ videoId, generation }, renditionId, number) => {
    const name = cacheKey({ videoId, generation }, renditionId, number)
    if (nowS() - (checkedAtS.get(name) ?? Number.NEGATIVE_INFINITY) < CHECK_AGAIN_AFTER_S) return
    checkedAtS.set(name, nowS()) // before anything is waited for: reports may come at the same moment
    const segment = await findSegment(db, { videoId, generation }, renditionId, number)
    if (!segment) return void checkedAtS.delete(name) // not encoded yet, or known to be damaged
    const fault = await findSegmentFault(segments, segment)
    // Whatever is wrong, a player has met it: after the repair it needs another address.
    if (fault) await reportDamage({ videoId, generation, renditionId, number, ...fault, mayHaveBeenSent: true })
  }
}
