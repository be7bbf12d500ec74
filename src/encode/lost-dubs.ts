import { dubIdOf, updateDub } from '../catalogue/dub-store.ts'
import type { Db } from '../db/database.ts'
import { withoutTrack } from './dub.ts'
import type { VideoDeps } from './encode-deps.ts'
import { isSourceIntact } from './fail-video.ts'
import { audioTracksOf, type Plan } from './plan.ts'

const LOST =
  'The file of this audio track was lost or changed on this server’s disk. Remove it, check the disk, and add it again.'

/** The files of added tracks that cannot be encoded again: each is read whole. @returns their numbers */
export async function findLostDubs(deps: VideoDeps, videoId: string, plan: Plan, signal: AbortSignal): Promise<number[]> {
  const lost: number[] = []
  for (const { dub } of audioTracksOf(plan))
    if (dub && !(await isSourceIntact(deps, { videoId, sourceNumber: dub.sourceNumber }, signal))) lost.push(dub.sourceNumber)
  return lost
}

/** A plan without the tracks whose files are lost; their owner reads why. */
export async function leaveOutDubs(tx: Db, videoId: string, plan: Plan, lost: readonly number[]): Promise<Plan> {
  for (const sourceNumber of lost) await updateDub(tx, { videoId, sourceNumber }, { encoded: 0, problem: LOST })
  return lost.reduce((left, sourceNumber) => withoutTrack(left, dubIdOf({ sourceNumber })), plan)
}
