import { type Static, type TSchema, Type } from 'typebox'
import { Value } from 'typebox/value'
import { changeAccount, createAccount, findAccounts } from '../accounts/account.ts'
import { type AccountDeps, createApiKey, findApiKeys, PERMISSIONS, revokeKey } from '../accounts/api-key.ts'
import { Failure } from '../errors.ts'
import { findBans, type Lifting, liftBan } from '../limits/bans.ts'

/** What commands work on. `bans.forget`: a running server's memory. */
export type CommandDeps = AccountDeps & { bans: Lifting }

/** One thing that the command line asks for, here or of a running server. */
type Command = { args: TSchema; run(deps: CommandDeps, args: unknown): Promise<unknown> }

function command<S extends TSchema>(args: S, run: (deps: CommandDeps, args: Static<S>) => Promise<unknown>): Command {
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
    (deps, { name, ...switches }) => createAccount(deps, name, switches),
  ),
  'account set': command(
    Type.Object({
      account: Name,
      limitFactor: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
      pageMax: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    }),
    (deps, { account, ...changes }) => changeAccount(deps, account, changes),
  ),
  'account list': command(Type.Object({}), (deps) => findAccounts(deps)),
  'key create': command(
    Type.Object({
      accountId: Id,
      name: Name,
      permissions: Type.Array(Type.Union(PERMISSIONS.map((name) => Type.Literal(name))), { minItems: 1 }),
    }),
    (deps, { accountId, ...key }) => createApiKey(deps, accountId, key),
  ),
  'key list': command(Type.Object({ accountId: Id }), (deps, { accountId }) => findApiKeys(deps, accountId)),
  'key revoke': command(Type.Object({ keyId: Id }), async (deps, { keyId }) => {
    await revokeKey(deps, keyId)
    return { keyId, revoked: true }
  }),
  'ban list': command(Type.Object({}), ({ bans }) => findBans(bans)),
  'ban lift': command(Type.Object({ subject: Type.String({ minLength: 1, maxLength: 100 }) }), ({ bans }, { subject }) =>
    liftBan(bans, subject),
  ),
} as const satisfies Record<string, Command>

export type CommandName = keyof typeof COMMANDS

export function isCommandName(name: unknown): name is CommandName {
  return typeof name === 'string' && Object.hasOwn(COMMANDS, name)
}
