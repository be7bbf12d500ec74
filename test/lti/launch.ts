import { expect } from 'vitest'
import type { Reelgate } from '../in-process.ts'
import { type Claims, LTI, type TestPlatform } from './platform.ts'

/** What a platform and its people do with a server, without a browser. */

type Platform = { id: string; confirmed: boolean; lastError: string | null; [field: string]: unknown }

export async function platformsOf(owner: Reelgate['owner']): Promise<Platform[]> {
  return ((await (await owner.call('GET', '/api/lti/platforms')).json()) as { rows: Platform[] }).rows
}

export async function makeLink({ owner }: Pick<Reelgate, 'owner'>): Promise<string> {
  const response = await owner.call('POST', '/api/lti/links')
  expect(response.status).toBe(200)
  return ((await response.json()) as { url: string }).url
}

export async function openLink(link: string, { configurationUrl }: TestPlatform): Promise<Response> {
  return fetch(`${link}?${new URLSearchParams({ openid_configuration: configurationUrl, registration_token: 'registration' })}`)
}

export async function change(owner: Reelgate['owner'], id: string, body: object): Promise<Response> {
  return owner.call('PUT', `/api/lti/platforms/${id}`, { body })
}

/** Registers a platform by a link, and confirms it. @returns its id */
export async function register(
  reelgate: Pick<Reelgate, 'owner' | 'url'>,
  platform: TestPlatform,
  settings: object = {},
): Promise<string> {
  const { pathname } = new URL(await makeLink(reelgate))
  const opened = await openLink(`${reelgate.url}${pathname}`, platform) // its public address may be elsewhere
  expect(opened.status, await opened.clone().text()).toBe(200)
  const [{ id } = { id: '' }] = await platformsOf(reelgate.owner)
  const confirmed = await change(reelgate.owner, id, { confirmed: 1, folderId: 'root', ...settings })
  expect(confirmed.status).toBe(200)
  return id
}

/** A login that a platform has begun in some browser. */
export type Begun = { url: URL; cookie: string; state: string }

export async function beginLogin(
  { url }: Pick<Reelgate, 'url'>,
  { issuer, state }: TestPlatform,
  id: string,
  more: Record<string, string> = {},
): Promise<Begun> {
  const query = new URLSearchParams({
    ...{
      iss: issuer,
      client_id: state.clientId,
      login_hint: '12345',
      lti_message_hint: 'hint',
      target_link_uri: `${url}/lti/${id}/launch`,
    },
    ...more,
  })
  const response = await fetch(`${url}/lti/${id}/login?${query}`, { redirect: 'manual' })
  expect(response.status, await response.clone().text()).toBe(303)
  const [cookie = ''] = (response.headers.get('Set-Cookie') ?? '').split(';')
  const authorization = new URL(response.headers.get('Location') ?? '')
  return { url: authorization, cookie, state: authorization.searchParams.get('state') ?? '' }
}

export async function sendLaunch(
  { url }: Pick<Reelgate, 'url'>,
  id: string,
  {
    state,
    cookie = '',
    idToken,
    stored,
    origin = url,
  }: { state: string; cookie?: string; idToken: string; stored?: string; origin?: string },
): Promise<Response> {
  const form = new URLSearchParams({ state, id_token: idToken, ...(stored !== undefined && { stored }) })
  const headers = { Cookie: cookie, Origin: origin, 'Content-Type': 'application/x-www-form-urlencoded' }
  return fetch(`${url}/lti/${id}/launch`, { method: 'POST', body: form.toString(), headers, redirect: 'manual' })
}

/** A whole launch. */
export async function launch(
  reelgate: Pick<Reelgate, 'url'>,
  platform: TestPlatform,
  id: string,
  claims: Claims,
): Promise<Response> {
  const begun = await beginLogin(reelgate, platform, id)
  return sendLaunch(reelgate, id, { ...begun, idToken: await platform.sign(platform.claimsOf(begun.url, claims)) })
}

/** The claim with which a link names its video. */
export function ofVideo({ url }: Pick<Reelgate, 'url'>, videoId: string): Claims {
  return { [`${LTI}/target_link_uri`]: `${url}/lti/videos/${videoId}` }
}

/** The OTP with which a launch opens the player. */
export function otpOf(response: Response): string {
  expect(response.status).toBe(303)
  return new URL(response.headers.get('Location') ?? '').searchParams.get('otp') ?? ''
}

/** Why a page refuses. */
export async function refusalOf(response: Response): Promise<string> {
  expect(response.status).toBeGreaterThanOrEqual(400)
  const [, sentence = ''] = /role="alert">([^<]*)</.exec(await response.text()) ?? []
  return sentence
}

/** The page of a course in which an activity is launched. @param stores the platform keeps what tools ask it to */
export function courseAddress(
  { url }: Pick<Reelgate, 'url'>,
  { issuer }: TestPlatform,
  id: string,
  { stores, origin = issuer }: { stores: boolean; origin?: string },
): string {
  const fields = { iss: issuer, login_hint: '1', target_link_uri: `${url}/lti/${id}/launch` }
  const login = `${url}/lti/${id}/login?${new URLSearchParams({ ...fields, ...(stores && { lti_storage_target: '_parent' }) })}`
  return `${origin}/course?${new URLSearchParams({ login, ...(stores && { stores: '1' }) })}`
}
