import { Failure } from '../errors.ts'

/** Runs work when its account has a free slot. @throws Failure `unavailable` when the account's queue is full */
export type FairSemaphore = <T>(accountId: string, work: () => Promise<T>) => Promise<T>

type AccountQueue = { running: number; waiting: (() => void)[] }

/**
 * Limits how much work runs concurrently, in total and per account. The rest waits. A free slot goes to the
 * waiting account with the fewest running calls, on a tie to the one that has waited longest, so that a busy account does not delay the others.
 * @param options.queue how many calls of one account may wait, and the message for further ones; without it, the caller limits them
 */
export function createFairSemaphore(options: {
  slots: number
  slotsPerAccount: number
  queue?: { maxLength: number; fullMessage: string }
}): FairSemaphore {
  const { maxLength, fullMessage } = options.queue ?? { maxLength: Number.POSITIVE_INFINITY, fullMessage: '' }
  /** By account; an account moves to the end when one of its calls ends. */
  const queues = new Map<string, AccountQueue>()
  let running = 0

  const hasSlotFor = (queue: AccountQueue) => running < options.slots && queue.running < options.slotsPerAccount

  function begin(queue: AccountQueue): void {
    queue.running++
    running++
  }

  function end(accountId: string, queue: AccountQueue): void {
    queue.running--
    running--
    queues.delete(accountId)
    if (queue.running > 0 || queue.waiting.length > 0) queues.set(accountId, queue)
    const ready = [...queues.values()].filter((other) => other.waiting.length > 0 && hasSlotFor(other))
    const [next] = ready.toSorted((a, b) => a.running - b.running)
    if (!next) return
    begin(next)
    next.waiting.shift()?.()
  }

  return async function inTurn(accountId, work) {
    const queue = queues.get(accountId) ?? { running: 0, waiting: [] }
    if (!hasSlotFor(queue) && queue.waiting.length >= maxLength) throw new Failure('unavailable', fullMessage)
    queues.set(accountId, queue)
    if (hasSlotFor(queue)) begin(queue)
    else await new Promise<void>((resolve) => queue.waiting.push(resolve)) // gets the slot of one that has ended
    try {
      return await work()
    } finally {
      end(accountId, queue)
    }
  }
}
