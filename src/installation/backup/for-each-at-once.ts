/**
 * Calls `work` for each item, for `count` of them at a time. After an error no more are begun, and it is thrown when those that
 * were begun have ended.
 */
export async function forEachAtOnce<T>(items: Iterable<T>, count: number, work: (item: T) => Promise<void>): Promise<void> {
  const shared = Iterator.from(items)
  async function run(): Promise<void> {
    for (const item of shared) await work(item) // what is thrown closes the iterator for all
  }
  const outcomes = await Promise.allSettled(Array.from({ length: count }, run))
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
}
