import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { beginLogin, change, launch, ofVideo, otpOf, platformsOf, refusalOf, register, sendLaunch } from './launch.ts'
import { choosing, forgeToken, graded, LTI, newKey, startPlatform, TEACHER, type TestPlatform } from './platform.ts'

let platform: TestPlatform
let reelgate: Reelgate & { remove(): Promise<void> }
let id: string
beforeAll(async () => {
  platform = await startPlatform()
  reelgate = await startSharedReelgate({ video: await makeVideo(), env: { REELGATE_OUTBOUND_ALLOW: platform.host } })
  id = await register(reelgate, platform)
})
afterAll(async () => {
  await reelgate.remove()
  await platform.close()
})

const video = () => ofVideo(reelgate, reelgate.videoId)

test('N06: a learner’s launch plays, under a userId that is made of issuer and sub and is neither', async () => {
  const response = await launch(reelgate, platform, id, video())
  expect(response.headers.get('Set-Cookie')).toMatch(/^reelgate-lti-[\w-]{16}=; Path=\/lti\/; Max-Age=0;/)
  const outcome = await reelgate.newViewer().redeem(otpOf(response))
  expect(outcome.playing).toBe(true)
  const [row] = readRows<{ userId: string; viewer: string | null }>(reelgate, 'select user_id as "userId", viewer from otp')
  const { iss, sub } = platform.claimsOf(new URL(platform.issuer), {})
  const userId = createHash('sha256')
    .update(JSON.stringify([iss, sub]))
    .digest('base64url')
    .slice(0, 32)
  expect(row).toEqual({ userId, viewer: null })
})

test('N07: a state that is altered, of another platform, or unknown is refused', async () => {
  const begun = await beginLogin(reelgate, platform, id)
  const idToken = await platform.sign(platform.claimsOf(begun.url, video()))
  const [text = '', mac = ''] = begun.state.split('.')
  const altered = Buffer.from(
    Buffer.from(text, 'base64url')
      .toString()
      .replace(/"endsAtS":\d+/, '"endsAtS":9999999999'),
  ).toString('base64url')
  for (const state of ['', 'x', `${altered}.${mac}`, `${text}.`, `${begun.state}.x`])
    expect(await refusalOf(await sendLaunch(reelgate, id, { ...begun, idToken, state }))).toMatch(
      /began more than ten minutes ago/,
    )
  expect((await sendLaunch(reelgate, '0'.repeat(32), { ...begun, idToken })).status).toBe(404)
})

test('N08: a launch that another browser began is refused: with the state swapped, the cookie of another login, or none', async () => {
  const [own, victims] = [await beginLogin(reelgate, platform, id), await beginLogin(reelgate, platform, id)]
  const idToken = await platform.sign(platform.claimsOf(own.url, video()))
  const [name] = own.cookie.split('=')
  const [, secret] = victims.cookie.split('=')
  for (const cookie of ['', victims.cookie, `${name}=${secret}`])
    expect(await refusalOf(await sendLaunch(reelgate, id, { state: own.state, cookie, idToken }))).toMatch(
      /does not let the video keep/,
    )
  for (const stored of ['', 'x', secret])
    expect((await sendLaunch(reelgate, id, { state: own.state, idToken, stored })).status).toBe(403)
  expect(otpOf(await sendLaunch(reelgate, id, { ...own, idToken }))).toHaveLength(64)
})

test('N08: without a cookie a launch asks what the platform stores, and is admitted with the secret of its login', async () => {
  const query = new URLSearchParams({ iss: platform.issuer, login_hint: '1', lti_storage_target: '_parent' })
  const page = await (await fetch(`${reelgate.url}/lti/${id}/login?${query}`)).text()
  const kept = JSON.parse(/id="page">([^<]*)</.exec(page)?.[1] ?? '{}') as Record<'url' | 'value' | 'frame' | 'origin', string>
  expect(kept).toMatchObject({ frame: '_parent', origin: platform.issuer })
  const authorization = new URL(kept.url)
  const state = authorization.searchParams.get('state') ?? ''
  const idToken = await platform.sign(platform.claimsOf(authorization, video()))
  const asks = await sendLaunch(reelgate, id, { state, idToken })
  expect(asks.status).toBe(200)
  expect(await asks.text()).toContain("ask('lti.get_data'")
  for (const origin of [platform.issuer, 'null', '']) {
    const elsewhere = await sendLaunch(reelgate, id, { state, idToken, stored: kept.value, origin })
    expect(await refusalOf(elsewhere)).toMatch(/does not let the video keep/)
  }
  expect(otpOf(await sendLaunch(reelgate, id, { state, idToken, stored: kept.value }))).toHaveLength(64)
})

test('N09: a launch is accepted once, of fifty at the same moment, too', async () => {
  const begun = await beginLogin(reelgate, platform, id)
  const idToken = await platform.sign(platform.claimsOf(begun.url, video()))
  const outcomes = await Promise.all(Array.from({ length: 50 }, () => sendLaunch(reelgate, id, { ...begun, idToken })))
  expect(outcomes.filter(({ status }) => status === 303)).toHaveLength(1)
  expect(await refusalOf(await sendLaunch(reelgate, id, { ...begun, idToken }))).toMatch(/used already/)
})

test('N10: a token of another login, with its own valid nonce, is refused', async () => {
  const [one, other] = [await beginLogin(reelgate, platform, id), await beginLogin(reelgate, platform, id)]
  const idToken = await platform.sign(platform.claimsOf(other.url, video()))
  expect(await refusalOf(await sendLaunch(reelgate, id, { ...one, idToken }))).toMatch(/belongs to another launch/)
})

test('N11: alg none, HS256 with the public key as secret, a key of the forger’s own, and no key are refused', async () => {
  const begun = await beginLogin(reelgate, platform, id)
  const claims = platform.claimsOf(begun.url, video())
  const [key] = platform.state.keys
  const kid = key?.kid
  const forged = [
    forgeToken({ alg: 'none', kid }, claims),
    forgeToken({ alg: 'HS256', kid }, claims, JSON.stringify(key?.jwk)),
    forgeToken({ alg: 'RS256', kid }, claims, 'x'),
    forgeToken({ alg: 'RS256' }, claims, 'x'),
    await platform.sign(claims, newKey(kid)),
    await platform.sign(claims, newKey()),
    'a.b.c',
    '',
    `${'A'.repeat(100_000)}.${'B'.repeat(100_000)}.C`,
  ]
  for (const idToken of forged) {
    const response = await sendLaunch(reelgate, id, { ...begun, idToken })
    expect(response.status).toBe(401)
    expect(await refusalOf(response)).toMatch(/not accepted|does not publish/)
  }
  expect(otpOf(await sendLaunch(reelgate, id, { ...begun, idToken: await platform.sign(claims) }))).toHaveLength(64)
})

test('N13: a token that is old, from the future, of another issuer or for another tool is refused', async () => {
  const nowS = Math.floor(Date.now() / 1000)
  const { clientId } = platform.state
  const wrong = {
    'is older': [{ iat: nowS - 700 }, { exp: nowS - 100 }, { iat: nowS + 700, exp: nowS + 900 }],
    'another platform': [{ iss: 'https://other.example' }],
    'another tool': [{ aud: 'other', azp: undefined }, { aud: [clientId, 'other'], azp: undefined }, { azp: 'other' }],
    'LTI 1.3': [{ [`${LTI}/version`]: '1.1' }, { [`${LTI}/deployment_id`]: undefined }],
    'something else': [{ [`${LTI}/message_type`]: 'LtiSubmissionReviewRequest' }],
  }
  for (const [why, cases] of Object.entries(wrong))
    for (const claims of cases)
      expect(await refusalOf(await launch(reelgate, platform, id, { ...video(), ...claims })), JSON.stringify(claims)).toContain(
        why,
      )
})

test('N14: a launch of a deployment that is not the platform’s is refused, and the owner reads which', async () => {
  const other = { ...video(), [`${LTI}/deployment_id`]: 'another <b>' }
  expect(await refusalOf(await launch(reelgate, platform, id, other))).toContain('deployment &#34;another &#60;b&#62;&#34;')
  const [{ lastError } = { lastError: '' }] = await platformsOf(reelgate.owner)
  expect(lastError).toContain('its deployment "another <b>"')
  await change(reelgate.owner, id, { deploymentIds: [platform.state.deploymentId, 'another <b>'] })
  expect(otpOf(await launch(reelgate, platform, id, other))).toHaveLength(64)
})

test('F-346: of a class whose launches are the first of a deployment, at the same moment, each plays', async () => {
  await change(reelgate.owner, id, { deploymentIds: [] })
  const launches = await Promise.all(Array.from({ length: 20 }, () => launch(reelgate, platform, id, video())))
  expect(launches.map(({ status }) => status)).toEqual(launches.map(() => 303))
  expect((await platformsOf(reelgate.owner))[0]?.deploymentIds).toEqual([platform.state.deploymentId])
})

test('F-347: a message with an address that is none, for a score or for the way back, is refused in words', async () => {
  for (const address of ['grades', 'javascript:alert(1)', ''])
    for (const claims of [
      { ...video(), ...graded(platform.issuer, address) },
      choosing(platform.issuer, { deep_link_return_url: address }),
    ])
      expect(await refusalOf(await launch(reelgate, platform, id, claims)), address).toMatch(/lacks what LTI 1.3 asks for/)
})

test('N15: a link to a video of another account, outside the open folder, deleted, or to none is refused alike', async () => {
  const other = await reelgate.newOwner('another account')
  const theirs = await other.credentials('Theirs')
  const deleted = await reelgate.owner.credentials('Deleted')
  await reelgate.owner.delete([deleted.videoId])
  for (const videoId of [theirs.videoId, deleted.videoId, '0'.repeat(32)])
    expect(await refusalOf(await launch(reelgate, platform, id, ofVideo(reelgate, videoId)))).toMatch(
      /is not open to this course/,
    )
  for (const target of ['', `${reelgate.url}/lti/${id}/launch`, 'javascript:1', `${reelgate.url}/lti/videos/../x`])
    expect(await refusalOf(await launch(reelgate, platform, id, { [`${LTI}/target_link_uri`]: target }))).toMatch(
      /No video is chosen/,
    )
})

test('N22: a launch without sub plays without userId, and is refused in words where the watermark needs a name', async () => {
  const anonymous = { ...video(), sub: undefined, name: undefined, given_name: undefined, family_name: undefined }
  const outcome = await reelgate.newViewer().redeem(otpOf(await launch(reelgate, platform, id, anonymous)))
  expect(outcome.playing).toBe(true)
  await reelgate.owner.call('PUT', '/api/otp-defaults', { body: { annotate: [{ type: 'rtext', text: '{name}' }] } })
  try {
    expect(await refusalOf(await launch(reelgate, platform, id, anonymous))).toMatch(/has not said who you are/)
    // Nor does the owner want names of this platform yet.
    expect(await refusalOf(await launch(reelgate, platform, id, video()))).toMatch(/has not said who you are/)
    await change(reelgate.owner, id, { showsNames: 1 })
    const named = await launch(reelgate, platform, id, video())
    expect((await reelgate.newViewer().redeem(otpOf(named))).playing).toBe(true)
    const [row] = readRows<{ watermarks: string; viewer: string }>(
      reelgate,
      `select watermarks, viewer from otp where watermarks <> '[]'`,
    )
    expect(row?.watermarks).toContain('Ms Jane Marie Doe')
    expect(row?.viewer).toContain('Ms Jane Marie Doe')
  } finally {
    await reelgate.owner.call('PUT', '/api/otp-defaults', { body: {} })
  }
})

test('a teacher’s launch plays, and a default whitelist does not lock platforms out', async () => {
  await reelgate.owner.call('PUT', '/api/otp-defaults', { body: { whitelisthref: 'school.example' } })
  try {
    const response = await launch(reelgate, platform, id, { ...video(), [`${LTI}/roles`]: [TEACHER] })
    expect((await reelgate.newViewer().redeem(otpOf(response))).playing).toBe(true)
  } finally {
    await reelgate.owner.call('PUT', '/api/otp-defaults', { body: {} })
  }
})

test('a learner reads nothing of the API where a launch cannot be admitted; the owner reads why', async () => {
  await reelgate.owner.call('PUT', '/api/otp-defaults', { body: { annotate: [{ type: 'rtext', text: '{email}' }] } })
  await change(reelgate.owner, id, { showsNames: 1 })
  try {
    expect(await refusalOf(await launch(reelgate, platform, id, video()))).toMatch(/^This video cannot be opened from here now/)
    expect((await platformsOf(reelgate.owner))[0]?.lastError).toContain('viewer.email')
  } finally {
    await reelgate.owner.call('PUT', '/api/otp-defaults', { body: {} })
    await change(reelgate.owner, id, { showsNames: 0 })
  }
})

test('N12: keys that the platform rotates are known; unknown ones have them fetched at most once a minute', async () => {
  const asked = () => platform.state.asked.filter((path) => path === 'GET /keys').length
  const before = asked()
  for (let times = 0; times < 5; times++) {
    const begun = await beginLogin(reelgate, platform, id)
    await sendLaunch(reelgate, id, { ...begun, idToken: await platform.sign(platform.claimsOf(begun.url, video()), newKey()) })
  }
  expect(asked() - before).toBeLessThanOrEqual(1)
})

test('N25: a platform that is no longer confirmed, or was removed, launches nothing', async () => {
  const begun = await beginLogin(reelgate, platform, id)
  const idToken = await platform.sign(platform.claimsOf(begun.url, video()))
  await change(reelgate.owner, id, { confirmed: 0 })
  expect(await refusalOf(await sendLaunch(reelgate, id, { ...begun, idToken }))).toMatch(/has not confirmed/)
  await change(reelgate.owner, id, { confirmed: 1 })
  expect(otpOf(await sendLaunch(reelgate, id, { ...begun, idToken }))).toHaveLength(64)
})
