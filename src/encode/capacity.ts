import type { Db } from '../db/database.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import { type Capacity, countPendingSegments, listServerCapacities, listWaiting, listWorkerCapacities } from './capacity-store.ts'
import { CHUNK_KINDS, type ChunkKind } from './chunk-plan.ts'
import { encoderFingerprint } from './encoder.ts'
import type { Plan } from './plan.ts'

// Segments of two encoders are not mixed in one rendition, so each generation has one: that of the encoders which finish it first.

export type CapacityDeps = {
  db: Db
  slowQueryDb: Db
  /** The playback clock. */
  nowS: () => number
  sandbox: Pick<Sandbox, 'ffmpegVersion'>
  /** How many chunks this server encodes concurrently. 0: by workers alone, but for what may not leave it. */
  encoderSlots: number
}

/** An encoder that was not seen for so long is not there any more. */
export const MAX_ABSENCE_S = 600

/** What encoders there are, by fingerprint, and how many chunks of each kind they encode concurrently. */
type Capacities = ReadonlyMap<string, Readonly<Record<ChunkKind, number>>>

/** Those of this server, of others and of workers. */
export async function findCapacities(deps: Omit<CapacityDeps, 'slowQueryDb'>): Promise<Capacities> {
  const { db, nowS, sandbox, encoderSlots } = deps
  const servers = await listServerCapacities(db)
  const own = { encoder: encoderFingerprint(sandbox), slots: encoderSlots, kinds: CHUNK_KINDS }
  const workers = await listWorkerCapacities(db, nowS() - MAX_ABSENCE_S)
  return addUp([...(servers.length > 0 ? servers : [own]), ...workers])
}

function addUp(capacities: readonly Capacity[]): Capacities {
  const sums = new Map<string, Record<ChunkKind, number>>()
  for (const { encoder, slots, kinds } of capacities) {
    if (slots === 0) continue
    const sum = sums.get(encoder) ?? { video: 0, audio: 0 }
    for (const kind of kinds) sum[kind] += slots
    sums.set(encoder, sum)
  }
  return sums
}

/** What a video has to be encoded. */
type Needs = Pick<Plan, 'isSeekable' | 'isPiped' | 'videoTrack' | 'audioTrack'>

/** The encoder of a new generation. */
export async function chooseEncoder(deps: CapacityDeps, plan: Needs): Promise<string> {
  const own = encoderFingerprint(deps.sandbox)
  if (!isDecodableInParts(plan)) return own
  const capacities = await findCapacities(deps)
  if ([...capacities.keys()].every((encoder) => encoder === own)) return own
  const kinds = CHUNK_KINDS.filter((kind) => plan[`${kind}Track`] !== undefined)
  return findLeastBusy(capacities, await countPendingSegments(deps.slowQueryDb), { kinds, own })
}

/** The kinds of chunks that wait although nothing that is there encodes them, nor all of their video as its next generation. */
export async function findStuckKinds(deps: CapacityDeps): Promise<ChunkKind[]> {
  const capacities = await findCapacities(deps)
  const encodesAny = (kinds: readonly ChunkKind[]) => capacities.values().some((slots) => kinds.every((kind) => slots[kind] > 0))
  if (encodesAny(CHUNK_KINDS)) return []
  const stuck = (await listWaiting(deps.slowQueryDb)).filter(
    ({ encoder, kind, ofKinds }) => (capacities.get(encoder)?.[kind] ?? 0) === 0 && !encodesAny(ofKinds),
  )
  return CHUNK_KINDS.filter((kind) => stuck.some((waiting) => waiting.kind === kind))
}

/** Whether each part of a video can be decoded alone, and so on another machine. */
export function isDecodableInParts({ isSeekable, isPiped = false }: Pick<Plan, 'isSeekable' | 'isPiped'>): boolean {
  return isSeekable && !isPiped
}

/**
 * The encoder that finishes a video first. Of several that are as busy, this server's own, and where none encodes all kinds, too.
 * @param video.kinds what it consists of; the first is that which takes the time
 */
export function findLeastBusy(
  capacities: Capacities,
  pendingSegments: ReadonlyMap<string, number>,
  { kinds, own }: { kinds: readonly ChunkKind[]; own: string },
): string {
  const [slowest = 'video'] = kinds
  const [first] = [...capacities]
    .filter(([, slots]) => kinds.every((kind) => slots[kind] > 0))
    .map(([encoder, slots]) => ({ encoder, wait: ((pendingSegments.get(encoder) ?? 0) + 1) / slots[slowest] }))
    .toSorted(
      (a, b) => a.wait - b.wait || Number(b.encoder === own) - Number(a.encoder === own) || a.encoder.localeCompare(b.encoder),
    )
  return first?.encoder ?? own
}
