/** Decides which account is next. */
type RoundRobin = {
  /** The account with the least running work; among equals the one that was served longest ago. */
  next(accountIds: readonly string[], runningCount?: (accountId: string) => number): string | undefined
  markServed(accountId: string): void
}

export function createRoundRobin(): RoundRobin {
  /** In the order in which they were last served. */
  const order = new Map<string, number>()
  let turn = 0
  const servedAt = (accountId: string) => order.get(accountId) ?? 0
  return {
    next(accountIds, runningCount = () => 0) {
      return accountIds.toSorted((a, b) => runningCount(a) - runningCount(b) || servedAt(a) - servedAt(b))[0]
    },
    markServed(accountId) {
      order.set(accountId, ++turn)
    },
  }
}
