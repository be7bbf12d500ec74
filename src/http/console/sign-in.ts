import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import packageJson from '../../../package.json' with { type: 'json' }
import { findAccounts } from '../../accounts/account.ts'
import { Failure } from '../../errors.ts'
import type { FindSignedIn, SignedIn } from '../../users/authenticate.ts'
import { setOwnEmail } from '../../users/email.ts'
import {
  type Browser,
  type NewSignIn,
  type SignInDeps,
  setPassword,
  signInWithLink,
  signInWithPassword,
  signOut,
} from '../../users/sign-in.ts'
import { FIRST_NAME } from '../../users/user.ts'
import { countUnauthenticated, identify } from '../server/identify.ts'
import { type LimitDeps, limitSignIns } from '../server/limit.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { Flag, isOn } from '../wire/flag.ts'
import { isoTime } from '../wire/iso-time.ts'
import { OWN_CHANGE, operation } from '../wire/operation.ts'
import { clearSignInCookies, readSignInToken, setSignInCookie } from './cookie.ts'
import { findScheme } from './origin.ts'

const AccountBody = Type.Object({ id: Type.String(), name: Type.String() })

const SignedOutReply = Type.Object({
  signedIn: Type.Literal(false),
  methods: Type.Array(Type.Union([Type.Literal('password'), Type.Literal('passkey'), Type.Literal('link')])),
})
/** How a person signed in. */
export const Method = Type.Union([Type.Literal('password'), Type.Literal('passkey'), Type.Literal('link')])

/** Of a person. */
export const EmailOrNull = Type.Union([Type.String(), Type.Null()], {
  description: 'where the person is notified of new passkeys, passwords and ended sign-ins; null: nowhere',
  examples: [EXAMPLE.email],
})

const SignedInReply = Type.Object({
  signedIn: Type.Literal(true),
  user: Type.Object({
    id: Type.String(),
    name: Type.String({ description: 'with which the person signs in' }),
    email: EmailOrNull,
    role: Type.Union([Type.Literal('owner'), Type.Literal('uploader'), Type.Literal('viewer')]),
    administrator: Type.Boolean({ description: 'whether the operations of the installation are available' }),
    hasPassword: Type.Boolean(),
    unnamed: Type.Boolean({ description: 'the first person of the installation, who has not chosen a name yet' }),
  }),
  method: Type.Union([Type.Literal('password'), Type.Literal('passkey'), Type.Literal('link')], {
    description: 'how the person signed in; after a link the password can be set without the current one',
  }),
  permissions: Type.Array(Type.String(), { description: 'in the account that is looked at, as those of a key' }),
  account: Type.Interface([AccountBody], {
    own: Type.Boolean({ description: 'false: an administrator looks into another one' }),
  }),
  accounts: Type.Array(AccountBody, { description: 'the accounts that can be looked at' }),
  expiresAt: Type.String({ description: 'ISO 8601; after a week without use it ends earlier' }),
  version: Type.String({ description: 'of Reelgate' }),
  publicUrl: Type.String({ description: 'URL that viewers and the servers of sites use' }),
})
/** Whether the browser is signed in, and as whom. */
export const SignInReply = Type.Union([SignedInReply, SignedOutReply])
export type SignInReply = Static<typeof SignInReply>

const Text = (description: string, examples?: readonly string[]) =>
  Type.String({ description, maxLength: 1_000, ...(examples && { examples }) })
const PasswordBody = Type.Object({
  name: Text('in upper or lower case', [EXAMPLE.userName]),
  password: Text('', [EXAMPLE.password]),
})
const LinkBody = Type.Object({
  token: Text('what follows the # in the link', [EXAMPLE.linkToken]),
  replace: Type.Optional({ ...Flag, description: '1: signs out the person who is signed in in this browser' }),
})
const NewPasswordBody = Type.Object({
  current: Type.Optional(
    Text('the password so far; where there is none, and after a link, the sign-in must be of the last 10 minutes instead'),
  ),
  password: Text('the new one, 10 to 200 characters', [EXAMPLE.password]),
  removePasskeys: Type.Optional({ ...Flag, description: '1: no passkey of the person signs in any more' }),
})
const EmailBody = Type.Object({ email: EmailOrNull })
const SignedOut = Type.Object({ message: Type.Literal('Signed out') })

export type SignInRoutesDeps = LimitDeps & { signIn: SignInDeps; findSignedIn: FindSignedIn; publicUrl(): string }

/** Signing in and out. These operations exist below `/console/api` alone. */
export function signInRoutes(app: App, deps: SignInRoutesDeps): void {
  app.get(
    '/sign-in',
    {
      config: { isPublic: true },
      schema: {
        summary: 'Who is signed in',
        description: 'Available to all: without a valid cookie it says how people can sign in.',
        response: { 200: SignInReply },
      },
    },
    async (request, reply) => {
      const find = () => deps.findSignedIn(readSignInToken(deps, request))
      const signedIn = await identify(deps, { request, reply }, 'viewer', find).catch(ifSignedOut)
      return signedIn ? signedInReply(deps, signedIn) : signedOutReply()
    },
  )

  app.post(
    '/sign-in',
    {
      config: { isPublic: true },
      onRequest: limitSignIns(deps),
      schema: {
        summary: 'Sign in with a password',
        description: 'Sets the cookie. The answer to an unknown name and to a wrong password is the same.',
        body: PasswordBody,
        response: { 200: SignInReply },
      },
    },
    async (request, reply) => {
      requireSecure(deps, request)
      return beginSignIn(deps, { request, reply }, await signInWithPassword(deps.signIn, request.body, browserOf(deps, request)))
    },
  )

  app.post(
    '/sign-in/link',
    {
      config: { isPublic: true },
      onRequest: limitSignIns(deps),
      schema: {
        summary: 'Sign in with a link',
        description:
          'A link works once, and signs in for a day until a password or a passkey is set. Where a person is signed in in this browser, it is refused with 409 and stays valid unless `replace` is 1.',
        body: LinkBody,
        response: { 200: SignInReply },
      },
    },
    async (request, reply) => {
      requireSecure(deps, request)
      const { token, replace = 0 } = request.body
      const current = isOn(replace) ? undefined : await deps.findSignedIn(readSignInToken(deps, request)).catch(ifRefused)
      const browser = browserOf(deps, request)
      return beginSignIn(deps, { request, reply }, await signInWithLink(deps.signIn, token, browser, current))
    },
  )

  app.delete(
    '/sign-in',
    operation({ isPublic: true }, { summary: 'Sign out', response: { 200: SignedOut } }),
    async (request, reply) => {
      const token = readSignInToken(deps, request)
      clearSignInCookies({ ...deps, reply })
      if (token === undefined || !(await signOut(deps.signIn, token))) {
        const counted = await countUnauthenticated(deps, { request, reply }, new Failure('unauthenticated', 'Not signed in.'))
        if (counted instanceof Failure && counted.kind === 'limited') throw counted
      }
      return { message: 'Signed out' as const }
    },
  )

  app.put(
    '/sign-in/password',
    {
      config: { permission: 'viewer', budget: 'writes' },
      onRequest: limitSignIns(deps),
      schema: {
        summary: 'Set the password',
        description: 'Of the person who is signed in. All other browsers of the person are signed out.',
        body: NewPasswordBody,
        response: { 200: SignInReply },
      },
    },
    async (request, reply) => {
      const signedIn = await deps.findSignedIn(readSignInToken(deps, request))
      const { removePasskeys = 0, ...body } = request.body
      return beginSignIn(
        deps,
        { request, reply },
        await setPassword(deps.signIn, signedIn, { ...body, removesPasskeys: isOn(removePasskeys) }, browserOf(deps, request)),
      )
    },
  )

  app.put(
    '/sign-in/email',
    operation(OWN_CHANGE, {
      summary: 'Set the e-mail address',
      description:
        'Of the person who is signed in. The former address is notified. Needs a sign-in of the last 10 minutes, else 403 with the code `sign-in-again`.',
      body: EmailBody,
      response: { 200: SignInReply },
    }),
    async (request) => {
      const find = () => deps.findSignedIn(readSignInToken(deps, request))
      await setOwnEmail(deps.signIn, await find(), request.body.email, browserOf(deps, request))
      return signedInReply(deps, await find())
    },
  )
}

/** Sets the cookie of a new sign-in. @returns what `GET /sign-in` says from now on */
export async function beginSignIn(
  deps: SignInRoutesDeps,
  { request, reply }: { request: FastifyRequest; reply: FastifyReply },
  signIn: NewSignIn,
): Promise<SignInReply> {
  setSignInCookie({ ...deps, reply }, findScheme(request, deps.publicUrl()) ?? 'https', signIn, deps.signIn.nowS())
  return signedInReply(deps, await deps.findSignedIn(signIn.token))
}

/** What `GET /sign-in` says of a person. */
export async function signedInReply({ signIn, publicUrl }: SignInRoutesDeps, person: SignedIn): Promise<SignInReply> {
  const isOwn = person.accountId === person.ownAccountId
  const account = { id: person.accountId, name: person.accountName }
  const accounts = person.isAdministrator ? (await findAccounts(signIn)).map(({ id, name }) => ({ id, name })) : [account]
  const { userName: name, email, role, isAdministrator: administrator, hasPassword } = person
  const unnamed = name === FIRST_NAME && person.method === 'link' && !hasPassword
  return {
    signedIn: true,
    user: { id: person.consoleUserId, name, email, role, administrator, hasPassword, unnamed },
    method: person.method,
    permissions: [...person.permissions],
    account: { ...account, own: isOwn },
    accounts,
    expiresAt: isoTime(person.expiresAtS),
    version: packageJson.version,
    publicUrl: publicUrl(),
  }
}

function signedOutReply(): SignInReply {
  return { signedIn: false, methods: ['password', 'passkey', 'link'] }
}

function ifSignedOut(error: unknown): undefined {
  if (error instanceof Failure && error.kind === 'unauthenticated') return undefined
  throw error
}

/** Also of a person or an account that is disabled: such a sign-in has nothing to lose. */
function ifRefused(error: unknown): undefined {
  if (error instanceof Failure && (error.kind === 'unauthenticated' || error.kind === 'forbidden')) return undefined
  throw error
}

/** A password must not cross a network in the clear. @throws Failure `forbidden` */
export function requireSecure({ publicUrl }: Pick<SignInRoutesDeps, 'publicUrl'>, request: FastifyRequest): void {
  if (findScheme(request, publicUrl()) !== undefined) return
  throw new Failure(
    'forbidden',
    'The console needs https. Open it at the URL of REELGATE_PUBLIC_URL, or on the server itself at http://localhost; from elsewhere through "ssh -L 8080:localhost:8080 SERVER".',
  )
}

export function browserOf(deps: LimitDeps & { publicUrl(): string }, request: FastifyRequest): Browser {
  const userAgent = request.headers['user-agent'] ?? ''
  return { address: deps.addressOf(request), userAgent, oldToken: readSignInToken(deps, request) }
}
