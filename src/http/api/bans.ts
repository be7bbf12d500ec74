import { type Static, Type } from 'typebox'
import { Failure } from '../../errors.ts'
import { type BanAdmin, liftAccountBan, listAccountBans } from '../../rate-limits/bans.ts'
import { authenticateRequest } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'

const BanBody = Type.Object({
  scope: Type.String({ description: 'key or account' }),
  subject: Type.String({ description: 'the id of the key or of the account' }),
  budget: Type.String({ description: 'the class of calls that is banned: reads, writes, otp or uploads' }),
  secondsLeft: Type.Integer({ description: 'until it ends' }),
  endsAt: Type.String({ description: 'when it ends, ISO 8601' }),
})
const ListReply = Type.Object({ rows: Type.Array(BanBody) })
export type BanListBody = Static<typeof ListReply>

const Subject = Type.Object({
  subject: Type.Optional(
    Type.String({ description: 'from the list of bans; in the query or in the body', examples: [EXAMPLE.keyId] }),
  ),
})
const LiftReply = Type.Object({ message: Type.Literal('Lifted') })

type BanRoutesDeps = { bans: BanAdmin }

/** The bans of the account and of its keys. They answer a banned account, too, if the key is not banned itself. */
export function banRoutes(app: App, { bans }: BanRoutesDeps): void {
  const config = { permission: 'editor', isOpenToBanned: true } as const

  app.get(
    '/bans',
    {
      config,
      schema: {
        summary: 'List bans',
        description: 'Bans of the account and its keys. Available to a banned account, too.',
        response: { 200: ListReply },
      },
    },
    async (request) => ({
      rows: await listAccountBans(bans, authenticateRequest(request).accountId),
    }),
  )

  app.delete(
    '/bans',
    {
      config,
      schema: {
        summary: 'Lift a ban',
        querystring: Subject,
        body: Type.Union([Subject, Type.Null()]),
        response: { 200: LiftReply },
      },
    },
    async (request) => {
      const subject = request.query.subject ?? request.body?.subject
      if (!subject) throw new Failure('invalid', 'Name the ban by its subject: DELETE /api/bans?subject=ID.')
      const holder = authenticateRequest(request)
      await liftAccountBan(bans, holder.accountId, holder, subject)
      return { message: 'Lifted' as const }
    },
  )
}
