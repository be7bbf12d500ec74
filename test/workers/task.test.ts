import { expect, test } from 'vitest'
import type { Plan } from '../../src/encode/plan.ts'
import { Failure } from '../../src/errors.ts'
import { openTask, WorkerLost } from '../../src/workers/task.ts'

// The time of a task, on a clock of the test.

const PLAN: Plan = {
  durationS: 600,
  isSeekable: true,
  audioTrack: { renditionId: 9, bitrateBps: 128_000, frameCount: 28_125, name: 'Director’s comments', language: 'de' },
  notices: ['Audio track 9 is left out.'],
}
const GB = 10 ** 9

function openAudioTask(sealed = { sizeBytes: GB, hasIndex: true }) {
  const clock = { ms: 0 }
  const task = openTask(
    { id: 'a'.repeat(32), name: 'office', trusted: 0 },
    {
      ...{
        video: { videoId: 'b'.repeat(32), generation: 1, sourceNumber: 1 },
        plan: PLAN,
        encoder: '',
        threads: 1,
        gains: new Map(),
      },
      part: { kind: 'audio', firstSegment: 5, segmentCount: 15, decodesFromStart: false },
      source: { keyHex: '1'.repeat(32), ivHex: '2'.repeat(32), sizeBytes: GB - 1, withLocalCopy: async (use) => use('') },
      signal: new AbortController().signal,
    },
    sealed,
    () => clock.ms,
  )
  return { task, clock }
}

test('J09: a task ends after 45 s without a request, and what its worker sends later is refused', async () => {
  const { task, clock } = openAudioTask()
  clock.ms = 44_000
  expect(task.isOverdue(clock.ms)).toBe(false)
  task.beat()
  clock.ms = 88_000
  expect(task.isOverdue(clock.ms)).toBe(false)
  clock.ms = 90_000
  expect(task.isOverdue(clock.ms)).toBe(true)
  task.fail(new WorkerLost('silent'))
  await expect(task.ended).rejects.toBeInstanceOf(WorkerLost)
  await expect(task.receiveSegment(9, 5, bodyOf(8))).rejects.toBeInstanceOf(Failure)
  expect(() => task.end({ outcome: 'done' })).toThrow(Failure)
})

/** A request's body of so many bytes, in parts as they arrive. */
async function* bodyOf(sizeBytes: number) {
  for (let sent = 0; sent < sizeBytes; sent += 8192) yield Buffer.alloc(Math.min(8192, sizeBytes - sent))
}

test('F-348: what a worker sends for one task, in any number of requests at the same moment, is bounded by its ladder', async () => {
  const { task } = openAudioTask()
  const outcomes = await Promise.allSettled(Array.from({ length: 500 }, () => task.receiveSegment(9, 5, bodyOf(100_000))))
  expect(outcomes.some(({ status }) => status === 'rejected')).toBe(true)
  for (const outcome of outcomes) if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ kind: 'too-large' })
  expect([0, 100_000]).toContain(task.heldBytes()) // what was refused, or came twice, takes no room
  await task.receiveInit(9, bodyOf(700))
  for (let number = 5; number < 20; number++) await task.receiveSegment(9, number, bodyOf(100_000))
  task.end({ outcome: 'done' })
  await expect(task.ended).resolves.toEqual({ outcome: 'done' })
})

test('J09: a worker that sends heartbeats and nothing else does not keep a chunk for ever', () => {
  const { task, clock } = openAudioTask()
  for (; clock.ms < 24 * 3600 * 1000 && !task.isOverdue(clock.ms); clock.ms += 10_000) task.beat()
  expect(clock.ms / 1000).toBeLessThan(2 * (120 + 30 * 61) + 30)
})

test('J10: of a large file with an index a chunk of a tenth gets three tenths and 16 MiB, of another file all', () => {
  const ofTenth = openAudioTask().task.body.source
  expect(ofTenth.allowedBytes / GB).toBeCloseTo(0.3 + (16 * 2 ** 20) / GB, 2)
  expect(openAudioTask({ sizeBytes: GB, hasIndex: false }).task.body.source.allowedBytes).toBe(GB)
})

test('J03: a task has no name or language of a track, and no sentence for the owner', () => {
  const text = JSON.stringify(openAudioTask().task.body)
  expect(text).not.toMatch(/Director|"de"|left out/)
})
