import type { FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { changeUser, deleteUser, findUsers, inviteUser, makeUserLink } from '../../users/manage-users.ts'
import { consoleUrl, linkUrl, type SignInLink } from '../../users/sign-in-link.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { Flag, isOn, isOnIfGiven } from '../wire/flag.ts'
import { isoTime, isoTimeOrNull } from '../wire/iso-time.ts'
import { operation } from '../wire/operation.ts'
import { readSignInToken } from './cookie.ts'
import { browserOf, EmailOrNull, type SignInRoutesDeps } from './sign-in.ts'

const RoleName = Type.Union([Type.Literal('owner'), Type.Literal('uploader'), Type.Literal('viewer')], {
  description:
    'owner: everything in the account; uploader: adds videos, and edits those that they have added; viewer: only reads',
  examples: ['viewer'],
})
const Name = Type.String({ minLength: 1, maxLength: 100, description: 'such as an e-mail address; unique in the installation' })
const UserBody = Type.Object({
  id: Type.String(),
  name: Type.String(),
  email: EmailOrNull,
  role: RoleName,
  administrator: Type.Boolean({ description: 'whether the operations of the installation are available' }),
  disabled: Type.Boolean({ description: 'true: cannot sign in' }),
  hasPassword: Type.Boolean(),
  passkeys: Type.Integer({ description: 'how many' }),
  createdAt: Type.String({ description: 'ISO 8601' }),
  lastSeenAt: Type.Union([Type.String(), Type.Null()], { description: 'ISO 8601; null: not in the last weeks' }),
})
const ListReply = Type.Object({ rows: Type.Array(UserBody) })
export type UserListBody = Static<typeof ListReply>
const UserParams = Type.Object({ id: Type.String({ description: 'of the person', examples: [EXAMPLE.userId] }) })

const InviteBody = Type.Object({
  name: { ...Name, examples: ['ben@example.org'] },
  email: Type.Optional(EmailOrNull),
  role: RoleName,
  administrator: Type.Optional(Flag),
})
const ChangeBody = Type.Object({
  name: Type.Optional(Name),
  email: Type.Optional(EmailOrNull),
  role: Type.Optional(RoleName),
  administrator: Type.Optional(Flag),
  disabled: Type.Optional(Flag),
})
const Link = Type.Object({
  url: Type.String({ description: 'signs the person in once; send it to that person alone' }),
  expiresAt: Type.String({ description: 'ISO 8601' }),
})
const InviteReply = Type.Object({ id: Type.String(), link: Link })
export type InvitationBody = Static<typeof InviteReply>
const LinkReply = Type.Object({ link: Link })
export type NewLinkBody = Static<typeof LinkReply>
const ChangedReply = Type.Object({ message: Type.Literal('Changed') })
const DeletedReply = Type.Object({ message: Type.Literal('Deleted') })

/** The people of the account that is looked at. */
export function userRoutes(app: App, deps: SignInRoutesDeps): void {
  const { signIn } = deps
  const person = (request: FastifyRequest) => deps.findSignedIn(readSignInToken(deps, request))
  const linkBody = ({ token, expiresAtS }: SignInLink): Static<typeof Link> => ({
    url: linkUrl(consoleUrl(deps.publicUrl()), token),
    expiresAt: isoTime(expiresAtS),
  })

  app.get(
    '/users',
    operation('editor', {
      summary: 'List people',
      description: 'Those who may sign in to this account, the oldest first.',
      response: { 200: ListReply },
    }),
    async (request): Promise<Static<typeof ListReply>> => {
      const users = await findUsers(signIn, (await person(request)).accountId)
      return {
        rows: users.map(({ isAdministrator, passkeyCount, createdAtS, lastSeenAtS, ...user }) => ({
          ...user,
          ...{ administrator: isAdministrator, passkeys: passkeyCount },
          ...{ createdAt: isoTime(createdAtS), lastSeenAt: isoTimeOrNull(lastSeenAtS) },
        })),
      }
    },
  )

  app.post(
    '/users',
    operation('editor', {
      summary: 'Invite a person',
      description: 'Returns a link, valid for 24 hours, with which the person signs in and sets a password or a passkey.',
      body: InviteBody,
      response: { 200: InviteReply },
    }),
    async (request) => {
      const { name, email, role, administrator = 0 } = request.body
      const invitation = { name, email, role, isAdministrator: isOn(administrator) }
      const { id, ...link } = await inviteUser(signIn, await person(request), invitation)
      return { id, link: linkBody(link) }
    },
  )

  app.put(
    '/users/:id',
    operation('editor', {
      summary: 'Change a person',
      description:
        'What is absent stays as it is. A person who is disabled is signed out everywhere. People cannot change their own role. Another e-mail address is notified to the former one, and needs a sign-in of the last 10 minutes.',
      params: UserParams,
      body: ChangeBody,
      response: { 200: ChangedReply },
    }),
    async (request) => {
      const { name, email, role, administrator, disabled } = request.body
      const flags = { isAdministrator: isOnIfGiven(administrator), disabled: isOnIfGiven(disabled) }
      const change = { id: request.params.id, name, email, role, ...flags }
      await changeUser(signIn, await person(request), change, browserOf(deps, request))
      return { message: 'Changed' as const }
    },
  )

  app.delete(
    '/users/:id',
    operation('editor', { summary: 'Delete a person', params: UserParams, response: { 200: DeletedReply } }),
    async (request) => {
      await deleteUser(signIn, await person(request), request.params.id, browserOf(deps, request))
      return { message: 'Deleted' as const }
    },
  )

  app.post(
    '/users/:id/link',
    operation('editor', {
      summary: 'Make a new link for a person',
      description: 'For a lost link or password. Earlier links of the person stop working.',
      params: UserParams,
      response: { 200: LinkReply },
    }),
    async (request) => ({ link: linkBody(await makeUserLink(signIn, await person(request), request.params.id)) }),
  )
}
