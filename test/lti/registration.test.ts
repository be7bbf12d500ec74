import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { changeRows } from '../rows.ts'
import { beginLogin, change, makeLink, openLink, platformsOf, refusalOf, register } from './launch.ts'
import { startPlatform, type TestPlatform } from './platform.ts'

let platform: TestPlatform
let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  platform = await startPlatform()
  reelgate = await startSharedReelgate({ env: { REELGATE_OUTBOUND_ALLOW: platform.host } })
})
afterAll(async () => {
  await reelgate.remove()
  await platform.close()
})
beforeEach(async () => {
  platform.state.configuration = {}
  platform.state.asked = []
  for (const { id } of await platformsOf(reelgate.owner)) await reelgate.owner.call('DELETE', `/api/lti/platforms/${id}`)
})

test('N02: a platform registers by a link and does nothing until its owner has seen and confirmed it', async () => {
  const page = await openLink(await makeLink(reelgate), platform)
  expect(page.status).toBe(200)
  expect(await page.text()).toContain('org.imsglobal.lti.close')
  const [row] = await platformsOf(reelgate.owner)
  expect(row).toMatchObject({
    name: `testlms at ${platform.host}`,
    issuer: platform.issuer,
    clientId: platform.state.clientId,
    authorizationUrl: `${platform.issuer}/authorize`,
    deploymentIds: [platform.state.deploymentId],
    confirmed: false,
    folderId: null,
    lastLaunchAt: null,
  })
  const id = row?.id ?? ''
  expect(platform.state.tool).toMatchObject({
    initiate_login_uri: `${reelgate.url}/lti/${id}/login`,
    redirect_uris: [`${reelgate.url}/lti/${id}/launch`],
    jwks_uri: `${reelgate.url}/lti/${id}/keys`,
    token_endpoint_auth_method: 'private_key_jwt',
    response_types: ['id_token'],
    scope: 'https://purl.imsglobal.org/spec/lti-ags/scope/score',
  })
  const login = `${reelgate.url}/lti/${id}/login?${new URLSearchParams({ iss: platform.issuer, login_hint: '1' })}`
  expect(await refusalOf(await fetch(login))).toMatch(/has not confirmed this learning platform yet/)
  expect((await change(reelgate.owner, id, { confirmed: 1 })).status).toBe(200)
  const { url } = await beginLogin(reelgate, platform, id)
  expect(Object.fromEntries(url.searchParams)).toMatchObject({
    ...{ scope: 'openid', response_type: 'id_token', response_mode: 'form_post', prompt: 'none', login_hint: '12345' },
    ...{ lti_message_hint: 'hint', client_id: platform.state.clientId, redirect_uri: `${reelgate.url}/lti/${id}/launch` },
  })
  const wrong: Record<string, string>[] = [{ iss: 'https://other.example' }, { client_id: 'other' }]
  for (const fields of wrong) {
    const query = new URLSearchParams({ iss: platform.issuer, login_hint: '1', ...fields })
    expect(await refusalOf(await fetch(`${reelgate.url}/lti/${id}/login?${query}`))).toMatch(
      /belongs to another learning platform/,
    )
  }
})

test('N01: a link that was guessed, used or is an hour old registers nothing, and fetches nothing', async () => {
  const used = await makeLink(reelgate)
  expect((await openLink(used, platform)).status).toBe(200)
  const old = await makeLink(reelgate)
  changeRows(reelgate, 'update lti_registration set expires_at_s = expires_at_s - 3601')
  platform.state.asked = []
  for (const link of [used, old, `${reelgate.url}/lti/register/${'A'.repeat(64)}`, `${reelgate.url}/lti/register/x`])
    expect(await refusalOf(await openLink(link, platform))).toMatch(/was used already, or its hour is over/)
  expect(platform.state.asked).toEqual([])
  expect(await platformsOf(reelgate.owner)).toHaveLength(1)
  const head = await makeLink(reelgate)
  expect((await fetch(head, { method: 'HEAD' })).status).not.toBe(200)
  expect((await openLink(head, platform)).status).toBe(200)
})

test('N05: a link that is opened ten times at the same moment registers one platform', async () => {
  const link = await makeLink(reelgate)
  const opened = await Promise.all(Array.from({ length: 10 }, () => openLink(link, platform)))
  expect(opened.filter(({ status }) => status === 200)).toHaveLength(1)
  expect(platform.state.asked.filter((path) => path === 'POST /register')).toHaveLength(1)
  expect(await platformsOf(reelgate.owner)).toHaveLength(1)
})

test('N03: a configuration in the name of another issuer is refused, and the link stays', async () => {
  const link = await makeLink(reelgate)
  for (const issuer of ['https://moodle.example', `${platform.issuer}/other`, `${platform.issuer}.evil.example`, 'x']) {
    platform.state.configuration = { issuer }
    expect(await refusalOf(await openLink(link, platform))).toMatch(/was read from another address/)
  }
  expect(platform.state.asked).not.toContain('POST /register')
  platform.state.configuration = {}
  expect((await openLink(link, platform)).status).toBe(200)
})

test('N04: addresses of this machine or its network, and those without TLS, are refused wherever the platform names them', async () => {
  const link = await makeLink(reelgate)
  const hostile = [
    'http://127.0.0.1:9/x',
    'http://169.254.169.254/latest',
    'http://[::1]/x',
    'http://moodle.example/x',
    'file:///etc/passwd',
  ]
  for (const url of hostile) {
    const opened = await fetch(`${link}?${new URLSearchParams({ openid_configuration: url })}`)
    expect(opened.status, url).toBeGreaterThanOrEqual(400)
    for (const name of ['authorization_endpoint', 'token_endpoint', 'jwks_uri', 'registration_endpoint']) {
      platform.state.configuration = { [name]: url }
      expect((await openLink(link, platform)).status, `${name} ${url}`).toBeGreaterThanOrEqual(400)
    }
  }
  expect(platform.state.asked).not.toContain('POST /register')
  platform.state.configuration = {}
  const id = await register(reelgate, platform)
  for (const name of ['authorizationUrl', 'tokenUrl', 'keysUrl'])
    expect((await change(reelgate.owner, id, { [name]: 'http://127.0.0.1:9/x' })).status).toBe(400)
})

test('N24: another account neither sees nor changes a platform', async () => {
  const id = await register(reelgate, platform)
  const other = await reelgate.newOwner('another account')
  expect(await platformsOf(other)).toEqual([])
  expect((await change(other, id, { name: 'x' })).status).toBe(404)
  expect((await other.call('DELETE', `/api/lti/platforms/${id}`)).status).toBe(404)
  expect((await other.call('GET', `/api/lti/platforms/${id}/courses`)).status).toBe(404)
  const theirs = (await (await other.call('POST', '/api/videos/folders', { body: { name: 'Theirs' } })).json()) as { id: string }
  expect((await change(reelgate.owner, id, { folderId: theirs.id })).status).toBe(404)
})

test('a platform that cannot register by a link is added by hand, and confirmed once its addresses are known', async () => {
  const added = await reelgate.owner.call('POST', '/api/lti/platforms', { body: { name: 'Open edX', issuer: platform.issuer } })
  const { id, loginUrl } = (await added.json()) as { id: string; loginUrl: string }
  expect(loginUrl).toBe(`${reelgate.url}/lti/${id}/login`)
  expect((await change(reelgate.owner, id, { confirmed: 1 })).status).toBe(409)
  const { issuer, state } = platform
  const addresses = { authorizationUrl: `${issuer}/authorize`, tokenUrl: `${issuer}/token`, keysUrl: `${issuer}/keys` }
  expect((await change(reelgate.owner, id, { clientId: state.clientId, ...addresses, confirmed: 1 })).status).toBe(200)
  expect((await beginLogin(reelgate, platform, id)).state).not.toBe('')
  for (const name of ['clientId', ...Object.keys(addresses)])
    expect((await change(reelgate.owner, id, { [name]: '' })).status, name).toBe(409)
})
