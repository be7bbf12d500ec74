import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createFairSemaphore } from '../../src/jobs/fair-semaphore.ts'

/** A gate whose pieces of work end when the test says so. */
function openGate(options: { places: number; placesOfOne?: number; longest?: number }) {
  const inTurn = createFairSemaphore({
    placesOfOne: options.places,
    line: { longest: options.longest ?? 1000, refusal: 'Too many wait.' },
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
  const gate = openGate({ places: 1 })
  for (const name of ['a1', 'a2', 'a3']) await gate.add('a', name)
  await gate.add('b', 'b1')
  await gate.add('c', 'c1')
  const order: string[] = []
  for (let i = 0; i < 5; i++) {
    const [name = ''] = gate.running()
    order.push(name)
    await gate.finish(name)
  }
  expect(order).toEqual(['a1', 'b1', 'c1', 'a2', 'a3'])
})

test('an account does not get all places, so that another’s work begins immediately', async () => {
  const gate = openGate({ places: 2, placesOfOne: 1 })
  for (const name of ['a1', 'a2']) await gate.add('a', name)
  await gate.add('b', 'b1')
  expect(gate.running()).toEqual(['a1', 'b1'])
  await gate.finish('b1')
  expect(gate.running()).toEqual(['a1'])
  await gate.finish('a1')
  expect(gate.running()).toEqual(['a2'])
})

test('so much of an account may wait; more is refused, and another account’s is not', async () => {
  const gate = openGate({ places: 1, longest: 2 })
  for (const name of ['a1', 'a2', 'a3', 'a4']) await gate.add('a', name)
  await gate.add('b', 'b1')
  expect(gate.refused).toEqual(['a4: unavailable Too many wait.'])
  for (const name of ['a1', 'b1', 'a2', 'a3']) await gate.finish(name)
  expect(gate.running()).toEqual([])
})

test('whatever comes and ends, no place is lost, none is taken twice, and all work is done', async () => {
  const steps = fc.array(fc.oneof(fc.constantFrom('a', 'b', 'c'), fc.nat(3)), { maxLength: 60 })
  await fc.assert(
    fc.asyncProperty(steps, fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 3 }), async (all, places, placesOfOne) => {
      const gate = openGate({ places, placesOfOne })
      const waiting = new Map<string, string>()
      const check = () => {
        const running = gate.running()
        expect(running.length).toBeLessThanOrEqual(places)
        for (const account of ['a', 'b', 'c']) {
          const theirs = running.filter((name) => waiting.get(name) === account).length
          expect(theirs).toBeLessThanOrEqual(placesOfOne)
          const waits = [...waiting.values()].filter((other) => other === account).length > theirs
          if (waits) expect([running.length, theirs]).toSatisfy(([all, own]) => all === places || own === placesOfOne)
        }
      }
      for (const [index, step] of all.entries()) {
        const name = typeof step === 'number' ? (gate.running()[step] ?? '') : `${step}${index}`
        if (typeof step === 'number') {
          waiting.delete(name)
          await gate.finish(name)
        } else {
          waiting.set(name, step)
          await gate.add(step, name)
        }
        check()
      }
      while (gate.running().length > 0) {
        const [name = ''] = gate.running()
        waiting.delete(name)
        await gate.finish(name)
        check()
      }
      expect([...waiting.keys()]).toEqual([])
    }),
  )
})
