import { pino } from 'pino'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type Dispatcher, type Job, startDispatcher } from '../../src/jobs/dispatcher.ts'
import { createSignals } from '../../src/signals/signals.ts'

test('as many jobs run concurrently as there are slots, and the next begins when one ends', async () => {
  const work = openWork({ slots: 2 })
  for (const name of ['a', 'b', 'c', 'd']) work.add(name)
  await work.settled()
  expect(work.running()).toEqual(['a', 'b'])
  work.finish('a')
  await work.settled()
  expect(work.running()).toEqual(['b', 'c'])
})

test('when all slots are taken one more job runs, if a viewer waits for it', async () => {
  const work = openWork({ slots: 2 })
  for (const name of ['a', 'b', 'c']) work.add(name)
  await work.settled()
  work.add('urgent 1')
  work.add('urgent 2')
  await work.settled()
  expect(work.running()).toEqual(['a', 'b', 'urgent 1'])
  // The urgent one has a place of its own: it never delays the others, and the next urgent one follows it.
  work.finish('urgent 1')
  await work.settled()
  expect(work.running()).toEqual(['a', 'b', 'urgent 2'])
})

test('F-62: however many urgent jobs wait, an ordinary slot that gets free takes what is next in order', async () => {
  const work = openWork({ slots: 2 })
  for (const name of ['a', 'b', 'urgent 1', 'c', 'urgent 2']) work.add(name)
  await work.settled()
  expect(work.running()).toEqual(['a', 'b', 'urgent 1'])
  work.finish('a')
  await work.settled()
  expect(work.running()).toEqual(['b', 'urgent 1', 'c'])
  work.finish('urgent 1')
  await work.settled()
  expect(work.running()).toEqual(['b', 'c', 'urgent 2'])
})

test('no wake is lost, whenever it comes: all of a thousand jobs run', async () => {
  const work = openWork({ slots: 3, finishAtOnce: true })
  for (let i = 0; i < 1000; i++) {
    work.add(`job ${i}`)
    if (i % 7 === 0) await Promise.resolve()
    if (i % 31 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  await work.settled()
  expect(work.done()).toHaveLength(1000)
  expect(new Set(work.done()).size).toBe(1000)
})

test('a wake that comes while the dispatcher looks for work makes it look again', async () => {
  const found: Job[] = []
  let claims = 0
  const ran = Promise.withResolvers<void>()
  const dispatcher = startDispatcher({
    slots: 1,
    log,
    async claim() {
      claims += 1
      const job = found.pop() // read before the job arrives, as a database would
      if (claims === 1) {
        found.push({ key: 'late', run: async () => ran.resolve() })
        dispatcher.wake()
      }
      await new Promise((resolve) => setImmediate(resolve))
      return job
    },
  })
  dispatcher.wake()
  await ran.promise
})

test('F-35: cancelling the work on a video ends its jobs, waits for them, and leaves the others alone', async () => {
  const work = openWork({ slots: 3 })
  for (const name of ['video/1', 'video/2', 'other/1']) work.add(name)
  await work.settled()
  await signals.send('work-cancelled', { videoIds: ['video'], work: 'mp4' }) // of another dispatcher
  expect(work.stopped()).toEqual([])
  await signals.send('work-cancelled', { videoIds: ['video'] })
  expect(work.stopped().sort()).toEqual(['video/1', 'video/2'])
  expect(work.running()).toEqual(['other/1'])
})

test('F-09: stopping takes no more work and resolves when nothing runs', async () => {
  const work = openWork({ slots: 2 })
  for (const name of ['a', 'b', 'c']) work.add(name)
  await work.settled()
  await work.dispatcher.stop()
  expect(work.running()).toEqual([])
  expect(work.stopped().sort()).toEqual(['a', 'b'])
  work.add('d')
  await work.settled()
  expect(work.started()).toEqual(['a', 'b'])
})

test.each([
  ['F-09', 'the dispatcher stops', (dispatcher: Dispatcher) => dispatcher.stop()],
  ['F-35', 'the work on its video is cancelled', () => signals.send('work-cancelled', { videoIds: ['late'], work: 'encode' })],
])('%s: a job that is claimed while %s is ended too', async (_row, _when, stop) => {
  const claimed = Promise.withResolvers<Job | undefined>()
  let signal: AbortSignal | undefined
  const claims = [claimed.promise]
  const dispatcher = startDispatcher({ slots: 1, log, follows, claim: async () => claims.shift() })
  dispatcher.wake()
  const stopped = stop(dispatcher)
  claimed.resolve({
    key: 'late',
    async run(given) {
      signal = given
      await new Promise<void>((resolve) => (given.aborted ? resolve() : given.addEventListener('abort', () => resolve())))
    },
  })
  await stopped
  expect(signal?.aborted).toBe(true)
})

test('a job that fails, or work that cannot be read, does not stop the rest', async () => {
  const ran = Promise.withResolvers<void>()
  const outcomes: (() => Promise<Job | undefined>)[] = [
    async () => ({ key: 'a', run: () => Promise.reject(new Error('broken')) }),
    () => Promise.reject(new Error('the database is busy')),
    async () => ({ key: 'b', run: async () => ran.resolve() }),
  ]
  const dispatcher = startDispatcher({ slots: 1, log, claim: async () => outcomes.shift()?.() })
  for (let look = 0; look < 3; look++) {
    dispatcher.wake()
    await new Promise((resolve) => setImmediate(resolve))
  }
  await ran.promise
  await dispatcher.stop() // immediately, though a failed job still has its place
})

test('F-16: while the database is away, work is looked for once a second, however many have said that there is some', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  let looks = 0
  const claim = async () => {
    looks++
    throw new Error('the database is away')
  }
  const dispatcher = startDispatcher({ slots: 1, log, claim })
  for (let wakes = 0; wakes < 5; wakes++) {
    dispatcher.wake()
    await new Promise((resolve) => setImmediate(resolve))
  }
  const before = looks
  await vi.advanceTimersByTimeAsync(3000)
  expect(looks - before).toBe(3)
  await dispatcher.stop()
})

test('F-12: a job that fails each time is tried again after a second, not as fast as the machine can', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  let runs = 0
  const failing = { key: 'a', run: () => Promise.reject(new Error(`the disk is full (${++runs})`)) }
  const dispatcher = startDispatcher({ slots: 1, log, claim: async () => (runs < 100 ? failing : undefined) })
  dispatcher.wake()
  expect(await settledRuns()).toBe(2) // the ordinary place and the urgent one
  await vi.advanceTimersByTimeAsync(999)
  expect(await settledRuns()).toBe(2)
  await vi.advanceTimersByTimeAsync(1)
  expect(await settledRuns()).toBe(4)
  await dispatcher.stop() // which does not wait for the next second

  async function settledRuns() {
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
    return runs
  }
})

test('F-16: jobs that could not be read are looked for again without being announced', async () => {
  const ran = Promise.withResolvers<void>()
  const outcomes: (() => Promise<Job | undefined>)[] = [
    () => Promise.reject(new Error('the database is in use')),
    async () => ({ key: 'a', run: async () => ran.resolve() }),
  ]
  const dispatcher = startDispatcher({ slots: 1, log, claim: async () => outcomes.shift()?.() })
  dispatcher.wake()
  await ran.promise
  await dispatcher.stop()
})

const log = pino({ level: 'silent' })

const signals = createSignals({ onCommit: () => undefined })
const follows = { signals, work: 'encode' } as const

/** Work that a test adds and finishes by name; the part before `/` is its key, and a name that begins with `urgent` is urgent. */
function openWork({ slots, finishAtOnce = false }: { slots: number; finishAtOnce?: boolean }) {
  const waiting: string[] = []
  const [started, done, stopped]: [string[], string[], string[]] = [[], [], []]
  const running = new Map<string, () => void>()
  const isUrgent = (name: string) => name.startsWith('urgent')

  async function claim(urgentOnly: boolean): Promise<Job | undefined> {
    await new Promise((resolve) => setImmediate(resolve))
    const at = waiting.findIndex((name) => !urgentOnly || isUrgent(name))
    const [name] = at < 0 ? [] : waiting.splice(at, 1)
    return name === undefined ? undefined : { key: name.split('/')[0] ?? '', run: (signal) => run(name, signal) }
  }

  async function run(name: string, signal: AbortSignal): Promise<void> {
    started.push(name)
    if (!finishAtOnce) {
      await new Promise<void>((resolve) => {
        running.set(name, resolve)
        signal.addEventListener('abort', () => setImmediate(resolve))
      })
    }
    running.delete(name)
    ;(signal.aborted ? stopped : done).push(name)
  }

  const dispatcher = startDispatcher({ slots, claim, follows, log })
  return {
    dispatcher,
    add(name: string) {
      waiting.push(name)
      dispatcher.wake()
    },
    finish: (name: string) => running.get(name)?.(),
    running: () => [...running.keys()],
    started: () => started,
    done: () => done,
    stopped: () => stopped,
    /** Resolves when the dispatcher has looked and nothing more begins. */
    async settled() {
      for (let idle = 0, before = -1; idle < 10; idle = before === started.length + done.length ? idle + 1 : 0) {
        before = started.length + done.length
        await new Promise((resolve) => setImmediate(resolve))
      }
    },
  }
}
