import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Owner } from '../client.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { sendRaw } from '../raw-http.ts'

// What the current interface says of videos: wire-contract.md, sections 1 to 4.

let reelgate: Reelgate & { remove(): Promise<void> }
let owner: Owner
beforeAll(async () => {
  reelgate = await startSharedReelgate()
})
afterAll(() => reelgate.remove())

const raw = (line: string, lines: string[] = [], body = '') =>
  sendRaw(reelgate.url, line, [`Authorization: Apisecret ${owner.apiKey}`, ...lines], body)

describe('list', () => {
  /** Oldest first. */
  const ids: string[] = []
  beforeAll(async () => {
    owner = await reelgate.newOwner('with 45 videos')
    for (let i = 0; i < 45; i++) ids.push((await owner.credentials(`Video ${i}`)).videoId)
  })
  const page = (query: string) => owner.list(query).then(({ count, rows }) => ({ count, ids: rows.map((row) => row.id) }))
  const newestFirst = () => ids.toReversed()

  test('is newest first, also among videos of one second, with the number of all', async () => {
    expect(await page('?limit=40')).toEqual({ count: 45, ids: newestFirst().slice(0, 40) })
  })

  test.each(['41', '100', '1000000', '99999999999999999999'])('gives 40 where %s are asked for', async (limit) => {
    expect(await page(`?limit=${limit}`)).toEqual({ count: 45, ids: newestFirst().slice(0, 40) })
  })

  test('pages count from 1 and neither miss nor repeat a video', async () => {
    const pages = await Promise.all([1, 2, 3, 4, 5].map((number) => page(`?page=${number}&limit=10`)))
    expect(pages.map(({ count }) => count)).toEqual([45, 45, 45, 45, 45])
    expect(pages.flatMap((found) => found.ids)).toEqual(newestFirst())
    expect(await page('?page=2&limit=40')).toEqual({ count: 45, ids: newestFirst().slice(40) })
  })

  test.each(['page=4', 'page=6&limit=10', 'page=1000000', `page=${2 ** 40}`])(
    '%s is beyond the end: no rows, and the number of all',
    async (query) => {
      expect(await page(`?${query}`)).toEqual({ count: 45, ids: [] })
    },
  )

  test.each(['page=', 'page=0', 'limit=', 'limit=0', 'page=&limit=&q=&tag=&folderId=&status=&type='])(
    '%s is the first page of the usual length',
    async (query) => {
      expect(await page(`?${query}`)).toEqual({ count: 45, ids: newestFirst().slice(0, 20) })
    },
  )

  test.each([
    'page=-1',
    'page=1.5',
    'page=x',
    'page=1&page=2',
    'limit=-5',
    'limit=x',
    'limit=2.5',
    'limit=1&limit=2',
    'page=NaN',
    'Limit=2',
    'folderid=root',
    'folder=root',
    'stauts=ready',
  ])('%s is 400', async (query) => {
    const response = await owner.call('GET', `/api/videos?${query}`)
    expect(response.status).toBe(400)
    expect(await response.json()).toEqual({
      message: expect.stringContaining(/(\w+)=[^=]*$/.exec(query)?.[1] ?? ''),
      code: 'invalid',
      requestId: expect.any(String),
    })
  })

  test('has exactly count and rows, and each row the fields of the contract', async () => {
    const body = await owner.list('?limit=1')
    expect(body).toEqual({
      count: 45,
      rows: [
        {
          id: ids.at(-1),
          title: 'Video 44',
          description: '',
          upload_time: expect.any(Number),
          length: 0,
          status: 'PRE-Upload',
          posters: [],
          poster: '',
          tags: [],
          public: 1,
          ipGeoRules: '',
          whitelisthref: '',
          totalSizeBytes: 0,
          folderId: 'root',
        },
      ],
    })
    expect(Math.abs((Number(body.rows[0]?.upload_time) || 0) - Date.now() / 1000)).toBeLessThan(300)
  })

  test('is the same with a trailing slash, and with a Content-Type though a GET has no body', async () => {
    const plain = JSON.parse((await raw('GET /api/videos')).text)
    expect(JSON.parse((await raw('GET /api/videos/')).text)).toEqual(plain)
    expect(JSON.parse((await raw('GET /api/videos', ['Content-Type: application/json'])).text)).toEqual(plain)
  })
})

describe('one', () => {
  beforeAll(async () => {
    owner = await reelgate.newOwner('with a video')
  })

  test('is the row of the list, also with a trailing slash', async () => {
    const { videoId } = await owner.credentials('Größe, 映画 & <Video>')
    const [row] = (await owner.list()).rows
    expect(row?.title).toBe('Größe, 映画 & <Video>')
    expect(await owner.video(videoId)).toEqual(row)
    expect(await owner.video(`${videoId}/`)).toEqual(row)
    expect(row).not.toHaveProperty('message')
  })

  test.each([
    '0123456789abcdef0123456789abcdef',
    'nothing',
    '%00',
    '..%2f..%2fetc',
    'x'.repeat(3000),
    '%F0%9F%8E%AC',
    "' or 1=1 --".replaceAll(' ', '%20'),
  ])('the unknown id %s is 404', async (id) => {
    const { status, text } = await raw(`GET /api/videos/${id}`)
    expect({ status, body: JSON.parse(text) }).toEqual({
      status: 404,
      body: { message: 'Video not found', code: 'not-found', requestId: expect.any(String) },
    })
  })

  test('an id in capital letters is another id', async () => {
    const { videoId } = await owner.credentials('A video')
    const other = videoId.replace(/[a-f]/g, (letter) => letter.toUpperCase())
    if (other !== videoId) expect((await owner.call('GET', `/api/videos/${other}`)).status).toBe(404)
  })
})

describe('upload credentials', () => {
  beforeAll(async () => {
    owner = await reelgate.newOwner('uploader')
  })

  test('lead to this server’s form, with a policy in standard base64 and a key that holds the video’s id', async () => {
    const { clientPayload, videoId } = await owner.credentials('A title')
    expect(clientPayload).toMatchObject({
      policy: expect.stringMatching(/^[A-Za-z0-9+/]+=*$/),
      key: expect.stringContaining(videoId),
      uploadLink: `${reelgate.url}/upload`,
    })
  })

  test.each([
    ['with an empty JSON body', ['Content-Type: application/json'], ''],
    ['with {}', ['Content-Type: application/json'], '{}'],
    ['with []', ['Content-Type: application/json'], '[]'],
    ['with a form', ['Content-Type: application/x-www-form-urlencoded'], 'a=b'],
    ['without a Content-Type', [], '{}'],
  ])('are issued %s', async (_, lines, body) => {
    expect((await raw('PUT /api/videos?title=x', lines, body)).status).toBe(200)
  })

  test('are issued for the folder root', async () => {
    expect((await raw('PUT /api/videos?title=x&folderId=root')).status).toBe(200)
  })

  test('want a title (400) and a folder that exists (404), and make no video otherwise', async () => {
    const { count } = await owner.list()
    expect((await raw('PUT /api/videos')).status).toBe(400)
    expect((await raw('PUT /api/videos?title=')).status).toBe(400)
    expect((await raw('PUT /api/videos?title=a&title=b')).status).toBe(400)
    const { status, text } = await raw(`PUT /api/videos?title=x&folderId=${'0'.repeat(32)}`)
    expect({ status, body: JSON.parse(text) }).toMatchObject({ status: 404, body: { message: 'Folder not found' } })
    expect((await owner.list()).count).toBe(count)
  })

  test('are refused with 403 where the account’s uploads are off, and no video is made', async () => {
    const { stdout } = await reelgate.cli('account', 'create', 'no uploads', '--no-upload', '--json')
    const { apiKey }: { apiKey: string } = JSON.parse(stdout)
    const response = await fetch(`${reelgate.url}/api/videos?title=x`, {
      method: 'PUT',
      headers: { Authorization: `Apisecret ${apiKey}` },
    })
    expect(response.status).toBe(403)
    const list = await fetch(`${reelgate.url}/api/videos`, { headers: { Authorization: `Apisecret ${apiKey}` } })
    expect(await list.json()).toEqual({ count: 0, rows: [] })
  })
})

describe('delete', () => {
  let videoIds: string[]
  beforeAll(async () => {
    owner = await reelgate.newOwner('who deletes')
  })
  beforeEach(async () => {
    await owner.delete((await owner.list()).rows.map((row) => row.id))
    videoIds = await Promise.all(['a', 'b', 'c'].map(async (title) => (await owner.credentials(title)).videoId))
  })
  const remove = async (query: string, lines: string[] = [], body = '') => {
    const { status, text } = await raw(`DELETE /api/videos?${query}`, lines, body)
    return { status, body: JSON.parse(text) }
  }
  const deleted = (count: number) => ({ status: 200, body: { code: 200, message: `Successfully deleted ${count} videos` } })

  test('by ids in the body, at most a thousand; without any, the error says how to name them', async () => {
    const byBody = (videos: string[]) => remove('', ['Content-Type: application/json'], JSON.stringify({ videos }))
    expect(await byBody([...videoIds.slice(0, 2), 'f'.repeat(32)])).toEqual(deleted(2))
    expect((await owner.list()).count).toBe(1)
    expect(await byBody(Array(1001).fill('f'.repeat(32)))).toMatchObject({
      status: 400,
      body: { message: 'One call deletes at most 1000 videos, but got 1001. Send several calls.' },
    })
    expect(await remove('')).toMatchObject({ status: 400, body: { message: expect.stringContaining('{"videos":["ID"]}') } })
  })

  test('of more ids than fit into an address is rejected with how many fit', async () => {
    const { status, text } = await raw(`DELETE /api/videos?videos=${Array(600).fill('f'.repeat(32)).join(',')}`)
    expect([status, JSON.parse(text).message]).toEqual([431, expect.stringContaining('some 400 ids')])
  })

  test('what is deleted is listed no more', async () => {
    await remove(`videos=${videoIds[0]}`)
    expect((await owner.list()).count).toBe(2)
    await remove(`videos=${videoIds[1]},${videoIds[2]}`)
    expect(await owner.list()).toEqual({ count: 0, rows: [] })
  })

  test('blanks around commas, empty places and repeated ids do no harm', async () => {
    expect(await remove(`videos=%20${videoIds[0]},%20${videoIds[1]}%20,,${videoIds[0]},`)).toEqual(deleted(2))
    expect(await remove(`videos=${videoIds[2]}+,+${videoIds[2]}`)).toEqual(deleted(1))
  })

  test.each(['', ',', 'nothing', '0123456789abcdef0123456789abcdef', '*', '%25', '%00'])(
    'videos=%s deletes none',
    async (ids) => {
      expect(await remove(`videos=${ids}`)).toEqual(deleted(0))
      expect((await owner.list()).count).toBe(3)
    },
  )

  test('of twenty concurrent deletions of one video, one counts it', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => remove(`videos=${videoIds[0]}`)))
    expect(answers.filter(({ body }) => body.message === 'Successfully deleted 1 videos')).toHaveLength(1)
    expect((await owner.list()).count).toBe(2)
  })

  test('without naming any, or naming them twice, is 400', async () => {
    for (const query of ['', `videos=${videoIds[0]}&videos=${videoIds[1]}`]) expect((await remove(query)).status).toBe(400)
    expect((await owner.list()).count).toBe(3)
  })

  test.each([
    ['a Content-Type and no body', ['Content-Type: application/json'], ''],
    ['a Content-Length of 0', ['Content-Type: application/json', 'Content-Length: 0'], ''],
    ['{}', ['Content-Type: application/json'], '{}'],
    ['[]', ['Content-Type: application/json'], '[]'],
    ['an empty form', ['Content-Type: application/x-www-form-urlencoded'], ''],
    ['a body without a Content-Type', [], '{}'],
  ])('works with %s', async (_, lines, body) => {
    expect(await remove(`videos=${videoIds[0]}`, lines, body)).toEqual(deleted(1))
  })
})
