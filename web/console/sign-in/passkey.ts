import type { SignInReply } from '../../../src/http/console/sign-in.ts'
import { callApi } from '../api.ts'

/** Whether this browser can have passkeys for this address. They belong to a host name: an address of digits has none. */
export function canUsePasskeys(): boolean {
  const isAddress = /^[\d.]+$|^\[/.test(location.hostname)
  return !isAddress && 'PublicKeyCredential' in window && 'parseRequestOptionsFromJSON' in PublicKeyCredential
}

/** The person closed the browser's own dialog, or let it pass: nothing has failed. */
export class PasskeyCancelled extends Error {}

export async function signInWithPasskey(): Promise<SignInReply> {
  const options = await callApi<PublicKeyCredentialRequestOptionsJSON>('POST', 'sign-in/passkey/options')
  const credential = await ask(() =>
    navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) }),
  )
  return callApi<SignInReply>('POST', 'sign-in/passkey', { body: credential.toJSON() })
}

/** Makes a passkey for the person who is signed in. */
export async function addPasskey(): Promise<void> {
  const options = await callApi<PublicKeyCredentialCreationOptionsJSON>('POST', 'passkeys/options')
  const credential = await ask(() =>
    navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) }),
  )
  await callApi<unknown>('POST', 'passkeys', { body: credential.toJSON() })
}

async function ask(show: () => Promise<Credential | null>): Promise<PublicKeyCredential> {
  const credential = await show().catch((error: unknown) => {
    if (error instanceof DOMException && error.name === 'NotAllowedError') throw new PasskeyCancelled('Cancelled')
    throw error
  })
  if (credential instanceof PublicKeyCredential) return credential
  throw new PasskeyCancelled('Cancelled')
}
