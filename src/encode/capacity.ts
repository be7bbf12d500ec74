import type { Db } from '../db/database.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import { type Capacity, countPendingSegments, listServerCapacities, listWorkerCapacities } from './capacity-store.ts'
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

/** What encoders there are, by fingerprint: those of this server, of others and of workers. */
export async function findCapacities(deps: Omit<CapacityDeps, 'slowQueryDb'>): Promise<Map<string, number>> {
  const { db, nowS, sandbox, encoderSlots } = deps
  const servers = await listServerCapacities(db)
  const own = { encoder: encoderFingerprint(sandbox), slots: encoderSlots }
  const workers = await listWorkerCapacities(db, nowS() - MAX_ABSENCE_S)
  return addUp([...(servers.length > 0 ? servers : [own]), ...workers])
}

function addUp(capacities: readonly Capacity[]): Map<string, number> {
  const sums = new Map<string, number>()
  for (const { encoder, slots } of capacities) if (slots > 0) sums.set(encoder, (sums.get(encoder) ?? 0) + slots)
  return sums
}

/** The encoder of a new generation. */
export async function chooseEncoder(deps: CapacityDeps, plan: Pick<Plan, 'isSeekable' | 'isPiped'>): Promise<string> {
  const own = encoderFingerprint(deps.sandbox)
  if (!isDecodableInParts(plan)) return own
  const capacities = await findCapacities(deps)
  if ([...capacities.keys()].every((encoder) => encoder === own)) return own
  return findLeastBusy(capacities, await countPendingSegments(deps.slowQueryDb), own)
}

/** Whether each part of a video can be decoded alone, and so on another machine. */
export function isDecodableInParts({ isSeekable, isPiped = false }: Pick<Plan, 'isSeekable' | 'isPiped'>): boolean {
  return isSeekable && !isPiped
}

/** Of several that are as busy, this server's own. */
export function findLeastBusy(
  capacities: ReadonlyMap<string, number>,
  pendingSegments: ReadonlyMap<string, number>,
  own: string,
): string {
  const waitOf = ([encoder, slots]: [string, number]) => ((pendingSegments.get(encoder) ?? 0) + 1) / slots
  const [first] = [...capacities].toSorted(
    (a, b) => waitOf(a) - waitOf(b) || Number(b[0] === own) - Number(a[0] === own) || a[0].localeCompare(b[0]),
  )
  return first?.[0] ?? own
}
