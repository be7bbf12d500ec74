import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createOwner, type Owner } from '../client.ts'
import { getStoredSource, listFiles } from '../data-folder.ts'
import { footage } from '../footage.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { changeRows, readRows } from '../rows.ts'
import { createTusClient, metadataOf } from './tus-client.ts'

// Upload tokens, as the page of an owner sends them, and as those who are not that page do.

const PAGE = 'https://school.example'

let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  reelgate = await startSharedReelgate()
})
afterAll(() => reelgate.remove())

type Made = { id: string; token: string; expiresAt: string }

async function makeToken(body: Record<string, unknown> = {}, owner: Owner = reelgate.owner): Promise<Made> {
  const response = await owner.call('POST', '/api/upload-tokens', { body: { origin: PAGE, title: 'Homework', ...body } })
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
  return (await response.json()) as Made
}

/** The page of an origin that sends a token. */
function pageWith(token: string, origin = PAGE) {
  const client = createTusClient(reelgate.owner, `Bearer ${token}`, { Origin: origin })
  return { ...client, create: (length: number | undefined) => client.create(length, { filename: 'a.mp4' }) }
}

async function begin(token: string, { metadata = {}, length = 10, origin = PAGE }: Begun = {}) {
  const page = pageWith(token, origin)
  const pairs = { filename: 'a.mp4', ...metadata }
  return page.call('POST', page.endpoint, { 'Upload-Length': String(length), 'Upload-Metadata': metadataOf(pairs) })
}
type Begun = { metadata?: Record<string, string>; length?: number; origin?: string }

async function sendForm(fields: Record<string, string>, file = Buffer.from('a file'), origin: string | undefined = PAGE) {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.append(name, value)
  form.append('file', new Blob([new Uint8Array(file)]), 'a.mp4')
  return fetch(`${reelgate.url}/upload`, { method: 'POST', body: form, headers: origin === undefined ? {} : { Origin: origin } })
}

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
const storedHash = async (videoId: string) => sha256(await getStoredSource(reelgate, videoId).clear())
const listed = async (id: string, owner: Owner = reelgate.owner) => {
  const { rows } = (await (await owner.call('GET', '/api/upload-tokens')).json()) as { rows: { id: string; files: number }[] }
  return rows.find((row) => row.id === id)
}
const corsOf = ({ headers }: Response) => headers.get('Access-Control-Allow-Origin')
const countVideos = () => readRows(reelgate, 'select 1 from video where deleted_at_s is null').length

test('a page uploads by tus with a token: the video has the title, folder and tags of the token, and its bytes', async () => {
  const folder = await reelgate.owner.call('POST', '/api/videos/folders', { body: { name: 'Homework' } })
  const { id: folderId } = (await folder.json()) as { id: string }
  const { id, token } = await makeToken({ folderId, tags: ['homework'], reference: 'student 4711' })
  const file = randomBytes(50_000)
  const page = pageWith(token)
  const { address, videoId, response } = await page.create(file.length)
  expect(corsOf(response)).toBe(PAGE)
  expect(response.headers.get('Vary')).toBe('Origin')
  expect(response.headers.get('Access-Control-Expose-Headers')).toMatch(/Location, Reelgate-Video-Id, Upload-Offset/)
  await page.patch(address, 0, file.subarray(0, 20_000))
  expect(await page.offset(address)).toBe(20_000)
  const last = await page.patch(address, 20_000, file.subarray(20_000))
  expect([last.status, corsOf(last), last.headers.get('Reelgate-Video-Id')]).toEqual([204, PAGE, videoId])
  expect(await storedHash(videoId)).toBe(sha256(file))
  expect(await reelgate.owner.video(videoId)).toMatchObject({ title: 'Homework', tags: ['homework'], folderId })
  expect(await listed(id)).toMatchObject({ origin: PAGE, reference: 'student 4711', maxFiles: 1, files: 1, revokedAt: null })
})

/** As a page has it, in a process of its own: its package has the types of browsers. Outside a browser it needs the origin as a header. */
const TUS_JS_CLIENT = `
import { Upload } from 'tus-js-client'
const [endpoint, token, origin, text] = process.argv.slice(1)
new Upload(Buffer.from(text), {
  endpoint,
  headers: { Authorization: 'Bearer ' + token, Origin: origin },
  chunkSize: 4,
  metadata: { filename: 'a.mp4' },
  onError: (error) => console.log(error.originalResponse?.getStatus()),
  onSuccess: ({ lastResponse }) => console.log(lastResponse.getHeader('Reelgate-Video-Id')),
}).start()
`

test('tus-js-client uploads with a token as it comes', async () => {
  const { token } = await makeToken()
  const send = async (origin: string) => {
    const args = ['--input-type=module', '-e', TUS_JS_CLIENT, `${reelgate.url}/api/uploads`, token, origin, 'a small file']
    return (await promisify(execFile)(process.execPath, args)).stdout.trim()
  }
  expect(await send('https://evil.example')).toBe('403')
  expect(await storedHash(await send(PAGE))).toBe(sha256(Buffer.from('a small file')))
})

test('a page uploads in one form with a token in a field, as a form without a script can', async () => {
  const { token } = await makeToken({ titlePattern: 'Homework – *', title: undefined, tags: ['homework'] })
  const file = randomBytes(20_000)
  const response = await sendForm({ token }, file)
  expect(response.status).toBe(204)
  const videoId = response.headers.get('Reelgate-Video-Id') ?? ''
  expect(await storedHash(videoId)).toBe(sha256(file))
  expect(await reelgate.owner.video(videoId)).toMatchObject({ title: 'Homework – a.mp4', tags: ['homework'] })
})

describe('X40: a token that was stolen from a page', () => {
  test('opens no other route, and no upload of its account but those that it has begun', async () => {
    const { token } = await makeToken()
    for (const [method, path] of [
      ['GET', '/api/videos'],
      ['PUT', '/api/videos?title=x'],
      ['GET', '/api/upload-tokens'],
      ['POST', '/api/upload-tokens'],
    ] as const)
      for (const as of [`Bearer ${token}`, `Apisecret ${token}`])
        expect((await fetch(`${reelgate.url}${path}`, { method, headers: { Authorization: as, Origin: PAGE } })).status).toBe(
          as.startsWith('Bearer') ? 400 : 401,
        )
    const page = pageWith(token)
    const ofKey = await createTusClient(reelgate.owner).create(10)
    const ofOther = await pageWith((await makeToken()).token).create(10)
    for (const { address } of [ofKey, ofOther])
      for (const refused of [await page.head(address), await page.patch(address, 0, 'x'), await page.remove(address)])
        expect(refused.status).toBe(404)
  })

  test('is in no row: the database has its hash alone', async () => {
    const { id, token } = await makeToken()
    const [row] = readRows(reelgate, 'select * from upload_token where id = ?', id)
    expect(Object.values(row ?? {}).some((value) => String(value).includes(token.slice(7)))).toBe(false)
    expect(JSON.stringify(await listed(id))).not.toContain(token)
  })
})

describe('X41: a token that is used again and again', () => {
  test('brings as many files as it was made for, however many come at the same time', async () => {
    const { id, token } = await makeToken({ maxFiles: 3 })
    const statuses = await Promise.all(
      Array.from({ length: 10 }, async (_, n) =>
        n % 2 === 0 ? (await begin(token)).status : (await sendForm({ token })).status,
      ),
    )
    expect(statuses.filter((status) => status === 201 || status === 204)).toHaveLength(3)
    expect(statuses.filter((status) => status === 403)).toHaveLength(7)
    expect(await listed(id)).toMatchObject({ files: 3 })
    expect(await (await begin(token)).json()).toMatchObject({ code: 'forbidden', message: expect.stringContaining('3 files') })
  })

  test('may be used for another file in place of one that was ended before it had arrived, and for none in place of one that has', async () => {
    const { token } = await makeToken()
    const page = pageWith(token)
    const { address } = await page.create(10)
    expect((await begin(token)).status).toBe(403)
    expect((await page.remove(address)).status).toBe(204)
    const second = await page.create(10)
    await page.patch(second.address, 0, '0123456789')
    await reelgate.owner.delete([second.videoId])
    expect((await begin(token)).status).toBe(403)
    const log = await reelgate.owner.call('GET', '/api/audit-log')
    const { rows } = (await log.json()) as { rows: { kind: string; actor: { type: string } }[] }
    expect(rows.filter(({ kind }) => kind === 'video:deleted').map(({ actor }) => actor.type)).toContain('upload-token')
  })
})

test.each([
  'https://evil.example',
  'https://school.example.evil.example',
  'http://school.example',
  'https://school.example:8443',
  'null',
])('X42: a token that is sent by a page of %s is refused, and that page cannot read why', async (origin) => {
  const { token } = await makeToken({ maxFiles: 10 })
  const { address } = await pageWith(token).create(10)
  const elsewhere = pageWith(token, origin)
  const before = countVideos()
  for (const refused of [
    await begin(token, { origin }),
    await elsewhere.head(address),
    await elsewhere.patch(address, 0, 'x'),
    await elsewhere.remove(address),
  ])
    expect([refused.status, corsOf(refused)]).toEqual([403, null])
  expect((await sendForm({ token }, undefined, origin)).status).toBe(403)
  expect(countVideos()).toBe(before)
})

test('X42: a token without the origin of a page is refused, but where browsers name none: in a HEAD to their page’s own', async () => {
  const { token } = await makeToken({ maxFiles: 10 })
  const { address } = await pageWith(token).create(10)
  const program = createTusClient(reelgate.owner, `Bearer ${token}`)
  expect((await program.head(address)).status).toBe(403)
  expect((await program.patch(address, 0, 'x')).status).toBe(403)
  expect((await sendForm({ token }, undefined, '')).status).toBe(403)
  const sameOrigin = await makeToken({ origin: new URL(reelgate.url).origin })
  const own = await pageWith(sameOrigin.token, new URL(reelgate.url).origin).create(10)
  expect(await createTusClient(reelgate.owner, `Bearer ${sameOrigin.token}`).offset(own.address)).toBe(0)
})

describe('X43: what a token fixes no page changes:', () => {
  test.each([
    ['another title', { title: 'Mine' }],
    ['another folder', { folderId: '0'.repeat(32) }],
    ['other tags', { tags: 'homework,exam' }],
    ['an id of the owner', { externalId: '1' }],
    ['fields of the owner', { metadata: '{}' }],
    ['a video to replace', { videoId: '0'.repeat(32) }],
  ])('%s', async (_what, fields) => {
    const { token } = await makeToken({ tags: ['homework'] })
    const before = countVideos()
    const byTus = await begin(token, { metadata: fields })
    expect([byTus.status, corsOf(byTus), await byTus.json()]).toEqual([
      403,
      PAGE,
      expect.objectContaining({ code: 'forbidden', message: expect.stringContaining(Object.keys(fields)[0] ?? '') }),
    ])
    expect((await sendForm({ token, ...fields })).status).toBe(403)
    expect(countVideos()).toBe(before)
  })

  test.each([
    { pattern: 'Homework – *', title: 'Homework – Anna', status: 201 },
    { pattern: 'Homework – *', title: 'Homework – ', status: 201 },
    { pattern: 'Homework – *', title: 'Exam – Anna', status: 403 },
    { pattern: 'a*a', title: 'a', status: 403 },
    { pattern: '(.*)+$', title: '(.x)+$', status: 201 },
    { pattern: '(.*)+$', title: 'anything', status: 403 },
  ])('of the pattern $pattern, "$title" is $status', async ({ pattern, title, status }) => {
    const { token } = await makeToken({ title: undefined, titlePattern: pattern })
    expect((await begin(token, { metadata: { title } })).status).toBe(status)
  })

  test('the same title, folder and tags may be sent', async () => {
    const { token } = await makeToken({ tags: ['a', 'b'] })
    expect((await begin(token, { metadata: { title: 'Homework', folderId: 'root', tags: 'b,a' } })).status).toBe(201)
  })
})

test('X43: a token for a video replaces the file of that video alone, changes nothing else, and is made by an editor alone', async () => {
  const videoId = await reelgate.owner.readyVideo(footage.movieHello, 'Lesson 12')
  const other = await reelgate.owner.readyVideo(footage.movieHello, 'Lesson 13')
  const { id, token } = await makeToken({ title: undefined, videoId, maxFiles: 2, reference: 'student 4711' })
  for (const [name, value] of Object.entries({ videoId: other, title: 'Mine', folderId: '0'.repeat(32), tags: 'exam' }))
    expect((await begin(token, { metadata: { [name]: value } })).status).toBe(403)
  expect((await sendForm({ token })).status).toBe(403)
  const page = pageWith(token)
  const revokedOne = await makeToken({ title: undefined, videoId })
  const begun = await pageWith(revokedOne.token).create(10)
  await reelgate.owner.call('DELETE', `/api/upload-tokens/${revokedOne.id}`)
  expect((await createTusClient(reelgate.owner).head(begun.address)).status).toBe(404)
  // One that is ended before it has arrived, or expires, counts for none of the token's files.
  const { address: ended } = await page.create(10)
  expect((await page.remove(ended)).status).toBe(204)
  expect(await listed(id)).toMatchObject({ files: 0 })
  const { address, videoId: replaced } = await page.create(10)
  expect(replaced).toBe(videoId)
  expect((await page.patch(address, 0, '0123456789')).status).toBe(204)
  expect(await reelgate.owner.video(videoId)).toMatchObject({
    title: 'Lesson 12',
    status: 'ready',
    replacement: { kind: 'replace' },
  })
  expect(readRows(reelgate, 'select upload_reference from video where id = ?', videoId)).toEqual([
    { upload_reference: 'student 4711' },
  ])
  expect(await listed(id)).toMatchObject({ files: 1, videoId })
  const uploader = await reelgate.owner.call('POST', '/api/keys', { body: { name: 'site', permissions: ['uploader'] } })
  const { secret } = (await uploader.json()) as { secret: string }
  await expect(makeToken({ title: undefined, videoId }, createOwner(reelgate.url, secret))).rejects.toThrow(/^403/)
  await expect(makeToken({ title: undefined, videoId }, await reelgate.newOwner('not theirs'))).rejects.toThrow(/^404/)
  await expect(makeToken({ videoId })).rejects.toThrow(/^400/)
})

test('X44: a file that is larger than the token allows is refused, whether its length is said first, later or never', async () => {
  const { token } = await makeToken({ maxSizeBytes: 1000, maxFiles: 10 })
  const page = pageWith(token)
  const said = await begin(token, { length: 1001 })
  expect([said.status, said.headers.get('Tus-Max-Size') ?? '1000', corsOf(said)]).toEqual([413, '1000', PAGE])
  const { address } = await page.create(undefined)
  expect((await page.patch(address, 0, 'x'.repeat(900))).status).toBe(204)
  expect((await page.patch(address, 900, 'x'.repeat(101))).status).toBe(413)
  expect((await page.patch(address, 900, '', { 'Upload-Length': '1001' })).status).toBe(413)
  const before = (await listFiles(reelgate, 'sources')).length
  expect((await sendForm({ token }, randomBytes(1001))).status).toBe(413)
  await expect.poll(async () => (await listFiles(reelgate, 'sources')).length).toBe(before)
  expect((await page.patch(address, 900, 'x'.repeat(100), { 'Upload-Length': '1000' })).status).toBe(204)
})

describe('X45: after its end a token opens nothing, and its page can read so:', () => {
  test('expired', async () => {
    const { id, token } = await makeToken({ maxFiles: 10 })
    const { address } = await pageWith(token).create(10)
    changeRows(reelgate, 'update upload_token set expires_at_s = 1 where id = ?', id)
    for (const refused of [await begin(token), await pageWith(token).patch(address, 0, 'x')])
      expect([refused.status, corsOf(refused)]).toEqual([401, PAGE])
    expect((await sendForm({ token })).status).toBe(401)
  })

  test('revoked, and what was being sent with it is deleted', async () => {
    const { id, token } = await makeToken({ maxFiles: 10 })
    const page = pageWith(token)
    const [whole, part] = [await page.create(10), await page.create(10)]
    await page.patch(whole.address, 0, '0123456789')
    await page.patch(part.address, 0, '01234')
    expect((await reelgate.owner.call('DELETE', `/api/upload-tokens/${id}`)).status).toBe(200)
    for (const refused of [await begin(token), await page.patch(part.address, 5, '56789')])
      expect([refused.status, corsOf(refused)]).toEqual([401, PAGE])
    expect((await sendForm({ token })).status).toBe(401)
    expect((await reelgate.owner.call('GET', `/api/videos/${part.videoId}`)).status).toBe(404)
    expect((await reelgate.owner.call('GET', `/api/videos/${whole.videoId}`)).status).toBe(200)
    expect((await reelgate.owner.call('DELETE', `/api/upload-tokens/${id}`)).status).toBe(404)
  })

  test('with the key that made it', async () => {
    const made = await reelgate.owner.call('POST', '/api/keys', { body: { name: 'site', permissions: ['uploader'] } })
    const { id, secret } = (await made.json()) as { id: string; secret: string }
    const { token } = await makeToken({}, createOwner(reelgate.url, secret))
    await reelgate.owner.call('DELETE', `/api/keys/${id}`)
    expect((await begin(token)).status).toBe(401)
  })
})

test('X46: a token brings nothing to another account, and no other account sees or revokes it', async () => {
  const other = await reelgate.newOwner('another school')
  const { id, token } = await makeToken({}, other)
  const { videoId } = await pageWith(token).create(10)
  expect((await reelgate.owner.call('GET', `/api/videos/${videoId}`)).status).toBe(404)
  expect((await other.video(videoId)).title).toBe('Homework')
  expect(await listed(id)).toBeUndefined()
  expect((await reelgate.owner.call('DELETE', `/api/upload-tokens/${id}`)).status).toBe(404)
  const folder = await other.call('POST', '/api/videos/folders', { body: { name: 'theirs' } })
  const { id: folderId } = (await folder.json()) as { id: string }
  await expect(makeToken({ folderId })).rejects.toThrow(/^404/)
})

test('X47: a flood with a token is refused by its address, and takes nothing from the limits of the owner', async () => {
  const limited = await startSharedReelgate({
    env: {
      REELGATE_LIMITS: JSON.stringify({ reads: { ip: 20 }, uploads: { ip: 5, key: 5 } }),
      REELGATE_TRUSTED_PROXIES: '127.0.0.1',
    },
  })
  try {
    const made = await limited.owner.call('POST', '/api/upload-tokens', { body: { origin: PAGE, title: 'x', maxFiles: 100 } })
    const { token } = (await made.json()) as Made
    const at = (address: string) =>
      createTusClient(limited.owner, `Bearer ${token}`, { Origin: PAGE, 'X-Forwarded-For': address })
    const page = at('192.0.2.7')
    const { address } = await page.create(10, { filename: 'a.mp4' })
    const begun: number[] = []
    for (let n = 0; n < 6; n++) begun.push((await page.call('POST', page.endpoint, { 'Upload-Length': '10' })).status)
    expect(begun.at(-1)).toBe(429)
    let last = await page.head(address)
    for (let n = 0; n < 20; n++) last = await page.head(address)
    expect([last.status, corsOf(last), Number(last.headers.get('Retry-After')) > 0]).toEqual([429, PAGE, true])
    expect((await at('192.0.2.8').head(address)).status).toBe(200)
    expect((await limited.owner.call('GET', '/api/videos')).status).toBe(200)
    expect((await limited.owner.credentials('still')).videoId).not.toBe('')
  } finally {
    await limited.remove()
  }
})

describe('X48: a browser is allowed to ask with a token from the origins of living tokens, and from no others:', () => {
  const ask = (origin: string, path = '/api/uploads') =>
    fetch(`${reelgate.url}${path}`, {
      method: 'OPTIONS',
      headers: { Origin: origin, 'Access-Control-Request-Method': 'PATCH', 'Access-Control-Request-Headers': 'authorization' },
    })

  test('its preflight', async () => {
    const [lives, ends, expires] = ['https://lives.example', 'https://ends.example', 'https://expires.example']
    await makeToken({ origin: lives })
    const ended = await makeToken({ origin: ends })
    const expired = await makeToken({ origin: expires })
    for (const path of ['/api/uploads', `/api/uploads/${'0'.repeat(32)}`]) {
      const allowed = await ask(lives, path)
      expect([allowed.status, corsOf(allowed), allowed.headers.get('Access-Control-Allow-Methods')]).toEqual([
        204,
        lives,
        'POST, HEAD, PATCH, DELETE',
      ])
      expect(allowed.headers.get('Access-Control-Allow-Headers')).toMatch(/Authorization, Content-Type, Tus-Resumable/)
      expect(allowed.headers.get('Access-Control-Allow-Credentials')).toBeNull()
    }
    expect(corsOf(await ask(ends))).toBe(ends)
    await reelgate.owner.call('DELETE', `/api/upload-tokens/${ended.id}`)
    changeRows(reelgate, 'update upload_token set expires_at_s = 1 where id = ?', expired.id)
    for (const origin of [ends, expires, 'https://none.example', 'null']) {
      const { status, headers } = await ask(origin)
      expect([status, [...headers.keys()].filter((name) => name.startsWith('access-control'))]).toEqual([204, []])
      expect(headers.get('Vary')).toBe('Origin')
    }
  })

  test('the answers to a key have no header of CORS, from such an origin, too', async () => {
    await makeToken()
    for (const as of [`Apisecret ${reelgate.owner.apiKey}`, `Bearer ${reelgate.owner.apiKey}`]) {
      const withKey = createTusClient(reelgate.owner, as, { Origin: PAGE })
      const { response, address } = await withKey.create(10)
      for (const answer of [response, await withKey.head(address), await withKey.patch(address, 3, 'x')])
        expect([...answer.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
    }
  })

  test('so has the answer to an unknown token', async () => {
    const refused = await begin(`upload_${'x'.repeat(64)}`)
    expect([refused.status, corsOf(refused)]).toEqual([401, null])
  })
})

test('X49: a token whose account is disabled or may not upload brings nothing', async () => {
  const other = await reelgate.newOwner('closed')
  const { id } = (await (await other.call('GET', '/api/account')).json()) as { id: string }
  const { token } = await makeToken({}, other)
  for (const [column, value] of [
    ['may_upload', 0],
    ['disabled', 1],
  ] as const) {
    changeRows(reelgate, `update account set ${column} = ? where id = ?`, value, id)
    expect((await begin(token)).status).toBe(403)
    expect((await sendForm({ token })).status).toBe(403)
  }
})

test.each([
  { what: 'an origin with a path', body: { origin: `${PAGE}/page` } },
  { what: 'any origin', body: { origin: '*' } },
  { what: 'an opaque origin', body: { origin: 'null' } },
  { what: 'an origin without TLS', body: { origin: 'http://school.example' } },
  { what: 'no wildcard in a pattern', body: { title: undefined, titlePattern: 'Homework' } },
  { what: 'title and pattern', body: { titlePattern: 'Homework *' } },
  { what: 'a lifetime of a year', body: { ttl: 365 * 86_400 } },
  { what: 'a misspelled limit', body: { maxFile: 1 } },
])('a token with $what is not made', async ({ body }) => {
  await expect(makeToken(body)).rejects.toThrow(/^400/)
})
