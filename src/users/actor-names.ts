import { listKeyNames } from '../accounts/api-key-store.ts'
import type { Db } from '../db/database.ts'
import { listTokenReferences } from '../ingest/upload-token-store.ts'
import { listUserNames } from './user-store.ts'

/** By an actor as the audit log stores it: the id of an API key, or `user:` or `upload-token:` and the id of a person or token. */
export type ActorNames = ReadonlyMap<string, string>

const USER = /^user:/
const TOKEN = /^upload-token:/

/** The names of those who did something, as far as they still exist. */
export async function findActorNames({ db }: { db: Db }, actors: readonly string[]): Promise<ActorNames> {
  const known = [...new Set(actors)]
  const userIds = known.filter((actor) => USER.test(actor)).map((actor) => actor.replace(USER, ''))
  const keyIds = known.filter((actor) => /^[0-9a-f]{32}$/.test(actor))
  const tokenIds = known.filter((actor) => TOKEN.test(actor)).map((actor) => actor.replace(TOKEN, ''))
  const [keys, users] = [await listKeyNames(db, keyIds), await listUserNames(db, userIds)]
  const tokens = await listTokenReferences(db, tokenIds)
  const withKind = (kind: string, names: ReadonlyMap<string, string>) =>
    [...names].map(([id, name]): [string, string] => [`${kind}:${id}`, name])
  return new Map([...keys, ...withKind('user', users), ...withKind('upload-token', tokens)])
}
