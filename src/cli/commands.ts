import { type Static, type TSchema, Type } from 'typebox'
import { Value } from 'typebox/value'
import { changeAccount, createAccount, findAccounts } from '../accounts/account.ts'
import { type AccountDeps, createApiKey, findApiKeys, PERMISSIONS, revokeKey } from '../accounts/api-key.ts'
import { Failure } from '../errors.ts'
import { boundKeyId } from '../installation.ts'
import { findBans, type Lifting, liftBan } from '../limits/bans.ts'

/** What commands work on. `bans.forget`: a running server's memory. */
export type CommandDeps = AccountDeps & { bans: Lifting }

/** One thing that the command line asks for, here or of a running server. */
export type Command<Deps> = { args: TSchema; run(deps: Deps, args: unknown): Promise<unknown> }

export function command<Deps, S extends TSchema>(args: S, run: (deps: Deps, args: Static<S>) => Promise<unknown>): Command<Deps> {
  return {
    args,
    run(deps, given) {
      if (!Value.Check(args, given)) throw new Failure('invalid', 'The command’s arguments cannot be read. See reelgate --help.')
      return run(deps, given)
    },
  }
}

const Name = Type.String({ minLength: 1, maxLength: 100 })
const Id = Type.String({ pattern: '^[0-9a-f]{32}$' })

export const COMMANDS = {
  'account create': command(
    Type.Object({ name: Name, mayUpload: Type.Boolean(), mayImport: Type.Boolean() }),
    (deps: CommandDeps, { name, ...switches }) => createAccount(deps, name, switches),
  ),
  'account set': command(
    Type.Object({
      account: Name,
      limitFactor: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
      pageMax: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
      streamLimit: Type.Optional(Type.Integer({ minimum: 0, maximum: 100 })),
      whenFull: Type.Optional(Type.Union([Type.Literal('refuse'), Type.Literal('stop-oldest')])),
    }),
    (deps: CommandDeps, { account, ...changes }) => changeAccount(deps, account, changes),
  ),
  'account list': command(Type.Object({}), (deps: CommandDeps) => findAccounts(deps)),
  'key create': command(
    Type.Object({
      accountId: Id,
      name: Name,
      permissions: Type.Array(Type.Union(PERMISSIONS.map((name) => Type.Literal(name))), { minItems: 1 }),
    }),
    (deps: CommandDeps, { accountId, ...key }) => createApiKey(deps, accountId, key),
  ),
  'key list': command(Type.Object({ accountId: Id }), (deps: CommandDeps, { accountId }) => findApiKeys(deps, accountId)),
  'key revoke': command(Type.Object({ keyId: Id }), async (deps: CommandDeps, { keyId }) => {
    await revokeKey(deps, keyId)
    return { keyId, revoked: true }
  }),
  'ban list': command(Type.Object({}), ({ bans }: CommandDeps) => findBans(bans)),
  'ban lift': command(
    Type.Object({ subject: Type.String({ minLength: 1, maxLength: 100 }) }),
    ({ bans }: CommandDeps, { subject }) => liftBan(bans, subject),
  ),
  'master key id': command(Type.Object({}), async ({ db }: CommandDeps) => ({ id: (await boundKeyId(db)) ?? null })),
} as const satisfies Record<string, Command<CommandDeps>>

export type CommandName = keyof typeof COMMANDS
