import type { FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { endOtherSignIns, endSignIn, findSignIns, lookAtAccount } from '../../users/sign-ins.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { isoTime } from '../wire/iso-time.ts'
import { OWN_CHANGE, operation } from '../wire/operation.ts'
import { readSignInToken } from './cookie.ts'
import { browserOf, Method, SignInReply, type SignInRoutesDeps, signedInReply } from './sign-in.ts'

const SignInBody = Type.Object({
  id: Type.String(),
  method: Method,
  address: Type.String({ description: 'where it began' }),
  userAgent: Type.String(),
  createdAt: Type.String({ description: 'ISO 8601' }),
  lastSeenAt: Type.String({ description: 'ISO 8601; up to ten minutes late' }),
  expiresAt: Type.String({ description: 'ISO 8601; after a week without use it ends earlier' }),
  current: Type.Boolean({ description: 'whether it is the one that asks' }),
})
const ListReply = Type.Object({ rows: Type.Array(SignInBody) })
export type SignInListBody = Static<typeof ListReply>
const SignInParams = Type.Object({ id: Type.String({ description: 'of the sign-in', examples: [EXAMPLE.signInId] }) })
const EndedReply = Type.Object({ message: Type.Literal('Signed out') })
const AllEndedReply = Type.Interface([EndedReply], { count: Type.Integer({ description: 'how many browsers' }) })
const AccountChoice = Type.Object({ account: Type.String({ description: 'id of the account', examples: [EXAMPLE.accountId] }) })

/** The browsers in which a person is signed in, and the account that this one looks at. */
export function signInsRoutes(app: App, deps: SignInRoutesDeps): void {
  const { signIn } = deps
  const person = (request: FastifyRequest) => deps.findSignedIn(readSignInToken(deps, request))

  app.get(
    '/sign-ins',
    operation('viewer', {
      summary: 'List sign-ins',
      description: 'The browsers in which the person is signed in, the newest first.',
      response: { 200: ListReply },
    }),
    async (request): Promise<Static<typeof ListReply>> => {
      const { consoleUserId, signInId } = await person(request)
      const signIns = await findSignIns(signIn, { consoleUserId })
      return {
        rows: signIns.map(({ createdAtS, lastSeenAtS, expiresAtS, ...row }) => ({
          ...row,
          ...{ createdAt: isoTime(createdAtS), lastSeenAt: isoTime(lastSeenAtS), expiresAt: isoTime(expiresAtS) },
          current: row.id === signInId,
        })),
      }
    },
  )

  app.delete(
    '/sign-ins',
    operation(OWN_CHANGE, { summary: 'Sign out all other browsers', response: { 200: AllEndedReply } }),
    async (request) => ({
      message: 'Signed out' as const,
      count: await endOtherSignIns(signIn, await person(request), browserOf(deps, request)),
    }),
  )

  app.delete(
    '/sign-ins/:id',
    operation(OWN_CHANGE, { summary: 'Sign out one browser', params: SignInParams, response: { 200: EndedReply } }),
    async (request) => {
      await endSignIn(signIn, await person(request), request.params.id)
      return { message: 'Signed out' as const }
    },
  )

  app.put(
    '/sign-in/account',
    operation(OWN_CHANGE, {
      summary: 'Look into an account',
      description:
        'For administrators: the operations of this sign-in concern that account from now on, with the permissions of an owner. The audit log of the account records it.',
      body: AccountChoice,
      response: { 200: SignInReply },
    }),
    async (request): Promise<SignInReply> => {
      await lookAtAccount(signIn, await person(request), request.body.account)
      return signedInReply(deps, await person(request))
    },
  )
}
