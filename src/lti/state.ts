import { createHmac, hash } from 'node:crypto'
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { equalsInConstantTime } from '../crypto/constant-time.ts'
import { type MasterKey, signingKeys } from '../crypto/master-key.ts'
import { newToken } from '../crypto/secret.ts'
import { parseJson } from '../json.ts'

// What a login takes with it to the platform and back, signed instead of stored: an outsider who begins logins writes no row. It names the
// browser that began it by the hash of a secret, which that browser keeps in a cookie or in the platform's storage.

export const LTI_STATE_KEY = { info: 'reelgate lti-state 1', lengthBytes: 32 } as const

type SealDeps = { masterKey: MasterKey; nowS: () => number }

/** From the login to the launch. */
export const LOGIN_LIFE_S = 600
/** Largest sealed text that is read. A ticket holds what a token of 64 KiB has brought. */
const MAX_LENGTH = 80 * 1024

const LoginState = Type.Object({
  platformId: Type.String(),
  /** SHA-256 of the browser's secret, base64url. */
  browser: Type.String(),
  /** The frame in which the platform stores for tools; absent: it does not. */
  storage: Type.Optional(Type.String()),
  endsAtS: Type.Integer(),
})

export type Login = {
  state: string
  nonce: string
  /** Kept by the browser under this name. */
  secret: string
  name: string
}

export function beginLogin(deps: SealDeps, platformId: string, storage: string | undefined): Login {
  const secret = newToken()
  const state = seal(deps, 'login', { platformId, browser: hashOf(secret), storage, endsAtS: deps.nowS() + LOGIN_LIFE_S })
  return { state, nonce: nonceOf(deps, state), secret, name: storageNameOf(state) }
}

/** A state that this server has given to this platform, at most ten minutes ago. */
export type OpenLogin = {
  /** Of its launch. */
  nonce: string
  endsAtS: number
  storage: string | undefined
  name: string
  /** Whether the browser that began it has this secret. */
  isOf(secret: string | undefined): boolean
}

/** Undefined: it is not such a state. */
export function openLogin(deps: SealDeps, platformId: string, state: string): OpenLogin | undefined {
  const value = unseal(deps, 'login', state)
  if (!Value.Check(LoginState, value) || value.platformId !== platformId || value.endsAtS <= deps.nowS()) return undefined
  const { browser, storage, endsAtS }: Static<typeof LoginState> = value
  return {
    ...{ nonce: nonceOf(deps, state), endsAtS, storage, name: storageNameOf(state) },
    isOf: (secret) => secret !== undefined && equalsInConstantTime(hashOf(secret), browser),
  }
}

/** Under which a browser keeps the secret of a login: several frames of a page launch concurrently. */
function storageNameOf(state: string): string {
  return `reelgate-lti-${hashOf(state).slice(0, 16)}`
}

/** The nonce of a state, so that a token of another login does not fit. Signed by the key that has signed the state. */
function nonceOf(deps: SealDeps, state: string): string {
  const key = keysOf(deps).find((one) => verifies(one, 'login', state)) ?? keysOf(deps)[0]
  return createHmac('sha256', key).update(`nonce ${state}`).digest('base64url')
}

/** JSON with a signature, for what a browser brings back. Not secret. */
export function seal(deps: SealDeps, purpose: string, value: object): string {
  const text = Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${text}.${sign(keysOf(deps)[0], purpose, text)}`
}

/** Undefined: this server has not sealed it for this purpose. */
export function unseal(deps: SealDeps, purpose: string, sealed: string): unknown {
  if (sealed.length > MAX_LENGTH || !keysOf(deps).some((key) => verifies(key, purpose, sealed))) return undefined
  return parseJson(Buffer.from(sealed.split('.')[0] ?? '', 'base64url').toString('utf8'))
}

function keysOf({ masterKey, nowS }: SealDeps): [Buffer, ...Buffer[]] {
  return signingKeys(masterKey, LTI_STATE_KEY.info, LTI_STATE_KEY.lengthBytes, nowS())
}

function verifies(key: Buffer, purpose: string, sealed: string): boolean {
  const [text = '', mac = '', ...more] = sealed.split('.')
  return more.length === 0 && equalsInConstantTime(sign(key, purpose, text), mac)
}

function sign(key: Buffer, purpose: string, text: string): string {
  return createHmac('sha256', key).update(`${purpose} ${text}`).digest('base64url')
}

function hashOf(text: string): string {
  return hash('sha256', text, 'base64url')
}
