import type { Logger } from 'pino'
import { findFirstAccount } from '../../alerts/alert-store.ts'
import { recordOperationsAlert } from '../../alerts/operations.ts'
import type { DirectPlayers } from '../../config/bucket.ts'
import type { Db } from '../../db/database.ts'
import type { Write } from '../../db/write.ts'
import type { BucketAddress } from '../../storage/s3/bucket.ts'
import { addCorsRule, corsRuleFor, type DirectProblem, findCorsProblem } from '../../storage/s3/cors.ts'
import { createSharedPresigner, type Presigner } from '../../storage/s3/presign.ts'

/** The bucket of segments, from which players load them straight while it lets them. */
export type DirectBucket = {
  /** The origins of its addresses, now and after its files have moved. */
  origins: readonly string[]
  /** Makes presigned addresses of segments by the names of their blobs; undefined: players may not load from there now. */
  findPresigner(): Presigner | undefined
  /** Finds out whether players may, and lets them where that is possible. @throws StorageUnavailable when the bucket does not answer */
  check(): Promise<void>
}

type DirectBucketDeps = {
  db: Db
  write: Write
  nowS: () => number
  wallNowS: () => number
  log: Logger
  /** The bucket that has all segments; undefined: they are in a folder, or are being moved. */
  findAddress(): BucketAddress | undefined
  players: DirectPlayers
}

export function createDirectBucket({ db, write, log, findAddress, players, ...clocks }: DirectBucketDeps): DirectBucket {
  /** The one that players may load from. */
  let open: BucketAddress | undefined
  let reported: string | undefined
  const presignerOf = createSharedPresigner()

  async function check(): Promise<void> {
    const address = findAddress()
    if (!address) return
    const problem = await mend(address)
    open = problem === undefined ? address : undefined
    if (problem === undefined) {
      if (reported !== undefined) log.info({ origin: players.origin }, 'segments: players load them from the bucket again')
    } else {
      const rule = corsRuleFor(players.origin)
      if (problem !== reported) log.warn({ problem, rule }, 'segments: players cannot load them from the bucket')
      await alert({ reason: problem, rule: JSON.stringify(rule) })
    }
    reported = problem
  }

  /** @returns the problem that remains */
  async function mend(address: BucketAddress): Promise<string | undefined> {
    const problem = await findDirectProblem(address, players, clocks.wallNowS())
    if (problem === undefined || !problem.isMendable) return problem?.says
    try {
      await addCorsRule(address, players.origin)
    } catch (error) {
      return `${problem.says}, and this server may not add it: ${error instanceof Error ? error.message : String(error)}`
    }
    return (await findDirectProblem(address, players, clocks.wallNowS()))?.says
  }

  async function alert(numbers: Record<string, string>): Promise<void> {
    const account = await findFirstAccount(db)
    if (!account) return
    const alert = { accountId: account.id, cause: 'bucket-not-direct', numbers } as const
    await write((tx) => recordOperationsAlert(tx, alert, clocks.nowS()))
  }

  return {
    origins: players.bucketOrigins,
    check,
    findPresigner() {
      const address = findAddress()
      if (!address || address !== open) return undefined
      const presign = presignerOf(address, clocks.wallNowS())
      return (file, repairs) => presign(`${address.prefix}segments/${file}`, repairs)
    },
  }
}

/**
 * Why players cannot load objects from a bucket; undefined: they can.
 * @throws StorageUnavailable when the bucket does not answer
 */
export async function findDirectProblem(
  address: BucketAddress,
  { origin, findProblem }: DirectPlayers,
  wallNowS: number,
): Promise<DirectProblem | undefined> {
  const problem = findProblem(address.endpoint)
  return problem === undefined ? findCorsProblem(address, origin, wallNowS) : { says: problem, isMendable: false }
}
