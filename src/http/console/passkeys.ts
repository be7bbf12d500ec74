import { isIP } from 'node:net'
import type { FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { Failure } from '../../errors.ts'
import { CHALLENGE_LIFE_S } from '../../users/challenges.ts'
import {
  addPasskey,
  beginPasskey,
  deletePasskey,
  findPasskeys,
  type PasskeyDeps,
  signInWithPasskey,
} from '../../users/passkey.ts'
import { ALGORITHMS, type RelyingParty } from '../../users/webauthn.ts'
import { limitSignIns } from '../server/limit.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { isoTime, isoTimeOrNull } from '../wire/iso-time.ts'
import { OWN_CHANGE, operation } from '../wire/operation.ts'
import { readSignInToken, setSignInCookie } from './cookie.ts'
import { findScheme } from './origin.ts'
import { beginSignIn, browserOf, requireSecure, SignInReply, type SignInRoutesDeps } from './sign-in.ts'

// The bodies are those of the standard's own `toJSON` and `parse…FromJSON` (Web Authentication, Level 3, section 5.1).

const Bytes = (description: string) => Type.String({ description, pattern: '^[A-Za-z0-9_-]{1,8192}$' })
const Transports = Type.Array(Type.String({ maxLength: 32 }), { maxItems: 10 })
const Descriptor = Type.Object({ id: Bytes('of a passkey'), type: Type.Literal('public-key'), transports: Transports })

const CreationOptions = Type.Object(
  {
    rp: Type.Object({ id: Type.String(), name: Type.String() }),
    user: Type.Object({ id: Type.String(), name: Type.String(), displayName: Type.String() }),
    challenge: Type.String(),
    pubKeyCredParams: Type.Array(Type.Object({ type: Type.Literal('public-key'), alg: Type.Integer() })),
    timeout: Type.Integer(),
    excludeCredentials: Type.Array(Descriptor),
    authenticatorSelection: Type.Object({
      residentKey: Type.String(),
      requireResidentKey: Type.Boolean(),
      userVerification: Type.String(),
    }),
    attestation: Type.String(),
  },
  { description: 'for `PublicKeyCredential.parseCreationOptionsFromJSON`' },
)
const RequestOptions = Type.Object(
  {
    challenge: Type.String(),
    rpId: Type.String(),
    timeout: Type.Integer(),
    userVerification: Type.String(),
    allowCredentials: Type.Array(Descriptor),
  },
  { description: 'for `PublicKeyCredential.parseRequestOptionsFromJSON`' },
)

const NewPasskeyBody = Type.Object(
  {
    id: Bytes('of the passkey'),
    name: Type.Optional(Type.String({ minLength: 1, maxLength: 100, description: 'to tell passkeys apart' })),
    response: Type.Object({
      clientDataJSON: Bytes('base64url'),
      authenticatorData: Bytes('base64url'),
      publicKey: Bytes('SubjectPublicKeyInfo, base64url'),
      transports: Type.Optional(Transports),
    }),
  },
  { description: 'what `credential.toJSON()` returns' },
)
const AssertionBody = Type.Object(
  {
    id: Bytes('of the passkey'),
    response: Type.Object({
      clientDataJSON: Bytes('base64url'),
      authenticatorData: Bytes('base64url'),
      signature: Bytes('base64url'),
    }),
  },
  { description: 'what `credential.toJSON()` returns' },
)

const PasskeyBody = Type.Object({
  id: Type.String(),
  name: Type.String(),
  createdAt: Type.String({ description: 'ISO 8601' }),
  lastUsedAt: Type.Union([Type.String(), Type.Null()], { description: 'ISO 8601' }),
})
const ListReply = Type.Object({ rows: Type.Array(PasskeyBody) })
export type PasskeyListBody = Static<typeof ListReply>
const PasskeyParams = Type.Object({ id: Type.String({ description: 'of the passkey', examples: [EXAMPLE.passkeyId] }) })
const AddedReply = Type.Object({ message: Type.Literal('Added') })
const DeletedReply = Type.Object({ message: Type.Literal('Deleted') })

export type PasskeyRoutesDeps = Omit<SignInRoutesDeps, 'signIn'> & { signIn: PasskeyDeps }

/** Passkeys: adding, removing, and signing in with one. */
export function passkeyRoutes(app: App, deps: PasskeyRoutesDeps): void {
  signInRoutes(app, deps)
  managementRoutes(app, deps)
}

function signInRoutes(app: App, deps: PasskeyRoutesDeps): void {
  const { challenges } = deps.signIn

  app.post(
    '/sign-in/passkey/options',
    {
      config: { isPublic: true },
      onRequest: limitSignIns(deps),
      schema: {
        summary: 'Options to sign in with a passkey',
        description: `A challenge for the browser, valid once and for ${CHALLENGE_LIFE_S / 60} minutes.`,
        response: { 200: RequestOptions },
      },
    },
    async (request) => {
      const { id: rpId } = relyingParty(deps, request)
      const timeout = CHALLENGE_LIFE_S * 1000
      return { challenge: await challenges.make(), rpId, timeout, userVerification: 'required', allowCredentials: [] }
    },
  )

  app.post(
    '/sign-in/passkey',
    {
      config: { isPublic: true },
      onRequest: limitSignIns(deps),
      schema: {
        summary: 'Sign in with a passkey',
        description: 'Sets the cookie.',
        body: AssertionBody,
        response: { 200: SignInReply },
      },
    },
    async (request, reply) => {
      const { id, response: assertion } = request.body
      const attempt = { id, assertion, rp: relyingParty(deps, request) }
      return beginSignIn(deps, { request, reply }, await signInWithPasskey(deps.signIn, attempt, browserOf(deps, request)))
    },
  )
}

function managementRoutes(app: App, deps: PasskeyRoutesDeps): void {
  const { signIn } = deps
  const person = (request: FastifyRequest) => deps.findSignedIn(readSignInToken(deps, request))

  app.get(
    '/passkeys',
    operation('viewer', {
      summary: 'List passkeys',
      description: 'Of the person who is signed in.',
      response: { 200: ListReply },
    }),
    async (request): Promise<Static<typeof ListReply>> => {
      const passkeys = await findPasskeys(signIn, (await person(request)).consoleUserId)
      return {
        rows: passkeys.map(({ id, name, createdAtS, lastUsedAtS }) => ({
          ...{ id, name, createdAt: isoTime(createdAtS) },
          lastUsedAt: isoTimeOrNull(lastUsedAtS),
        })),
      }
    },
  )

  app.post(
    '/passkeys/options',
    operation(OWN_CHANGE, {
      summary: 'Options to add a passkey',
      description: `A challenge for the browser, valid once and for ${CHALLENGE_LIFE_S / 60} minutes. Needs a sign-in of the last 10 minutes, else 403 with the code \`sign-in-again\`.`,
      response: { 200: CreationOptions },
    }),
    async (request): Promise<Static<typeof CreationOptions>> => {
      const signedIn = await person(request)
      const { consoleUserId, userName } = signedIn
      const { challenge, known } = await beginPasskey(signIn, signedIn)
      return {
        rp: { id: relyingParty(deps, request).id, name: 'Reelgate' },
        user: { id: Buffer.from(consoleUserId, 'hex').toString('base64url'), name: userName, displayName: userName },
        challenge,
        pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: 'public-key', alg })),
        timeout: CHALLENGE_LIFE_S * 1000,
        excludeCredentials: known.map(({ id, transports }) => ({ id, type: 'public-key', transports: JSON.parse(transports) })),
        authenticatorSelection: { residentKey: 'required', requireResidentKey: true, userVerification: 'required' },
        attestation: 'none',
      }
    },
  )

  app.post(
    '/passkeys',
    operation(OWN_CHANGE, {
      summary: 'Add a passkey',
      description: 'For the person who has signed in within the last 10 minutes. After a link it also makes the sign-in last.',
      body: NewPasskeyBody,
      response: { 200: AddedReply },
    }),
    async (request, reply) => {
      const signedIn = await person(request)
      const { id, name = 'Passkey', response } = request.body
      const { transports = [], ...credential } = response
      const passkey = { credential: { id, ...credential }, transports, name, rp: relyingParty(deps, request) }
      const renewed = await addPasskey(signIn, signedIn, passkey, browserOf(deps, request))
      if (renewed) setSignInCookie({ ...deps, reply }, findScheme(request, deps.publicUrl()) ?? 'https', renewed, signIn.nowS())
      return { message: 'Added' as const }
    },
  )

  app.delete(
    '/passkeys/:id',
    operation(OWN_CHANGE, { summary: 'Delete a passkey', params: PasskeyParams, response: { 200: DeletedReply } }),
    async (request) => {
      await deletePasskey(signIn, await person(request), request.params.id)
      return { message: 'Deleted' as const }
    },
  )
}

/** Passkeys belong to a host name, and the page must be at that name. @throws Failure `forbidden`, `invalid` */
function relyingParty(deps: PasskeyRoutesDeps, request: FastifyRequest): RelyingParty {
  requireSecure(deps, request)
  const { origin = deps.publicUrl() } = request.headers
  const { hostname } = new URL(origin)
  if (isIP(hostname.replace(/^\[|\]$/g, '')) !== 0)
    throw new Failure('invalid', 'A passkey needs a host name. Open the console at http://localhost instead of an address.')
  return { id: hostname, origin: new URL(origin).origin }
}
