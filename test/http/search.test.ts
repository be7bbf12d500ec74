import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Owner } from '../client.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { sendRaw } from '../raw-http.ts'
import { readRows } from '../rows.ts'

// Searching, filtering and paging on both interfaces: wire-contract.md, sections 3 and 6; threats Q01 to Q15.

let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  reelgate = await startSharedReelgate()
})
afterAll(() => reelgate.remove())

const encode = encodeURIComponent
const titlesOf = (found: { rows: { title: string }[] }) => found.rows.map((row) => row.title).sort()
const search = async (owner: Owner, q: string) => titlesOf(await owner.list(`?limit=40&q=${encode(q)}`))

async function ownerOf(name: string, titles: readonly string[]): Promise<Owner & { ids: string[] }> {
  const owner = await reelgate.newOwner(name)
  const ids: string[] = []
  for (const title of titles) ids.push((await owner.credentials(title)).videoId)
  return Object.assign(owner, { ids })
}

async function v2<T>(owner: Owner, path: string, fields: Record<string, string> = {}): Promise<{ status: number; body: T }> {
  const body = new URLSearchParams({ clientSecretKey: owner.apiKey, ...fields })
  const response = await fetch(`${owner.url}/v2${path}`, { method: 'POST', body })
  return { status: response.status, body: (await response.json()) as T }
}

type Entity = { id: string; title: string; file: string; [field: string]: unknown }
const v2Search = async (owner: Owner, query: string) =>
  (await v2<Entity[]>(owner, `/videos?limit=100&${query}`)).body.map((entity) => entity.title).sort()

describe('a part of the title or id is found in any case', () => {
  let owner: Owner & { ids: string[] }
  beforeAll(async () => {
    owner = await ownerOf('searched', [
      'Lesson 12 – Light',
      'lesson 13 – Shadow',
      'Ünïcode ÉTÉ',
      'οδυσσεύς',
      'x',
      'Straße',
      'İzmir ışığı',
    ])
  })

  test.each([
    ['lesson', ['Lesson 12 – Light', 'lesson 13 – Shadow']],
    ['LESSON 1', ['Lesson 12 – Light', 'lesson 13 – Shadow']],
    ['ght', ['Lesson 12 – Light']],
    ['– s', ['lesson 13 – Shadow']],
    ['ünï', ['Ünïcode ÉTÉ']],
    ['été', ['Ünïcode ÉTÉ']],
    ['X', ['x']],
    ['li', ['Lesson 12 – Light']],
    ['lessons', []],
  ])('q=%s', async (q, titles) => {
    expect(await search(owner, q)).toEqual(titles)
  })

  test('also a part of the id, of any length', async () => {
    const id = owner.ids[2] ?? ''
    for (const part of [id, id.slice(5, 20), id.toUpperCase().slice(0, 12)]) {
      expect(await search(owner, part)).toEqual(['Ünïcode ÉTÉ'])
    }
  })

  test.each([
    ['NFD finds NFC', 'u\u0308ni\u0308', ['Ünïcode ÉTÉ']],
    ['a final sigma is a sigma', 'ΟΔΥΣΣΕΎΣ', ['οδυσσεύς']],
    ['two letters too', 'ΎΣ', ['οδυσσεύς']],
    ['ß is not ss', 'strasse', []],
    ['ß is ß', 'straß', ['Straße']],
    ['SS is not ß', 'STRASSE', []],
    ['a Turkish İ is İ', 'İZMİR'.slice(0, 3), ['İzmir ışığı']],
    ['a Turkish İ is no i', 'izmir', []],
    ['a Turkish ı is ı', 'ışı', ['İzmir ışığı']],
    ['a Turkish ı is no i', 'işi', []],
    ['an accent is not nothing', 'ete', []],
    ['NUL is in no title', 'Les\0', []],
    ['a combining mark alone', '\u0308', []],
  ])('Q04: %s', async (_, q, titles) => {
    expect(await search(owner, q)).toEqual(titles)
  })

  test('Q04: bytes that are no UTF-8 find nothing and break nothing', async () => {
    const { status } = await sendRaw(reelgate.url, 'GET /api/videos?q=%FF%FE', [`Authorization: Apisecret ${owner.apiKey}`])
    expect([200, 400]).toContain(status)
  })
})

describe('what means something elsewhere is taken literally', () => {
  const TITLES = [
    "it's 100% \\ done_",
    'a*b [a-z] "q"',
    'plain',
    "' OR 1=1--",
    '";drop table video;--',
    '{title} : x AND y NOT (z)',
  ]
  let owner: Owner
  beforeAll(async () => {
    owner = await ownerOf('literal', TITLES)
  })
  const containing = (part: string) => TITLES.filter((title) => title.toLowerCase().includes(part.toLowerCase())).sort()

  test.each(['%', '_', '\\', '%_%', '[a-z]', '*', '"', '""', "'", '"q"', '100%', 'a*b', '\\ d', 'done_'])(
    'Q02: q=%s',
    async (q) => {
      expect(await search(owner, q)).toEqual(containing(q))
      expect(await v2Search(owner, `search[title]=${encode(q)}`)).toEqual(containing(q))
    },
  )

  test.each([
    "' OR 1=1--",
    '";drop',
    "\\'",
    '%27',
    '") or 1=1 --',
    'AND y NOT',
    '{title} :',
    'title:x',
    '^pla',
    'pla*',
    'NEAR(a b)',
  ])('Q01: %s is a text in every parameter, and nothing changes', async (text) => {
    const before = readRows(reelgate, 'select * from video order by position')
    expect(await search(owner, text)).toEqual(containing(text))
    expect(await v2Search(owner, `search[title]=${encode(text)}`)).toEqual(containing(text))
    for (const name of ['id', 'file']) expect(await v2Search(owner, `search[${name}]=${encode(text)}`)).toEqual([])
    for (const name of ['tag', 'tags']) expect((await owner.list(`?${name}=${encode(text)}`)).rows).toEqual([])
    expect((await owner.call('GET', `/api/videos/${encode(text)}`)).status).toBe(404)
    expect((await owner.delete([encode(text)])).message).toBe('Successfully deleted 0 videos')
    expect(readRows(reelgate, 'select * from video order by position')).toEqual(before)
  })

  test.each([
    ['10 000 letters', 'a'.repeat(10_000)],
    ['5 000 percent signs', '%'.repeat(5_000)],
    ['what a pattern would choke on', '(a+)+$'.repeat(200)],
    ['200 open brackets', '('.repeat(200)],
  ])('Q03: %s find nothing', async (_, q) => {
    expect(await search(owner, q)).toEqual([])
  })
})

describe('the earlier interface', () => {
  let owner: Owner & { ids: string[] }
  beforeAll(async () => {
    owner = await ownerOf('earlier', ['Red kitchen', 'Red garden', 'Blue garden'])
  })

  test('Q05: a key that is none of these is no column', async () => {
    const all = ['Blue garden', 'Red garden', 'Red kitchen']
    for (const name of ['password', 'account_id', 'position', 'rowid', '__proto__']) {
      expect(await v2Search(owner, `search[${name}]=x`)).toEqual(all)
    }
  })

  test('takes search as one JSON value', async () => {
    expect(await v2Search(owner, `search=${encode('{"title":"garden","id":""}')}`)).toEqual(['Blue garden', 'Red garden'])
    for (const bad of ['x', '[1]', '"a"', '{"title":1}']) {
      expect((await v2(owner, `/videos?search=${encode(bad)}`)).status).toBe(400)
    }
  })

  test('gives each video its eight fields and no more, newest first, as a bare array', async () => {
    const { body } = await v2<Entity[]>(owner, '/videos')
    expect(body.map((entity) => entity.id)).toEqual(owner.ids.toReversed())
    expect(body[0]).toEqual({
      id: owner.ids[2],
      title: 'Blue garden',
      description: '',
      file: '',
      length: 0,
      viewCount: 0,
      statusText: 'queued',
      date_added: expect.any(Number),
    })
  })

  test('gives at most 100, and the rest on the pages behind', async () => {
    const many = await ownerOf(
      'many',
      Array.from({ length: 104 }, (_, i) => `Video ${i}`),
    )
    const count = async (query: string) => (await v2<Entity[]>(many, `/videos${query}`)).body.length
    expect(await count('?limit=1000')).toBe(100)
    expect(await count('?limit=100&page=2')).toBe(4)
    expect(await count('?page=99')).toBe(0)
  })

  test('reads one video in another spelling of its path too, and wants its id', async () => {
    const [id = ''] = owner.ids
    expect(await v2<Entity>(owner, `/VIDEO/?id=${id}`)).toMatchObject({ status: 200, body: { id, title: 'Red kitchen' } })
    expect((await v2(owner, '/video')).status).toBe(400)
  })

  test('deletes one video, which the current interface lists no more', async () => {
    const own = await ownerOf('deleting', ['One', 'Two'])
    const [one = '', two = ''] = own.ids
    expect((await v2(own, `/video?id=${one}`, { action: 'delete' })).status).toBe(200)
    expect(await own.list()).toMatchObject({ count: 1, rows: [{ id: two }] })
  })

  test('lists each video as an element of its own where type asks for XML', async () => {
    const body = new URLSearchParams({ clientSecretKey: owner.apiKey })
    const answer = await fetch(`${owner.url}/v2/videos?type=xml&search[title]=kitchen`, { method: 'POST', body })
    expect(await answer.text()).toMatch(
      /^<\?xml [^>]+\?>\n<videos><video><id>\w{32}<\/id><title>Red kitchen<\/title>.*<\/video><\/videos>$/,
    )
  })
})

describe('paging', () => {
  let owner: Owner & { ids: string[] }
  beforeAll(async () => {
    owner = await ownerOf(
      'paged',
      Array.from({ length: 60 }, (_, i) => `Chapter ${i} ${i % 3 === 0 ? 'third' : ''}`),
    )
  })

  test.each(['-1', '1e2', '0x10', '40abc', '%2040', '%D9%A4%D9%A0', '1.0', '1&limit=2', 'Infinity', 'NaN'])(
    'Q06: limit=%s is refused',
    async (limit) => {
      const { status, text } = await sendRaw(reelgate.url, `GET /api/videos?limit=${limit}`, [
        `Authorization: Apisecret ${owner.apiKey}`,
      ])
      expect(status).toBe(400)
      expect(JSON.parse(text).message).toMatch(/limit/)
    },
  )

  test.each(['40', '41', '100', '101', '1000000000', '2147483648', '9223372036854775808'])(
    'Q06: limit=%s gives 40',
    async (limit) => {
      expect((await owner.list(`?limit=${limit}`)).rows).toHaveLength(40)
    },
  )

  test.each(['-1', '0x10', '1e2'])('Q07: page=%s is refused', async (page) => {
    expect((await owner.call('GET', `/api/videos?page=${page}`)).status).toBe(400)
  })

  test.each([
    'page=1000000000',
    'page=9007199254740992',
    'page=9223372036854775808&limit=40',
    'page=9999999999999999999999999999&limit=9999999999999999999999',
    'page=1000000000&q=chapter',
  ])('Q07, Q08: %s is empty with the right count', async (query) => {
    expect(await owner.list(`?${query}`)).toEqual({ count: 60, rows: [] })
  })

  test.each([
    ['', 60],
    ['&q=third', 20],
    ['&q=rd', 20],
  ])(
    'Q10, Q11: videos of one second: pages%s are disjoint, complete, newest first, and their sum is the count',
    async (filter, count) => {
      expect(new Set((await owner.list('?limit=40')).rows.map((row) => row.upload_time)).size).toBeLessThan(40)
      const pages = await Promise.all(Array.from({ length: 9 }, (_, i) => owner.list(`?limit=7&page=${i + 1}${filter}`)))
      const ids = pages.flatMap(({ rows }) => rows.map((row) => row.id))
      const wanted = owner.ids.filter((_, i) => count === 60 || i % 3 === 0).toReversed()
      expect(ids).toEqual(wanted)
      expect(new Set(pages.map((page) => page.count))).toEqual(new Set([count]))
    },
  )

  test('Q15: what would sort or select elsewhere is ignored', async () => {
    expect((await owner.list('?order=title&sort=-id&fields=id&limit=2')).rows.map((row) => row.id)).toEqual(
      owner.ids.toReversed().slice(0, 2),
    )
  })

  test('Q09: while videos come and go, each page is whole: no video twice, none that was never there', async () => {
    const busy = await ownerOf(
      'busy',
      Array.from({ length: 30 }, (_, i) => `Standing ${i}`),
    )
    const pages: { count: number; rows: { id: string; title: string }[] }[] = []
    const changes = Array.from({ length: 60 }, async (_, i) => {
      const { videoId } = await busy.credentials(`Passing ${i}`)
      if (i % 2) await busy.delete([videoId])
    })
    for (let i = 0; i < 60; i++) pages.push(await busy.list(`?limit=40${i % 2 ? '&q=standing' : ''}`))
    await Promise.all(changes)
    for (const { count, rows } of pages) {
      expect(new Set(rows.map((row) => row.id)).size).toBe(rows.length)
      expect(rows.length).toBeLessThanOrEqual(40)
      expect(count).toBeGreaterThanOrEqual(30)
    }
    expect((await busy.list('?q=standing')).count).toBe(30)
    expect((await busy.list()).count).toBe(60)
  })
})

describe('countUpTo', () => {
  let owner: Owner & { ids: string[] }
  beforeAll(async () => {
    owner = await ownerOf(
      'counted',
      Array.from({ length: 9 }, (_, i) => `Scene ${i}`),
    )
  })

  test.each(['', 'q=sc', 'q=scene', 'q=ne%208', 'q=nothing', 'status=Queued', 'q=s&sort=title', 'q=sc&page=3', 'folderId=root'])(
    'GET /videos?%s has the same rows with it, and counts no further',
    async (query) => {
      const exact = await owner.list(`?limit=4&${query}`)
      for (const countUpTo of [1, 4, 9, 10, 10_000]) {
        const count = Math.min(exact.count, countUpTo)
        expect(await owner.list(`?limit=4&${query}&countUpTo=${countUpTo}`)).toEqual({ ...exact, count })
      }
      for (const absent of ['', '0']) expect(await owner.list(`?limit=4&${query}&countUpTo=${absent}`)).toEqual(exact)
    },
  )

  test('the Link headers lead through all videos, and keep it', async () => {
    const ids: string[] = []
    let next: string | undefined = '/api/videos?limit=4&q=sc&countUpTo=2'
    while (next) {
      const response = await owner.call('GET', next)
      const { count, rows } = (await response.json()) as { count: number; rows: { id: string }[] }
      expect(count).toBe(2)
      ids.push(...rows.map(({ id }) => id))
      const [, link] = /<[^>]*(\/api\/videos[^>]+)>; rel="next"/.exec(response.headers.get('link') ?? '') ?? []
      if (link) expect(link).toContain('countUpTo=2')
      next = link
    }
    expect(ids).toEqual(owner.ids.toReversed())
  })

  test.each(['-1', '1.5', '1e3', 'all', '10001', '9'.repeat(40), '1&countUpTo=2'])(
    'Q06: countUpTo=%s is refused',
    async (value) => {
      for (const query of ['', 'q=s&', 'sort=title&']) {
        const response = await owner.call('GET', `/api/videos?${query}countUpTo=${value}`)
        expect(response.status).toBe(400)
        expect(await response.text()).toContain('countUpTo')
      }
    },
  )

  test('a misspelled countupto is refused', async () => {
    expect((await owner.call('GET', '/api/videos?countupto=5')).status).toBe(400)
  })
})

describe('ETag', () => {
  let owner: Owner
  let videoId: string
  beforeEach(async () => {
    owner = await reelgate.newOwner('with tags')
    videoId = (await owner.credentials('First')).videoId
  })
  const list = (etag?: string, query = '') =>
    owner.call('GET', `/api/videos${query}`, { headers: etag ? { 'If-None-Match': etag } : {} })
  const tagOf = (response: Response) => response.headers.get('etag') ?? ''

  test('an account that has not changed is answered 304 without a body', async () => {
    const tag = tagOf(await list())
    for (const given of [tag, `W/${tag}`, `"other", ${tag}`, '*']) {
      const again = await list(given)
      expect({ status: again.status, body: await again.text(), etag: tagOf(again) }).toEqual({ status: 304, body: '', etag: tag })
    }
    expect((await list('"other"')).status).toBe(200)
  })

  test.each<[string, () => Promise<unknown>]>([
    ['a new video', () => owner.credentials('Second')],
    ['a new title', () => owner.call('POST', `/api/videos/${videoId}`, { body: { title: 'Other' } })],
    ['a tag', () => owner.call('POST', '/api/videos/tags', { body: { videos: [videoId], tags: ['a'] } })],
    ['a deletion', () => owner.delete([videoId])],
  ])('%s changes the list and its tag', async (_, change) => {
    const before = await list()
    const text = await before.text()
    await change()
    const after = await list(tagOf(before))
    expect(after.status).toBe(200)
    expect(tagOf(after)).not.toBe(tagOf(before))
    expect(await after.text()).not.toBe(text)
  })

  test('another account’s tag is not one’s own, nor does another query answer for this one', async () => {
    const other = await reelgate.newOwner('another')
    await other.credentials('First')
    expect((await other.call('GET', '/api/videos', { headers: { 'If-None-Match': tagOf(await list()) } })).status).toBe(200)
    await owner.credentials('Second')
    expect((await owner.list()).rows).toHaveLength(2)
    expect((await owner.list('?limit=1')).rows).toHaveLength(1)
    expect((await owner.list('?limit=1')).rows).toHaveLength(1)
  })
})
