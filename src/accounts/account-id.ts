import type { Db } from '../db/database.ts'
import { Failure } from '../errors.ts'
import { findAccountIds } from './account-store.ts'

/**
 * The id of the only account that has this id or name.
 * @throws Failure `not-found`, or `conflict` when several accounts have the name
 */
export async function findAccountId(db: Db, idOrName: string): Promise<string> {
  const ids = await findAccountIds(db, idOrName)
  const [accountId] = ids
  if (accountId === undefined) throw new Failure('not-found', `There is no account "${idOrName}". See "reelgate account list".`)
  if (ids.length > 1)
    throw new Failure('conflict', `${ids.length} accounts are named "${idOrName}": ${ids.join(', ')}. Give one of these ids.`)
  return accountId
}
