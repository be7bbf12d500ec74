import { type Static, Type } from 'typebox'
import {
  type AccountDisablingDeps,
  changeAccount,
  createEmptyAccount,
  findAccounts,
  getAccountById,
  setAccountDisabled,
} from '../../accounts/account.ts'
import type { AccountChanges } from '../../accounts/account-store.ts'
import { Failure } from '../../errors.ts'
import { AccountBody, accountBody } from '../api/account.ts'
import { authenticateRequest } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { Flag, isOn, isOnIfGiven } from '../wire/flag.ts'
import { ADMINISTRATOR, operation } from '../wire/operation.ts'

const Name = Type.String({ minLength: 1, maxLength: 100, examples: ['A school'] })
const ListReply = Type.Object({ rows: Type.Array(AccountBody) })
export type AccountListBody = Static<typeof ListReply>
const AccountParams = Type.Object({ id: Type.String({ description: 'of the account', examples: [EXAMPLE.accountId] }) })
const CreateBody = Type.Object({
  name: Name,
  mayUpload: Type.Optional({ ...Flag, description: 'default 1' }),
  mayImport: Type.Optional({ ...Flag, description: 'default 1' }),
})
const ChangeBody = Type.Object({
  name: Type.Optional(Name),
  disabled: Type.Optional({ ...Flag, description: '1: its keys and people are refused, and its videos stop playing' }),
  mayUpload: Type.Optional(Flag),
  mayImport: Type.Optional(Flag),
  otpDefaultsRemovable: Type.Optional(Flag),
  deletesToTrash: Type.Optional(Flag),
  normalizesLoudness: Type.Optional(Flag),
  limitFactor: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
  pageMax: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  streamLimit: Type.Optional(Type.Integer({ minimum: 0, maximum: 100 })),
  whenFull: Type.Optional(Type.Union([Type.Literal('refuse'), Type.Literal('stop-oldest')])),
  storageLimitBytes: Type.Optional(
    Type.Union([Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }), Type.Null()], {
      description: 'what its videos may take on the disk, those in the trash included; null: no limit',
      examples: [50_000_000_000],
    }),
  ),
})

/** The accounts of the installation, for its administrators. */
export function accountAdminRoutes(app: App, deps: AccountDisablingDeps): void {
  app.get(
    '/accounts',
    operation(ADMINISTRATOR, { summary: 'List accounts', description: 'For administrators.', response: { 200: ListReply } }),
    async () => ({ rows: (await findAccounts(deps)).map(accountBody) }),
  )

  app.post(
    '/accounts',
    operation(ADMINISTRATOR, {
      summary: 'Create an account',
      description: 'For administrators. It has no API key and no people: look into it, and add them.',
      body: CreateBody,
      response: { 200: AccountBody },
    }),
    async (request) => {
      const { name, mayUpload = 1, mayImport = 1 } = request.body
      const settings = { name, mayUpload: isOn(mayUpload), mayImport: isOn(mayImport) }
      return accountBody(await getAccountById(deps, await createEmptyAccount(deps, settings, authenticateRequest(request))))
    },
  )

  app.put(
    '/accounts/:id',
    operation(ADMINISTRATOR, {
      summary: 'Change an account',
      description: 'For administrators. What is absent stays as it is.',
      params: AccountParams,
      body: ChangeBody,
      response: { 200: AccountBody },
    }),
    async (request) => {
      const by = authenticateRequest(request)
      const { id } = await getAccountById(deps, request.params.id)
      const disabled = isOnIfGiven(request.body.disabled)
      if (disabled && id === by.accountId)
        throw new Failure('conflict', 'You are in this account. Look into another one to disable it.')
      await changeAccount(deps, id, readChanges(request.body), by)
      if (disabled !== undefined) await setAccountDisabled(deps, id, disabled, by)
      return accountBody(await getAccountById(deps, id))
    },
  )
}

/** The settings that the body names. */
function readChanges(body: Static<typeof ChangeBody>): AccountChanges {
  const { name, limitFactor, pageMax, streamLimit, whenFull, storageLimitBytes } = body
  return {
    ...{ name, limitFactor, pageMax, streamLimit, whenFull, storageLimitBytes },
    ...{ mayUpload: isOnIfGiven(body.mayUpload), mayImport: isOnIfGiven(body.mayImport) },
    otpDefaultsRemovable: isOnIfGiven(body.otpDefaultsRemovable),
    deletesToTrash: isOnIfGiven(body.deletesToTrash),
    normalizesLoudness: isOnIfGiven(body.normalizesLoudness),
  }
}
