import { findFirstAccount } from '../alerts/alert-store.ts'
import { recordOperationsAlert } from '../alerts/operations.ts'
import { type Actor, recordAuditEvent } from '../audit/audit-log.ts'
import { hashSecret, isSecret, newId, newSecret } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import type { WorkerRow } from '../db/tables.ts'
import type { Write } from '../db/write.ts'
import { MAX_ABSENCE_S } from '../encode/capacity.ts'
import { Failure } from '../errors.ts'
import { deleteWorker, findWorkerByHash, findWorkerByName, insertWorker, listWorkers, updateWorker } from './worker-store.ts'

// Encoders on other machines: who they are, and whether they get work.

/** An encoder on another machine, as its row. */
export type Worker = WorkerRow

/** What a worker does now. */
export type CurrentTask = { videoId: string; kind: 'video' | 'audio'; firstSegment: number; segmentCount: number; forS: number }

/** What a running server does with its workers. Another process has none. */
export type WorkerTasks = {
  tasksOf(workerId: string): CurrentTask[]
  /** Ends them: their chunks are free again. */
  endTasksOf(workerId: string): void
}

export type WorkerDeps = {
  db: Db
  write: Write
  /** The playback clock. */
  nowS: () => number
  workerTasks: WorkerTasks | undefined
}

/** A worker as it is shown to administrators. */
export type WorkerStatus = Omit<WorkerRow, 'hash' | 'trusted' | 'drained' | 'kinds'> & {
  trusted: boolean
  drained: boolean
  kinds: string[]
  tasks: CurrentTask[]
}

/** Distinguishes the token of a worker from other secrets. */
const PREFIX = 'worker_'

/**
 * Adds a worker. Durable when it resolves.
 * @returns its token, the only copy
 * @throws Failure `conflict` when another has its name
 */
export async function addWorker(
  { write, nowS }: WorkerDeps,
  { name, trusted }: { name: string; trusted: boolean },
  by: Actor,
): Promise<{ id: string; name: string; token: string }> {
  const [id, token, atS] = [newId(), PREFIX + newSecret(), nowS()]
  await write(async (tx) => {
    const isNew = await insertWorker(tx, { id, name, hash: hashSecret(token), trusted: Number(trusted), createdAtS: atS })
    if (!isNew) throw new Failure('conflict', `There is a worker "${name}" already: remove it first, or choose another name.`)
    await recordAuditEvent(tx, {
      atS,
      accountId: undefined,
      by,
      kind: 'worker:added',
      subjects: [id],
      details: { name, trusted },
    })
  })
  return { id, name, token }
}

/** Removes a worker: its token is refused from now on, and its chunks are free. @throws Failure `not-found` */
export async function removeWorker(deps: WorkerDeps, name: string, by: Actor): Promise<{ name: string; removed: true }> {
  const { write, nowS, workerTasks } = deps
  const id = await write(async (tx) => {
    const { id } = await getWorker(tx, name)
    await deleteWorker(tx, id)
    await recordAuditEvent(tx, {
      atS: nowS(),
      accountId: undefined,
      by,
      kind: 'worker:removed',
      subjects: [id],
      details: { name },
    })
    return id
  })
  workerTasks?.endTasksOf(id)
  return { name, removed: true }
}

/**
 * Gives a worker no more chunks; it finishes those that it has. Or gives it chunks again, also after a suspension.
 * @throws Failure `not-found`
 */
export async function setWorkerDrained(
  { write, nowS }: WorkerDeps,
  name: string,
  drained: boolean,
  by: Actor,
): Promise<{ name: string; drained: boolean }> {
  await write(async (tx) => {
    const { id } = await getWorker(tx, name)
    await updateWorker(tx, id, { drained: Number(drained), ...(drained ? {} : { suspendedReason: null }) })
    const details = { name, drained }
    await recordAuditEvent(tx, { atS: nowS(), accountId: undefined, by, kind: 'worker:changed', subjects: [id], details })
  })
  return { name, drained }
}

async function getWorker(db: Db, name: string): Promise<WorkerRow> {
  const worker = await findWorkerByName(db, name)
  if (!worker) throw new Failure('not-found', `There is no worker "${name}". "reelgate worker list" names them.`)
  return worker
}

/** Suspends a worker whose results failed a check. */
export async function suspendWorker(
  { write, nowS }: Pick<WorkerDeps, 'write' | 'nowS'>,
  { id, name }: Pick<WorkerRow, 'id' | 'name'>,
  reason: string,
): Promise<void> {
  await write(async (tx) => {
    await updateWorker(tx, id, { suspendedReason: reason })
    const details = { name, reason }
    const account = await findFirstAccount(tx)
    if (account) {
      const alert = {
        accountId: account.id,
        cause: 'worker-suspended',
        subject: `worker ${id}`,
        numbers: { worker: name, reason },
      } as const
      await recordOperationsAlert(tx, alert, nowS())
    }
    await recordAuditEvent(tx, {
      atS: nowS(),
      accountId: undefined,
      by: 'server',
      kind: 'worker:changed',
      subjects: [id],
      details,
    })
  })
}

/** All workers, by name, with what each does now. */
export async function findWorkers({ db, workerTasks }: Pick<WorkerDeps, 'db' | 'workerTasks'>): Promise<WorkerStatus[]> {
  const rows = await listWorkers(db)
  return rows.map(({ hash: _, trusted, drained, kinds, ...row }) => ({
    ...row,
    kinds: kinds.split(','),
    trusted: trusted === 1,
    drained: drained === 1,
    tasks: workerTasks?.tasksOf(row.id) ?? [],
  }))
}

/** The worker that sends this token. @throws Failure `unauthenticated` */
export async function authenticateWorker({ db }: Pick<WorkerDeps, 'db'>, token: string): Promise<WorkerRow> {
  const isToken = token.startsWith(PREFIX) && isSecret(token.slice(PREFIX.length))
  const worker = isToken ? await findWorkerByHash(db, hashSecret(token)) : undefined
  if (worker) return worker
  throw new Failure(
    'unauthenticated',
    'The token of this worker is not known: it was removed, or mistyped. Add a worker with "reelgate worker add NAME".',
  )
}

/** A worker in the words of the console. */
export function describeWorker({ name, drained, suspendedReason, tasks, speed, lastSeenAtS }: WorkerStatus, nowS: number) {
  const isSilent = lastSeenAtS === null || nowS - lastSeenAtS >= MAX_ABSENCE_S
  const working = tasks.length > 0 ? 'encodes' : isSilent ? 'silent' : 'waits'
  const state = suspendedReason !== null ? 'suspended' : drained ? 'drained' : working
  return { name, state, reason: suspendedReason, chunks: tasks.length, speed, lastSeenAtS } as const
}
