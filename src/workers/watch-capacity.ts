import { findFirstAccount } from '../alerts/alert-store.ts'
import { recordOperationsAlert } from '../alerts/operations.ts'
import type { Write } from '../db/write.ts'
import { type CapacityDeps, findStuckKinds } from '../encode/capacity.ts'

/**
 * Raises an alert when chunks wait of a kind that no encoder takes which is there, once until it is over.
 * @returns to be called once a minute
 */
export function createCapacityWatch(deps: CapacityDeps & { write: Write }): () => Promise<void> {
  let alerted = ''
  return async () => {
    const kinds = (await findStuckKinds(deps)).join(' and ')
    const isNew = kinds !== '' && kinds !== alerted
    alerted = kinds
    const account = isNew ? await findFirstAccount(deps.db) : undefined
    if (!account) return
    const alert = { accountId: account.id, cause: 'encoder-missing', numbers: { kinds } } as const
    await deps.write((tx) => recordOperationsAlert(tx, alert, deps.nowS()))
  }
}
