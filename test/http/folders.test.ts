import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createOwner, type Owner } from '../client.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'

// Folders: wire-contract.md, section 3; docs/videos.md says what the contract leaves open.

let reelgate: Reelgate & { remove(): Promise<void> }
let owner: Owner
beforeAll(async () => {
  reelgate = await startSharedReelgate()
})
afterAll(() => reelgate.remove())
beforeEach(() => {
  owner = reelgate.owner
})
/** For a test that looks at the whole account. */
const asNewOwner = async () => {
  owner = await reelgate.newOwner('with folders')
}

type Folder = { id: string; name: string; parent: string | null; videosCount: number; foldersCount: number }
type Opened = { folderList: Folder[]; current: Partial<Folder>; parent: Partial<Folder> | null }
type Found = { name: string; id: string; folderPath: { id: string; name: string }[]; createdAt: string }

const NO_SUCH = '0123456789abcdef'.repeat(2)

async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await owner.call(method, `/api/videos${path}`, { body })
  if (response.status !== 200) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
  return (await response.json()) as T
}
const statusOf = async (method: string, path: string, body?: unknown) =>
  (await owner.call(method, `/api/videos${path}`, { body })).status
const create = (name: string, parent?: string | null) => ask<Folder>('POST', '/folders', { name, parent })
const open = (id: string) => ask<Opened>('GET', `/folders/${id}`)
const edit = (id: string, changes: object) => ask<unknown>('PUT', `/folders/${id}`, changes)
const search = async (name: string, searchExact?: unknown) =>
  (await ask<{ folders: Found[] }>('POST', '/folders/search', { name, searchExact })).folders
async function upload(title: string, folderId?: string): Promise<string> {
  const query = new URLSearchParams({ title, ...(folderId === undefined ? {} : { folderId }) })
  return (await ask<{ videoId: string }>('PUT', `?${query}`)).videoId
}
const titlesIn = async (folderId: string, query = '') =>
  (await owner.list(`?folderId=${folderId}${query}`)).rows.map((row) => row.title)

describe('a folder', () => {
  test('under the root has no parent, also once it is moved there; deleted, it leaves its videos there', async () => {
    await asNewOwner()
    const courses = await create('Courses', 'root')
    const light = await create('Light', courses.id)
    const videoId = await upload('Lesson', light.id)
    expect(await open('root')).toEqual({
      folderList: [{ id: courses.id, name: 'Courses', parent: null, videosCount: 0, foldersCount: 1 }],
      current: { id: 'root', name: 'root', parent: null },
      parent: null,
    })
    expect(await open(courses.id)).toEqual({
      folderList: [{ id: light.id, name: 'Light', parent: courses.id, videosCount: 1, foldersCount: 0 }],
      current: { id: courses.id, name: 'Courses', parent: null },
      parent: null,
    })
    expect((await open(light.id)).folderList).toEqual([])
    expect(await edit(light.id, { parent: 'root' })).toEqual({ message: 'Folder has been updated' })
    expect((await open('root')).folderList).toEqual([
      { id: courses.id, name: 'Courses', parent: null, videosCount: 0, foldersCount: 0 },
      { id: light.id, name: 'Light', parent: null, videosCount: 1, foldersCount: 0 },
    ])
    await ask('DELETE', `/folders/${light.id}`)
    expect((await owner.video(videoId)).folderId).toBe('root')
  })

  test('takes JSON, forms and the null that a folder in the root has as its parent', async () => {
    const form = (method: string, path: string, fields: Record<string, string>) =>
      fetch(`${owner.url}/api/videos/folders${path}`, {
        method,
        headers: { Authorization: `Apisecret ${owner.apiKey}` },
        body: new URLSearchParams(fields),
      })
    const made = (await (await form('POST', '', { name: 'By form', parent: 'root' })).json()) as Folder
    const inner = await create('Inner', made.id)
    expect((await form('PUT', `/${inner.id}`, { name: 'Inner 2' })).status).toBe(200)
    await edit(inner.id, { parent: null })
    expect((await create('No parent')).parent).toBeNull()
    expect((await create('Null parent', null)).parent).toBeNull()
    const found = await form('POST', '/search', { name: 'Inner 2', searchExact: 'true' })
    expect(((await found.json()) as { folders: Found[] }).folders).toMatchObject([{ id: inner.id, folderPath: [] }])
    // What clients send with a deletion that has no body.
    const deleted = await fetch(`${owner.url}/api/videos/folders/${inner.id}/`, {
      method: 'DELETE',
      headers: { Authorization: `Apisecret ${owner.apiKey}`, 'Content-Type': 'application/json' },
      body: '[]',
    })
    expect({ status: deleted.status, body: await deleted.json() }).toEqual({ status: 200, body: { message: 'Folder Deleted' } })
  })

  test('keeps its name character for character; two of one name are two folders', async () => {
    for (const name of ['two', 'x'.repeat(255), '🎬'.repeat(255), ' e\u0301 ', '<a>&"\'', '../etc', 'root', "' or 1=1 --"]) {
      const [first, second] = [await create(name), await create(name)]
      expect(first.id).not.toBe(second.id)
      expect((await open(first.id)).current.name).toBe(name)
      expect((await search(name, true)).map(({ id }) => id).sort()).toEqual([first.id, second.id].sort())
    }
  })

  test('for nothing finds all, as a search of videos does; no folder is called so', async () => {
    await asNewOwner()
    const { id } = await create('Outer')
    await create('Inner', id)
    expect((await search('')).map(({ name }) => name)).toEqual(['Inner', 'Outer'])
    expect(await search('', true)).toEqual([])
    await owner.credentials('A video')
    expect((await owner.list('?q=')).count).toBe(1)
  })

  test.each<[string, unknown]>([
    ['no name', {}],
    ['an empty name', { name: '' }],
    ['256 characters', { name: 'x'.repeat(256) }],
    ['a NUL', { name: 'a\0' }],
    ['half a character', { name: '\ud83c' }],
    ['a number', { name: 5 }],
    ['null', { name: null }],
    ['a list', { name: ['a'] }],
    ['a number as its parent', { name: 'a', parent: 5 }],
  ])('with %s is refused: 400', async (_, body) => {
    const { id } = await create('as it was')
    const before = await open('root')
    expect(await statusOf('POST', '/folders', body)).toBe(400)
    expect(await statusOf('PUT', `/folders/${id}`, body)).toBe(400)
    expect(await open('root')).toEqual(before)
  })

  test('under what is no id is 404, as is a move into an unknown one; the root stays as it is', async () => {
    const { id } = await create('mine')
    for (const unknown of ['nothing', 'Root', '%00', id.toUpperCase().replace(/^/, 'x')]) {
      expect(await statusOf('GET', `/folders/${unknown}`)).toBe(404)
      expect(await statusOf('PUT', `/folders/${unknown}`, { name: 'x' })).toBe(404)
      expect(await statusOf('DELETE', `/folders/${unknown}`)).toBe(404)
    }
    const response = await owner.call('GET', `/api/videos/folders/${NO_SUCH}`)
    expect(await response.json()).toEqual({ message: 'Folder not found', code: 'not-found', requestId: expect.any(String) })
    expect(await statusOf('PUT', `/folders/${id}`, { parent: NO_SUCH })).toBe(404)
    expect(await statusOf('PUT', '/folders/root', { name: 'x' })).toBe(400)
    expect(await statusOf('DELETE', '/folders/root')).toBe(400)
    expect((await open('root')).current).toEqual({ id: 'root', name: 'root', parent: null })
    expect((await open(id)).current).toEqual({ id, name: 'mine', parent: null })
  })

  test('cannot be moved into itself or one of its folders, nor deeper than twenty', async () => {
    const chain: string[] = []
    for (let depth = 0; depth < 20; depth++) chain.push((await create(`${depth}`, chain.at(-1))).id)
    const [top = '', second = ''] = chain
    for (const target of [top, second, chain.at(-1)])
      expect(await statusOf('PUT', `/folders/${top}`, { parent: target })).toBe(409)
    expect(await statusOf('POST', '/folders', { name: 'too deep', parent: chain.at(-1) })).toBe(409)
    const other = await create('other')
    expect(await statusOf('PUT', `/folders/${top}`, { parent: other.id })).toBe(409)
    expect(await statusOf('PUT', `/folders/${second}`, { parent: other.id })).toBe(200)
    expect(await statusOf('PUT', `/folders/${top}`, { parent: chain.at(-1) })).toBe(409)
    expect(await statusOf('PUT', `/folders/${second}`, { parent: top })).toBe(200)
    expect((await open(chain.at(-1) ?? '')).current).toMatchObject({ name: '19', parent: chain.at(-2) })
  })
})

describe('a search of folders', () => {
  test('finds names that begin so, in any case, each with its path from the inside out', async () => {
    await asNewOwner()
    const courses = await create('Courses')
    const light = await create('Light', courses.id)
    const lights = await create('lights', light.id)
    await create('Moonlight', light.id)
    expect(await search('LIGHT')).toEqual([
      {
        name: 'Light',
        id: light.id,
        folderPath: [{ id: courses.id, name: 'Courses' }],
        createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      },
      {
        name: 'lights',
        id: lights.id,
        folderPath: [
          { id: light.id, name: 'Light' },
          { id: courses.id, name: 'Courses' },
        ],
        createdAt: expect.any(String),
      },
    ])
    expect(await search('courses')).toMatchObject([{ folderPath: [] }])
    expect(Math.abs(Date.parse((await search('Courses'))[0]?.createdAt ?? '') - Date.now())).toBeLessThan(300_000)
  })

  test('with searchExact finds the whole name alone, character for character', async () => {
    await asNewOwner()
    const names = ['Light', 'light', 'Lights', 'L%ght', 'été', 'e\u0301te\u0301']
    for (const name of names) await create(name)
    for (const name of names) expect((await search(name, true)).map((folder) => folder.name)).toEqual([name])
    for (const name of ['Ligh', 'L_ght', 'root', 'LIGHT']) expect(await search(name, true)).toEqual([])
    for (const no of [false, 'false', '0', undefined]) expect(await search('light', no)).toHaveLength(3)
    expect((await search('ÉT')).map((folder) => folder.name).sort()).toEqual(['e\u0301te\u0301', 'été'])
  })

  test('Q01, Q02: takes what means something elsewhere literally', async () => {
    const names = ['%', '_', '*', "'", '"', '\\', "' or 1=1 --", '";drop table folder', '[a-z]', '\u{10ffff}', 'plain']
    for (const name of names) await create(`literal ${name}`)
    for (const name of names) {
      const beginning = names.filter((other) => other.startsWith(name)).map((other) => `literal ${other}`)
      expect((await search(`literal ${name}`)).map((folder) => folder.name).sort()).toEqual(beginning.sort())
    }
    expect(await search('%')).toEqual([])
  })

  test.each<[string, unknown]>([
    ['no name', {}],
    ['one that none can have', { name: 'x'.repeat(256) }],
    ['a list', { name: ['a'] }],
    ['another kind of searchExact', { name: 'a', searchExact: 'yes' }],
  ])('for %s is 400', async (_, body) => {
    expect(await statusOf('POST', '/folders/search', body)).toBe(400)
  })
})

describe('the videos of a folder', () => {
  test('are uploaded into it, moved by an edit, and listed by it: only direct members, newest first', async () => {
    await asNewOwner()
    const outer = await create('outer')
    const inner = await create('inner', outer.id)
    await upload('in the root')
    const one = await upload('one', outer.id)
    await upload('two', outer.id)
    await upload('three', inner.id)
    expect(await titlesIn(outer.id)).toEqual(['two', 'one'])
    expect(await titlesIn(inner.id)).toEqual(['three'])
    expect(await titlesIn('root')).toEqual(['in the root'])
    expect((await owner.list()).count).toBe(4)
    expect((await owner.video(one)).folderId).toBe(outer.id)
    await ask('POST', `/${one}`, { folderId: inner.id })
    expect(await titlesIn(inner.id)).toEqual(['three', 'one'])
    await ask('POST', `/${one}`, { folderId: 'root', title: 'moved' })
    expect(await titlesIn('root')).toEqual(['moved', 'in the root'])
    expect((await open(outer.id)).folderList).toMatchObject([{ videosCount: 1 }])
    expect(await statusOf('PUT', `?title=x&folderId=${NO_SUCH}`)).toBe(404)
    expect(await statusOf('POST', `/${one}`, { folderId: 5 })).toBe(400)
    expect((await owner.list()).count).toBe(4)
  })

  test('are filtered by tags and texts as well, page by page', async () => {
    const { id } = await create('filtered')
    const ids: string[] = []
    for (let i = 0; i < 30; i++) ids.push(await upload(`Video ${i} ${i % 3 === 0 ? 'third' : ''}`, i % 2 ? id : 'root'))
    await ask('POST', '/tags', { videos: ids.slice(0, 20), tags: ['early'] })
    await ask('POST', '/tags', { videos: ids.filter((_, i) => i % 5 === 0), tags: ['fifth'] })
    const wanted = (holds: (i: number) => boolean) => ids.flatMap((_, i) => (holds(i) ? [i] : [])).toReversed()
    const found = async (query: string) => {
      const pages = await Promise.all([1, 2, 3, 4, 5].map((page) => owner.list(`?folderId=${id}&limit=4&page=${page}${query}`)))
      const numbers = pages.flatMap(({ rows }) => rows.map((row) => Number(row.title.split(' ')[1])))
      expect(new Set(pages.map(({ count }) => count))).toEqual(new Set([numbers.length]))
      return numbers
    }
    expect(await found('')).toEqual(wanted((i) => i % 2 === 1))
    expect(await found('&tag=early')).toEqual(wanted((i) => i % 2 === 1 && i < 20))
    expect(await found('&tags=early,fifth')).toEqual(wanted((i) => i % 2 === 1 && i < 20 && i % 5 === 0))
    expect(await found('&q=third')).toEqual(wanted((i) => i % 2 === 1 && i % 3 === 0))
    expect(await found('&q=rd&tag=early')).toEqual(wanted((i) => i % 2 === 1 && i % 3 === 0 && i < 20))
    expect(await found('&tag=none')).toEqual([])
  })

  test('a list by folder changes with what is moved, put in, deleted or taken away with the folder', async () => {
    const { id } = await create('watched')
    const list = (etag = '') =>
      owner.call('GET', `/api/videos?folderId=${id}`, { headers: etag ? { 'If-None-Match': etag } : {} })
    const videoId = await upload('a video')
    const changes = [
      () => ask('POST', `/${videoId}`, { folderId: id }),
      () => upload('another', id),
      () => ask('POST', `/${videoId}`, { folderId: 'root' }),
      () => ask('DELETE', `/folders/${id}`),
    ]
    for (const change of changes) {
      const before = await list()
      const etag = before.headers.get('etag') ?? ''
      expect((await list(etag)).status).toBe(304)
      await change()
      const after = await list(etag)
      expect(await after.text()).not.toBe(await before.text())
    }
    expect((await list()).status).toBe(404)
  })
})

test('F-08: a deleted folder leaves its videos and folders in its parent, and is there until the last has moved', async () => {
  await asNewOwner()
  const outer = await create('outer')
  const doomed = await create('doomed', outer.id)
  const inner = await create('inner', doomed.id)
  const ids = await Promise.all(Array.from({ length: 50 }, (_, i) => upload(`Video ${i}`, doomed.id)))
  await upload('deep', inner.id)
  await upload('already there', outer.id)
  await owner.delete(ids.slice(0, 5))
  // A reader meanwhile sees the folder with its 45, or its parent with them.
  const deleting = ask('DELETE', `/folders/${doomed.id}`)
  const seen = await Promise.all(Array.from({ length: 20 }, () => open(outer.id)))
  await deleting
  for (const { folderList } of seen) {
    const shown = folderList.map(({ name, videosCount }) => `${name} ${videosCount}`)
    expect([['doomed 45'], ['inner 1']]).toContainEqual(shown)
  }
  expect(await open(outer.id)).toMatchObject({ folderList: [{ id: inner.id, parent: outer.id, videosCount: 1 }] })
  expect((await owner.list(`?folderId=${outer.id}`)).count).toBe(46)
  expect((await open('root')).folderList).toMatchObject([{ videosCount: 46, foldersCount: 1 }])
})

test('two who upload into a folder while it is deleted lose no video and leave none in a folder that is gone', async () => {
  await asNewOwner()
  const folders = await Promise.all(Array.from({ length: 10 }, (_, i) => create(`brief ${i}`)))
  const outcomes = await Promise.all(
    folders.flatMap(({ id }) => [
      statusOf('PUT', `?title=before&folderId=${id}`),
      statusOf('DELETE', `/folders/${id}`),
      statusOf('PUT', `?title=after&folderId=${id}`),
    ]),
  )
  expect(outcomes.every((status) => status === 200 || status === 404)).toBe(true)
  const kept = outcomes.filter((status) => status === 200).length - folders.length
  expect((await owner.list('?folderId=root')).count).toBe(kept)
  expect((await owner.list()).count).toBe(kept)
})

test('K11: a key that may only read opens and searches folders, and changes none', async () => {
  const account: { accountId: string; apiKey: string } = JSON.parse(
    (await reelgate.cli('account', 'create', 'reading', '--json')).stdout,
  )
  owner = createOwner(reelgate.url, account.apiKey)
  const { id } = await create('theirs')
  const made = await reelgate.cli('key', 'create', account.accountId, '--permission', 'viewer', '--json')
  owner = createOwner(reelgate.url, (JSON.parse(made.stdout) as { apiKey: string }).apiKey)
  const before = readRows(reelgate, 'select * from folder')
  expect((await open('root')).folderList).toMatchObject([{ id }])
  expect(await search('their')).toHaveLength(1)
  for (const [method, path, body] of [
    ['POST', '/folders', { name: 'x' }],
    ['PUT', `/folders/${id}`, { name: 'x' }],
    ['DELETE', `/folders/${id}`],
  ] as const)
    expect(await statusOf(method, path, body)).toBe(403)
  expect(readRows(reelgate, 'select * from folder')).toEqual(before)
})
