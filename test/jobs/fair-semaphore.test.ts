import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createFairSemaphore } from '../../src/jobs/fair-semaphore.ts'

/** A semaphore whose work ends when the test says so. */
function openSemaphore(options: { slots: number; slotsPerAccount?: number; maxLength?: number }) {
  const inTurn = createFairSemaphore({
    slotsPerAccount: options.slots,
    queue: { maxLength: options.maxLength ?? 1000, fullMessage: 'Too many wait.' },
    ...options,
  })
  const running = new Map<string, () => void>()
  const refused: string[] = []
  return {
    running: () => [...running.keys()],
    refused,
    async add(account: string, name: string) {
      const work = () => new Promise<void>((resolve) => running.set(name, resolve))
      inTurn(account, work).catch((error) => refused.push(`${name}: ${error.kind} ${error.message}`))
      await settled()
    },
    async finish(name: string) {
      running.get(name)?.()
      running.delete(name)
      await settled()
    },
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

test('accounts take turns: one piece of work waits for one of another account, not for its many', async () => {
  const semaphore = openSemaphore({ slots: 1 })
  for (const name of ['a1', 'a2', 'a3']) await semaphore.add('a', name)
  await semaphore.add('b', 'b1')
  await semaphore.add('c', 'c1')
  const order: string[] = []
  for (let i = 0; i < 5; i++) {
    const [name = ''] = semaphore.running()
    order.push(name)
    await semaphore.finish(name)
  }
  expect(order).toEqual(['a1', 'b1', 'c1', 'a2', 'a3'])
})

test('an account does not get all slots, so that another’s work begins immediately', async () => {
  const semaphore = openSemaphore({ slots: 2, slotsPerAccount: 1 })
  for (const name of ['a1', 'a2']) await semaphore.add('a', name)
  await semaphore.add('b', 'b1')
  expect(semaphore.running()).toEqual(['a1', 'b1'])
  await semaphore.finish('b1')
  expect(semaphore.running()).toEqual(['a1'])
  await semaphore.finish('a1')
  expect(semaphore.running()).toEqual(['a2'])
})

test('so much of an account may wait; more is refused, and another account’s is not', async () => {
  const semaphore = openSemaphore({ slots: 1, maxLength: 2 })
  for (const name of ['a1', 'a2', 'a3', 'a4']) await semaphore.add('a', name)
  await semaphore.add('b', 'b1')
  expect(semaphore.refused).toEqual(['a4: unavailable Too many wait.'])
  for (const name of ['a1', 'b1', 'a2', 'a3']) await semaphore.finish(name)
  expect(semaphore.running()).toEqual([])
})

test('whatever comes and ends, no place is lost, none is taken twice, and all work is done', async () => {
  const steps = fc.array(fc.oneof(fc.constantFrom('a', 'b', 'c'), fc.nat(3)), { maxLength: 60 })
  await fc.assert(
    fc.asyncProperty(
      steps,
      fc.integer({ min: 1, max: 3 }),
      fc.integer({ min: 1, max: 3 }),
      async (all, slots, slotsPerAccount) => {
        const semaphore = openSemaphore({ slots, slotsPerAccount })
        const waiting = new Map<string, string>()
        const check = () => {
          const running = semaphore.running()
          expect(running.length).toBeLessThanOrEqual(slots)
          for (const account of ['a', 'b', 'c']) {
            const theirs = running.filter((name) => waiting.get(name) === account).length
            expect(theirs).toBeLessThanOrEqual(slotsPerAccount)
            const waits = [...waiting.values()].filter((other) => other === account).length > theirs
            if (waits) expect([running.length, theirs]).toSatisfy(([all, own]) => all === slots || own === slotsPerAccount)
          }
        }
        for (const [index, step] of all.entries()) {
          const name = typeof step === 'number' ? (semaphore.running()[step] ?? '') : `${step}${index}`
          if (typeof step === 'number') {
            waiting.delete(name)
            await semaphore.finish(name)
          } else {
            waiting.set(name, step)
            await semaphore.add(step, name)
          }
          check()
        }
        while (semaphore.running().length > 0) {
          const [name = ''] = semaphore.running()
          waiting.delete(name)
          await semaphore.finish(name)
          check()
        }
        expect([...waiting.keys()]).toEqual([])
      },
    ),
  )
})
