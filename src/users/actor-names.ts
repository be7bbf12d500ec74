import { listKeyNames } from '../accounts/api-key-store.ts'
import type { Db } from '../db/database.ts'
import { listUserNames } from './user-store.ts'

/** By an actor as the audit log stores it: the id of an API key, or `user:` and the id of a person. */
export type ActorNames = ReadonlyMap<string, string>

const USER = /^user:/

/** The names of those who did something, as far as they still exist. */
export async function findActorNames({ db }: { db: Db }, actors: readonly string[]): Promise<ActorNames> {
  const known = [...new Set(actors)]
  const userIds = known.filter((actor) => USER.test(actor)).map((actor) => actor.replace(USER, ''))
  const keyIds = known.filter((actor) => /^[0-9a-f]{32}$/.test(actor))
  const [keys, users] = [await listKeyNames(db, keyIds), await listUserNames(db, userIds)]
  return new Map([...keys, ...[...users].map(([id, name]): [string, string] => [`user:${id}`, name])])
}
