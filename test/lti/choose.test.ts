import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { makeVideo } from '../videos.ts'
import { change, launch, ofVideo, otpOf, platformsOf, refusalOf, register } from './launch.ts'
import { choosing, DEEP_LINKING, LEARNER, LTI, startPlatform, type TestPlatform } from './platform.ts'

let platform: TestPlatform
let reelgate: Reelgate & { remove(): Promise<void> }
let id: string
let [open, inner, closed] = ['', '', '']
beforeAll(async () => {
  platform = await startPlatform()
  reelgate = await startSharedReelgate({ video: await makeVideo(), env: { REELGATE_OUTBOUND_ALLOW: platform.host } })
  open = await makeFolder('Open', 'root')
  inner = await makeFolder('Inner <b>', open)
  closed = await makeFolder('Closed', 'root')
  await move(reelgate.videoId, inner)
  id = await register(reelgate, platform, { folderId: open })
})
afterAll(async () => {
  await reelgate.remove()
  await platform.close()
})

async function makeFolder(name: string, parent: string): Promise<string> {
  const response = await reelgate.owner.call('POST', '/api/videos/folders', { body: { name, parent } })
  return ((await response.json()) as { id: string }).id
}

async function move(videoId: string, folderId: string): Promise<void> {
  expect((await reelgate.owner.call('POST', `/api/videos/${videoId}`, { body: { folderId } })).status).toBe(200)
}

async function makeVideoIn(folderId: string, title: string): Promise<string> {
  const { videoId } = await reelgate.owner.credentials(title)
  await move(videoId, folderId)
  return videoId
}

/** What a page sends with its ticket. */
async function post(path: string, fields: Record<string, string>, platformId = id): Promise<Response> {
  const headers = { 'Content-Type': 'application/x-www-form-urlencoded' }
  return fetch(`${reelgate.url}/lti/${platformId}/${path}`, {
    method: 'POST',
    headers,
    body: new URLSearchParams(fields).toString(),
  })
}

async function openPicker(claims: object = {}): Promise<{ html: string; ticket: string }> {
  const response = await launch(reelgate, platform, id, { ...choosing(platform.issuer), ...claims })
  const html = await response.text()
  expect(response.status, html).toBe(200)
  return { html, ticket: /name="ticket" value="([^"]+)"/.exec(html)?.[1] ?? '' }
}

async function answer(ticket: string, videoId: string, more: Record<string, string> = {}) {
  const response = await post('answer', { ticket, video: videoId, ...more })
  const html = await response.text()
  const [, action, token = ''] = /action="([^"]+)"><input type="hidden" name="JWT" value="([^"]+)"/.exec(html) ?? []
  return { action, claims: token ? await platform.readToolToken(token, platform.issuer) : {} }
}

test('N19: a teacher chooses a video; the answer is signed, echoes data, and its link plays', async () => {
  const { ticket } = await openPicker()
  const { action, claims } = await answer(ticket, reelgate.videoId, { graded: '1', completed_at: '80' })
  const url = `${reelgate.url}/lti/videos/${reelgate.videoId}`
  const { title } = await reelgate.owner.video(reelgate.videoId)
  expect(action).toBe(`${platform.issuer}/return`)
  expect(claims).toMatchObject({
    iss: platform.state.clientId,
    aud: platform.issuer,
    nonce: expect.any(String),
    [`${LTI}/message_type`]: 'LtiDeepLinkingResponse',
    [`${LTI}/version`]: '1.3.0',
    [`${LTI}/deployment_id`]: platform.state.deploymentId,
    [`${DEEP_LINKING}/data`]: 'Some random opaque data that MUST be sent back',
    [`${DEEP_LINKING}/content_items`]: [
      {
        ...{ type: 'ltiResourceLink', title, url, custom: { completion_percent: '80' } },
        lineItem: { label: title, scoreMaximum: 100, resourceId: reelgate.videoId },
      },
    ],
  })
  expect(otpOf(await launch(reelgate, platform, id, { [`${LTI}/target_link_uri`]: url }))).toHaveLength(64)
  const ungraded = await answer(ticket, reelgate.videoId)
  expect(JSON.stringify(ungraded.claims)).not.toContain('lineItem')
  const without = await openPicker(choosing(platform.issuer, { accept_lineitem: false }))
  expect(JSON.stringify((await answer(without.ticket, reelgate.videoId, { graded: '1' })).claims)).not.toContain('lineItem')
})

test('N16: a teacher sees the open folder and what is in it, nothing else; a course may have a folder of its own', async () => {
  const outside = await makeVideoIn(closed, 'Closed video')
  const shown = await makeVideoIn(open, 'Shown <script>')
  const { html, ticket } = await openPicker()
  expect(html).toContain('Shown &#60;script&#62;')
  expect(html).toContain('Inner &#60;b&#62;')
  expect(html).not.toContain('Closed')
  expect(await (await post('choose', { ticket, folder: inner })).text()).toContain(reelgate.videoId)
  expect(await (await post('choose', { ticket, q: 'shown' })).text()).toContain(shown)
  expect(await (await post('choose', { ticket, q: 'closed' })).text()).toContain('No video here')
  for (const folder of [closed, 'root', '0'.repeat(32)]) expect((await post('choose', { ticket, folder })).status).toBe(404)
  expect(await refusalOf(await post('answer', { ticket, video: outside }))).toMatch(/is not open to this course/)

  const course = { [`${LTI}/context`]: { id: 'own', title: 'A course of its own' } }
  await launch(reelgate, platform, id, { ...ofVideo(reelgate, reelgate.videoId), ...course })
  const body = { courseId: 'own', folderId: closed }
  expect((await reelgate.owner.call('PUT', `/api/lti/platforms/${id}/courses`, { body })).status).toBe(200)
  const own = await openPicker({ ...choosing(platform.issuer), ...course })
  expect(own.html).toContain('Closed video')
  expect(own.html).not.toContain('Shown')
  expect(await refusalOf(await launch(reelgate, platform, id, { ...ofVideo(reelgate, reelgate.videoId), ...course }))).toMatch(
    /not open/,
  )
  expect(otpOf(await launch(reelgate, platform, id, { ...ofVideo(reelgate, outside), ...course }))).toHaveLength(64)
  const courses = await reelgate.owner.call('GET', `/api/lti/platforms/${id}/courses`)
  expect(((await courses.json()) as { rows: object[] }).rows).toContainEqual({
    ...{ courseId: 'own', title: 'A course of its own', folderId: closed },
    lastLaunchAt: expect.any(String),
  })
  const unknown = { courseId: 'unknown', folderId: closed }
  expect((await reelgate.owner.call('PUT', `/api/lti/platforms/${id}/courses`, { body: unknown })).status).toBe(404)
})

test('N17: a learner chooses nothing, and a video that is moved out of the open folder plays no longer', async () => {
  const learner = { ...choosing(platform.issuer), [`${LTI}/roles`]: [LEARNER] }
  expect(await refusalOf(await launch(reelgate, platform, id, learner))).toMatch(/Only teachers/)
  await move(reelgate.videoId, closed)
  expect(await refusalOf(await launch(reelgate, platform, id, ofVideo(reelgate, reelgate.videoId)))).toMatch(
    /not open to this course/,
  )
  await move(reelgate.videoId, inner)
  await change(reelgate.owner, id, { folderId: null })
  expect(await refusalOf(await launch(reelgate, platform, id, ofVideo(reelgate, reelgate.videoId)))).toMatch(/has not opened any/)
  const teacher = choosing(platform.issuer)
  expect(await refusalOf(await launch(reelgate, platform, id, teacher))).toMatch(/has not opened any/)
  expect((await platformsOf(reelgate.owner))[0]?.lastError).toMatch(/has not opened any/)
  await change(reelgate.owner, id, { folderId: open })
})

test('N18: a ticket that is altered, of another platform, or made for something else is refused', async () => {
  const { ticket } = await openPicker()
  const [text = '', mac = ''] = ticket.split('.')
  const altered = Buffer.from(
    Buffer.from(text, 'base64url')
      .toString()
      .replace(/"courseId":"[^"]+"/, '"courseId":"own"'),
  ).toString('base64url')
  for (const other of [`${altered}.${mac}`, text, '', 'x.y'])
    expect(await refusalOf(await post('answer', { ticket: other, video: reelgate.videoId }))).toMatch(/has expired/)
  const second = await startPlatform()
  try {
    expect((await post('answer', { ticket, video: reelgate.videoId }, '1'.repeat(32))).status).toBe(403)
  } finally {
    await second.close()
  }
})

test('N29: a teacher uploads into the open folder where the owner allows it, with a token for pages of this server', async () => {
  const { html, ticket } = await openPicker()
  expect(html).not.toContain('Upload')
  expect(await refusalOf(await post('upload', { ticket }))).toMatch(/has not allowed uploads/)
  await change(reelgate.owner, id, { mayUpload: 1 })
  const page = await post('upload', { ticket })
  const [, token = ''] = /<reelgate-uploader token="(upload_\w+)"/.exec(await page.text()) ?? []
  const form = new FormData()
  form.append('token', token)
  form.append('file', new Blob(['x']), 'lesson.mp4')
  const refused = await fetch(`${reelgate.url}/upload`, { method: 'POST', body: form, headers: { Origin: platform.issuer } })
  expect(refused.status).toBe(403)
  const sent = await fetch(`${reelgate.url}/upload`, { method: 'POST', body: form, headers: { Origin: reelgate.url } })
  expect(sent.status).toBeLessThan(300)
  const { rows } = await reelgate.owner.list(`?folderId=${open}&q=lesson`)
  expect(rows).toHaveLength(1)
})
