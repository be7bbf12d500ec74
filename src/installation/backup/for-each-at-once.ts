/**
 * Calls `work` for each item, for `count` of them at a time. After an error no more are begun, and it is thrown when those that
 * were begun have ended.
 */
export async function forEachAtOnce<T>(items: Iterable<T>, count: number, work: (item: T) => Promise<void>): Promise<void> {
  const iterator = items[Symbol.iterator]()
  let hasFailed = false
  async function run(): Promise<void> {
    for (let next = iterator.next(); !next.done && !hasFailed; next = iterator.next()) await work(next.value)
  }
  try {
    const outcomes = await Promise.allSettled(
      Array.from({ length: count }, () =>
        run().catch((error) => {
          hasFailed = true
          throw error
        }),
      ),
    )
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
  } finally {
    iterator.return?.()
  }
}
