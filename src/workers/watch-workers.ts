import { findFirstAccount } from '../alerts/alert-store.ts'
import { recordOperationsAlert } from '../alerts/operations.ts'
import { MAX_ABSENCE_S } from '../encode/capacity.ts'
import type { WorkerDeps } from './worker.ts'
import { listWorkers, updateWorker } from './worker-store.ts'

/**
 * Looks after workers: a task in progress counts as seen, and one that was silent for ten minutes raises an alert, once until it is seen again.
 * @returns to be called once a minute
 */
export function createWorkerWatch({ db, write, nowS, workerTasks }: WorkerDeps): () => Promise<void> {
  const alerted = new Set<string>()
  return async () => {
    const account = await findFirstAccount(db)
    for (const { id, name, lastSeenAtS, drained, suspendedReason } of await listWorkers(db)) {
      const isWorking = (workerTasks?.tasksOf(id).length ?? 0) > 0
      if (isWorking) await write((tx) => updateWorker(tx, id, { lastSeenAtS: nowS() }))
      const isExpected = drained === 0 && suspendedReason === null && lastSeenAtS !== null
      const isSilent = isExpected && !isWorking && nowS() - lastSeenAtS >= MAX_ABSENCE_S
      if (!isSilent) alerted.delete(id)
      if (!isSilent || alerted.has(id) || !account) continue
      const alert = { accountId: account.id, cause: 'worker-silent', subject: `worker ${id}`, numbers: { worker: name } } as const
      await write((tx) => recordOperationsAlert(tx, alert, nowS()))
      alerted.add(id)
    }
  }
}
