/** A kind of work. */
type WorkKind<Context, Job> = {
  claim(context: Context): Promise<Job | undefined>
  /** Whether its work is to wait for now. Its share comes all the same. */
  isHeldBack?(): boolean
}

/**
 * Claims the first kind of work that waits, in the given order. A kind before which `maxPassedOver` other jobs were claimed comes
 * first once, so that none waits for ever, however much there is of the others.
 */
export function claimInShares<Context, Job>(
  kinds: readonly WorkKind<Context, Job>[],
  maxPassedOver: number,
): (context: Context) => Promise<Job | undefined> {
  /** How many other jobs were claimed since each kind was last asked. */
  const passedOver = new Map(kinds.map((kind) => [kind, 0]))
  const countOf = (kind: WorkKind<Context, Job>) => passedOver.get(kind) ?? 0
  const isDue = (kind: WorkKind<Context, Job>) => countOf(kind) >= maxPassedOver

  return async (context) => {
    const order = kinds.toSorted((a, b) => Number(isDue(b)) - Number(isDue(a)))
    for (const [index, kind] of order.entries()) {
      if (kind.isHeldBack?.() && !isDue(kind)) continue
      const job = await kind.claim(context)
      passedOver.set(kind, 0)
      if (!job) continue
      for (const other of order.slice(index + 1)) passedOver.set(other, countOf(other) + 1)
      return job
    }
    return undefined
  }
}
