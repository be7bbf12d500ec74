import { expect, test } from 'vitest'
import { createWorkerWatch } from '../../src/workers/watch-workers.ts'
import { suspendWorker, type WorkerTasks } from '../../src/workers/worker.ts'
import { insertWorker } from '../../src/workers/worker-store.ts'
import { openOwnDatabase } from '../db/database.ts'

test('J11: a worker that was silent for ten minutes is an alert, once; one that encodes, is drained or was never seen is none', async () => {
  const { db, write } = await openOwnDatabase()
  await write((tx) =>
    tx.insertInto('account').values({ id: 'a', name: 'owner', createdAtS: 0, mayUpload: 1, mayImport: 1 }).execute(),
  )
  const row = (name: string, more = {}) => ({
    id: name,
    name,
    hash: Buffer.from(name),
    createdAtS: 0,
    lastSeenAtS: 1_000,
    ...more,
  })
  const rows = [row('busy'), row('silent'), row('drained', { drained: 1 }), row('new', { lastSeenAtS: null })]
  await write(async (tx) => {
    for (const each of rows) await insertWorker(tx, each)
  })
  const task = { videoId: 'v', kind: 'video', firstSegment: 0, segmentCount: 1, forS: 1 } as const
  const workerTasks: WorkerTasks = { tasksOf: (id) => (id === 'busy' ? [task] : []), endTasksOf: () => undefined }
  const clock = { s: 1_599 }
  const nowS = () => clock.s
  const watch = createWorkerWatch({ db, write, nowS, workerTasks })
  const alerts = () => db.selectFrom('alert').select(['cause', 'subject', 'occurrenceCount']).orderBy('id').execute()
  await watch()
  expect(await alerts()).toEqual([])
  clock.s = 1_600
  await watch()
  await watch()
  const silent = { cause: 'worker-silent', subject: 'worker silent', occurrenceCount: 1 }
  expect(await alerts()).toEqual([silent])
  await suspendWorker({ write, nowS }, { id: 'busy', name: 'busy' }, 'other frames')
  expect(await alerts()).toEqual([silent, { cause: 'worker-suspended', subject: 'worker busy', occurrenceCount: 1 }])
})
