import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createOwner, type Owner, uploadForm } from '../client.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { sendRaw } from '../raw-http.ts'
import { readRows } from '../rows.ts'

// Tags and upload policies in the earlier interface, and what all of its operations have in common: wire-contract.md, section 6.

let reelgate: Reelgate & { remove(): Promise<void> }
let owner: Owner
let ids: string[]
beforeAll(async () => {
  reelgate = await startSharedReelgate()
})
afterAll(() => reelgate.remove())
beforeEach(async () => {
  owner = reelgate.owner
  ids = []
  for (const title of ['One', 'Two', 'Three']) ids.push((await owner.credentials(title)).videoId)
})

type Fields = Record<string, string> | [string, string][]
function post(path: string, fields: Fields = {}, apiKey = owner.apiKey) {
  const body = new URLSearchParams(fields)
  body.append('clientSecretKey', apiKey)
  return postForm(path, body)
}
async function postForm(path: string, body: URLSearchParams) {
  const response = await fetch(`${reelgate.url}/v2${path}`, { method: 'POST', body })
  const text = await response.text()
  return { status: response.status, text, type: response.headers.get('content-type')?.split(';')[0] ?? '' }
}
const done = { status: 200, text: '{"message":"Done"}', type: 'application/json' }
const tagsOf = async (id: string | undefined) => (await owner.video(id ?? '')).tags
const titlesFound = async (path: string, fields?: Fields): Promise<string[]> => {
  const { status, text } = await post(path, fields)
  if (status !== 200) throw new Error(`${path}: ${status} ${text}`)
  return (JSON.parse(text) as { title: string }[]).map(({ title }) => title)
}

describe('tags are added and removed, whatever the form of the lists', () => {
  const [a, b] = [() => ids[0] ?? '', () => ids[1] ?? '']
  const multipart = (fields: [string, string][]) => {
    const form = new FormData()
    for (const [name, value] of [...fields, ['clientSecretKey', owner.apiKey] as const]) form.append(name, value)
    return form
  }
  test.each<[string, (path: string) => Promise<{ status: number; text: string }>]>([
    [
      'videos[] and tags[], repeated, in the body',
      (path) =>
        post(path, [
          ['videos[]', a()],
          ['videos[]', b()],
          ['tags[]', 'x'],
          ['tags[]', 'y, z'],
        ]),
    ],
    [
      'PHP’s indexes, in the body',
      (path) => post(path, { 'videos[0]': a(), 'videos[1]': b(), 'tags[1]': 'y, z', 'tags[0]': 'x' }),
    ],
    [
      'the names repeated',
      (path) =>
        post(path, [
          ['videos', a()],
          ['videos', b()],
          ['tags', 'x'],
          ['tags', 'y, z'],
        ]),
    ],
    ['JSON in a field', (path) => post(path, { videos: JSON.stringify([a(), b()]), tags: '["x","y, z"]' })],
    [
      'PHP’s indexes, in the query',
      (path) => post(`${path}?${new URLSearchParams({ 'videos[0]': a(), 'videos[1]': b(), 'tags[0]': 'x', 'tags[1]': 'y, z' })}`),
    ],
    [
      'videos in the query, tags in the body',
      (path) =>
        post(`${path}?videos=${a()},${b()}`, [
          ['tags[]', 'x'],
          ['tags[]', 'y, z'],
        ]),
    ],
    [
      'a JSON body',
      async (path) => {
        const body = JSON.stringify({ clientSecretKey: owner.apiKey, videos: [a(), b()], tags: ['x', 'y, z'] })
        const headers = { 'Content-Type': 'application/json' }
        const response = await fetch(`${reelgate.url}/v2${path}`, { method: 'POST', headers, body })
        return { status: response.status, text: await response.text() }
      },
    ],
    [
      'a multipart body',
      async (path) => {
        const fields: [string, string][] = [
          ['videos[]', a()],
          ['videos[]', b()],
          ['tags[0]', 'x'],
          ['tags[1]', 'y, z'],
        ]
        const response = await fetch(`${reelgate.url}/v2${path}`, { method: 'POST', body: multipart(fields) })
        return { status: response.status, text: await response.text() }
      },
    ],
  ])('%s', async (_, change) => {
    expect(await change('/tags/add')).toMatchObject({ status: 200, text: '{"message":"Done"}' })
    expect(await Promise.all(ids.map(tagsOf))).toEqual([['x', 'y, z'], ['x', 'y, z'], []])
    await post('/tags/add', { videos: b(), tags: 'stays' })
    expect(await change('/TAGS/Remove/')).toMatchObject({ status: 200, text: '{"message":"Done"}' })
    expect(await Promise.all(ids.map(tagsOf))).toEqual([[], ['stays'], []])
  })

  test('one text with commas is as many ids or tags', async () => {
    expect(await post('/tags/add', { videos: `${a()}, ${b()}`, tags: 'x, y,,z ,[draft]' })).toEqual(done)
    expect(await tagsOf(b())).toEqual(['x', 'y', 'z', '[draft]'])
    expect(await post('/tags/add', { videos: a(), tags: '[draft]' })).toEqual(done)
  })
})

test('the current interface takes its lists from forms with brackets as well', async () => {
  const ask = (method: string, fields: [string, string][]) =>
    fetch(`${reelgate.url}/api/videos/tags`, {
      method,
      headers: { Authorization: `Apisecret ${owner.apiKey}` },
      body: new URLSearchParams(fields),
    })
  const [one = '', two = ''] = ids
  const lists: [string, string][] = [
    ['videos[]', one],
    ['videos[]', two],
    ['tags[0]', 'a,b'],
  ]
  expect((await ask('POST', lists)).status).toBe(200)
  expect(await tagsOf(two)).toEqual(['a,b'])
  expect((await ask('DELETE', lists)).status).toBe(200)
  expect(await tagsOf(two)).toEqual([])
  expect((await ask('POST', [['videos[]', one]])).status).toBe(400)
})

describe('what is no list of ids and tags is refused, and nothing happens', () => {
  test.each<[string, Fields]>([
    ['no videos', { 'tags[]': 'x' }],
    ['no tags', { 'videos[]': 'x' }],
    ['an empty tag', { 'videos[]': 'x', 'tags[]': ' ' }],
    ['a list within the list', { videos: '[["x"]]', tags: 'x' }],
    ['a JSON number', { videos: '[1]', tags: 'x' }],
  ])('%s: 400', async (_, fields) => {
    for (const path of ['/tags/add', '/tags/remove']) {
      const { status, text } = await post(path, fields)
      expect({ status, body: JSON.parse(text) }).toEqual({ status: 400, body: { error: expect.any(String) } })
    }
  })

  test('K08: one unknown id refuses the whole call, as a video that is not found', async () => {
    await post('/tags/add', { videos: ids.join(), tags: 'old' })
    for (const path of ['/tags/add', '/tags/remove']) {
      const videos = [...ids, 'f'.repeat(32)].join()
      expect(await post(path, { videos, tags: 'old,new' })).toMatchObject({ status: 200, text: '{"error":"No video found"}' })
    }
    expect(await Promise.all(ids.map(tagsOf))).toEqual([['old'], ['old'], ['old']])
  })

  test('Q14: more fields than are read are reported, not ignored', async () => {
    const many = Array.from({ length: 10_001 }, (): [string, string] => ['videos[]', 'x'])
    const form = new URLSearchParams([['clientSecretKey', owner.apiKey], ...many, ['tags[]', 'x']])
    expect(await postForm('/tags/add', form)).toMatchObject({ status: 413 })
    expect(await post('/tags/add', many)).toMatchObject({ status: 401, text: expect.stringContaining('first 64 KiB') })
  })

  test('Q14: a hundred thousand ids', async () => {
    const many = JSON.stringify(Array.from({ length: 100_000 }, () => 'x'))
    const form = new URLSearchParams({ clientSecretKey: owner.apiKey, videos: many, tags: 'x' })
    expect((await postForm('/tags/add', form)).status).toBe(413)
  })
})

describe('a search by tags', () => {
  test('finds the videos that carry them all, newest first, in the form of the list', async () => {
    owner = await reelgate.newOwner('searching by tags')
    ids = []
    for (let i = 0; i < 33; i++) ids.push((await owner.credentials(`Video ${i}`)).videoId)
    await post('/tags/add', { videos: ids.join(), tags: 'all' })
    await post('/tags/add', { videos: ids.filter((_, i) => i % 2).join(), tags: 'odd,ODD' })
    expect(await titlesFound('/tags/search', { tags: 'all' })).toHaveLength(30)
    expect(await titlesFound('/tags/search?limit=1000', { tags: 'all' })).toHaveLength(33)
    expect(await titlesFound('/tags/search?limit=2&page=2&tags[]=all&tags[]=odd')).toEqual(['Video 27', 'Video 25'])
    expect(await titlesFound('/tags/search', { tags: 'all,Odd' })).toEqual([])
    expect(await titlesFound('/tags/search', { tags: 'unknown' })).toEqual([])
    const { text } = await post('/tags/search', { tags: 'odd', 'tags[]': 'ODD' })
    const list = await post('/videos?limit=1&search[title]=Video 31')
    expect((JSON.parse(text) as object[])[0]).toEqual((JSON.parse(list.text) as object[])[0])
    expect((await post('/tags/search?page=x', { tags: 'all' })).status).toBe(400)
  })

  test('Q12: by no tag, or by more than fifty, is 400', async () => {
    for (const tags of ['', Array.from({ length: 51 }, (_, i) => `t${i}`).join()])
      expect((await post('/tags/search', { tags })).status).toBe(400)
    expect((await post('/tags/search')).status).toBe(400)
    expect(await titlesFound('/tags/search', { tags: Array.from({ length: 50 }, (_, i) => `t${i}`).join() })).toEqual([])
  })
})

describe('a search of the list', () => {
  const found = (query: Record<string, string>) => titlesFound(`/videos?${new URLSearchParams(query)}`)

  test('is joined by AND in each form that clients write', async () => {
    const [one = ''] = ids
    expect(await found({ 'search[0][id]': one, 'search[1][title]': 'on' })).toEqual(['One'])
    expect(await found({ 'search[][id]': one })).toEqual(['One'])
    expect(await found({ search: JSON.stringify([{ id: one }, { title: 'ONE' }]) })).toEqual(['One'])
    expect(await found({ search: JSON.stringify([{ id: one }, { title: 'two' }]) })).toEqual([])
    expect(await found({ 'search[id]': one, search: '{"title":"two"}' })).toEqual([])
    expect(await found({ search: '[]', 'search[id]': one })).toEqual(['One'])
  })

  test.each(['search[title]=a&search[title]=b', 'search[0][title]=a&search[1][title]=b', 'search=[1]', 'search={"id":["a"]}'])(
    'Q05: %s is 400',
    async (query) => {
      expect((await post(`/videos?${query}`)).status).toBe(400)
    },
  )
})

describe('an upload policy', () => {
  test('has the fields of the form, and uploads one video', async () => {
    const { status, text } = await post('/UPLOADPOLICY', { title: 'By policy' })
    expect(status).toBe(200)
    const { video_id: videoId, upload_link, upload_link_secure, ...fields } = JSON.parse(text) as Record<string, string>
    expect(Object.keys(fields).sort()).toEqual([
      'key',
      'policy',
      'x-amz-algorithm',
      'x-amz-credential',
      'x-amz-date',
      'x-amz-signature',
    ])
    expect([upload_link, upload_link_secure]).toEqual([`${reelgate.url}/upload`, `${reelgate.url}/upload`])
    expect(await owner.video(videoId ?? '')).toMatchObject({ title: 'By policy', status: 'PRE-Upload' })
    const upload = { clientPayload: { ...fields, uploadLink: upload_link ?? '' }, videoId: videoId ?? '' }
    const form = uploadForm(upload, new Blob(['no video']), 'a.mp4')
    expect((await fetch(upload_link_secure ?? '', { method: 'POST', body: form })).status).toBe(201)
  })

  test('takes its title from any body, and is refused without one that can be kept', async () => {
    const body = new FormData()
    body.append('clientSecretKey', owner.apiKey)
    body.append('title', 'Größe 🎬')
    const made = await fetch(`${reelgate.url}/v2/uploadPolicy`, { method: 'POST', body })
    const { video_id } = (await made.json()) as { video_id: string }
    expect((await owner.video(video_id)).title).toBe('Größe 🎬')
    const before = readRows(reelgate, 'select 1 from video').length
    for (const fields of [{}, { title: '' }, { title: 'x'.repeat(501) }, { 'title[]': 'x' }])
      expect((await post('/uploadPolicy', fields as Record<string, string>)).status).toBe(400)
    expect(readRows(reelgate, 'select 1 from video')).toHaveLength(before)
  })

  test('is 403 where uploads are off, as its representation says', async () => {
    const made = await reelgate.cli('account', 'create', 'off', '--no-upload', '--json')
    const { apiKey } = JSON.parse(made.stdout) as { apiKey: string }
    const json = await post('/uploadPolicy', { title: 'x' }, apiKey)
    expect({ ...json, text: JSON.parse(json.text) }).toEqual({
      status: 403,
      type: 'application/json',
      text: { error: expect.any(String) },
    })
    const xml = await post('/uploadPolicy?type=xml', { title: 'x' }, apiKey)
    expect(xml).toMatchObject({ status: 403, type: 'application/xml' })
    expect(xml.text).toMatch(/<result><error>[^<]+<\/error><\/result>$/)
  })
})

const OPERATIONS = ['/otp', '/videos', '/video', '/importUrl', '/uploadPolicy', '/tags/add', '/tags/remove', '/tags/search']

describe('every operation', () => {
  test('is named in the error for a route that does not exist', async () => {
    const { status, text } = await post('/nothing')
    expect(status).toBe(404)
    for (const path of OPERATIONS) expect((JSON.parse(text) as { error: string }).error).toMatch(new RegExp(`/v2${path}[, .]`))
  })

  test.each(OPERATIONS)(
    '%s answers a wrong key with 401 in the representation that type asks for, in any spelling',
    async (path) => {
      for (const spelt of [path, path.toUpperCase(), `${path.toLowerCase()}/`]) {
        const json = await post(spelt, {}, 'x'.repeat(64))
        expect({ ...json, text: JSON.parse(json.text) }).toEqual({
          status: 401,
          type: 'application/json',
          text: { error: expect.any(String) },
        })
        const xml = await post(`${spelt}?type=xml`, {}, 'x'.repeat(64))
        expect(xml).toMatchObject({ status: 401, type: 'application/xml' })
        expect(xml.text).toMatch(/^<\?xml version="1.0" encoding="UTF-8"\?>\n<result><error>[^<]+<\/error><\/result>$/)
      }
    },
  )

  test.each(['XML', 'Xml'])('X04: type=%s is XML', async (type) => {
    expect(await post(`/videos?type=${type}`)).toMatchObject({ status: 200, type: 'application/xml' })
  })

  test.each(['type=html', 'type[]=xml', 'type=json%00', 'type=', 'type=xml&type=json', 'type=xml%00', 'type=application/xml'])(
    'X04: %s is JSON, and says so',
    async (query) => {
      const { status, type, text } = await post(`/videos?limit=1&${query}`)
      expect({ status, type }).toEqual({ status: 200, type: 'application/json' })
      expect(JSON.parse(text)).toHaveLength(1)
    },
  )

  test('X11: what a refusal repeats of the request is no page that a browser would show', async () => {
    const hostile = encodeURIComponent('<script>alert(1)</script>')
    for (const target of [
      `POST /v2/videos?search=${hostile}`,
      `POST /v2/${hostile}`,
      `GET /api/videos?page=${hostile}`,
      `GET /api/${hostile}`,
    ]) {
      const { headers, status } = await sendRaw(
        reelgate.url,
        target,
        [`Authorization: Apisecret ${owner.apiKey}`, 'Content-Type: application/x-www-form-urlencoded'],
        target.startsWith('POST') ? `clientSecretKey=${owner.apiKey}` : '',
      )
      expect(status).toBeGreaterThanOrEqual(400)
      expect(headers.get('content-type')).toMatch(/^application\/json/)
      expect(headers.get('x-content-type-options')).toBe('nosniff')
    }
  })
})

test('K11: a key that may only read searches by tags, and changes none', async () => {
  const account = JSON.parse((await reelgate.cli('account', 'create', 'reading v2', '--json')).stdout) as {
    accountId: string
    apiKey: string
  }
  const { videoId } = await createOwner(reelgate.url, account.apiKey).credentials('A video')
  const made = await reelgate.cli('key', 'create', account.accountId, '--permission', 'viewer', '--json')
  const { apiKey } = JSON.parse(made.stdout) as { apiKey: string }
  for (const path of ['/tags/add', '/tags/remove', '/uploadPolicy'])
    expect((await post(path, { videos: videoId, tags: 'x', title: 'x' }, apiKey)).status).toBe(403)
  expect(await post('/tags/search', { tags: 'x' }, apiKey)).toMatchObject({ status: 200, text: '[]' })
  expect((await createOwner(reelgate.url, account.apiKey).video(videoId)).tags).toEqual([])
})
