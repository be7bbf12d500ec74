/** Whose turn it is, where accounts take turns. */
export type RoundRobin = {
  /** Of these accounts the one with the fewest pieces of work under way, and of those the one that was served longest ago. */
  first(accountIds: readonly string[], underWay?: (accountId: string) => number): string | undefined
  served(accountId: string): void
}

export function createRoundRobin(): RoundRobin {
  /** In the order in which they were last served. */
  const order = new Map<string, number>()
  let turn = 0
  const servedAt = (accountId: string) => order.get(accountId) ?? 0
  return {
    first(accountIds, underWay = () => 0) {
      return accountIds.toSorted((a, b) => underWay(a) - underWay(b) || servedAt(a) - servedAt(b))[0]
    },
    served(accountId) {
      order.set(accountId, ++turn)
    },
  }
}
