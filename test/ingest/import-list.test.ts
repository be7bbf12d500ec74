import { afterAll, beforeAll, expect, test } from 'vitest'
import { dataPaths } from '../../src/config/data-paths.ts'
import { sendCommand } from '../../src/control/socket.ts'
import { createOwner, type Owner } from '../client.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'

// Lists of addresses that are imported with one call. Nothing listens at these addresses: what is tried here is the list.

const HOST = '127.0.0.1:9'
let reelgate: Reelgate & { remove(): Promise<void> }

beforeAll(async () => {
  reelgate = await startSharedReelgate({ env: { REELGATE_OUTBOUND_ALLOW: HOST } })
})
afterAll(() => reelgate?.remove())

type Entry = { url: string; title?: string; tags?: string[]; folders?: string[]; upload_time?: number }
type Reply = { imports: { id?: string; status?: string; title?: string; message?: string }[] }

const address = (name: string | number) => `http://${HOST}/${name}.mp4`

async function send(owner: Owner, imports: Entry[], headers: Record<string, string> = {}): Promise<Response> {
  return owner.call('POST', '/api/imports', { body: { imports }, headers })
}

test('S29: 500 addresses are one call, and each is a video with its title, date, tags and folder when it is answered', async () => {
  const owner = await reelgate.newOwner('imports lists')
  const list = Array.from({ length: 500 }, (_, index) => ({
    url: address(index),
    title: `Lesson ${index}`,
    upload_time: 1_600_000_000 + index,
    tags: ['course', index % 2 === 0 ? 'light' : 'shadow'],
    folders: ['Courses', `Term ${index % 3}`],
  }))
  const answer = await send(owner, list)
  const { imports } = (await answer.json()) as Reply
  expect(answer.status).toBe(200)
  expect(imports.map(({ title }) => title)).toEqual(list.map(({ title }) => title))
  expect(new Set(imports.map(({ id }) => id)).size).toBe(500)
  expect(await owner.list('?limit=1')).toMatchObject({ count: 500 })
  expect(await owner.list('?tag=shadow&limit=1')).toMatchObject({ count: 250 })
  expect(await owner.video(imports[7]?.id ?? '')).toMatchObject({ title: 'Lesson 7', upload_time: 1_600_000_007 })
  const courses = (await (await owner.call('GET', '/api/videos/folders/root')).json()) as { folderList: { id: string }[] }
  expect(courses.folderList).toMatchObject([{ name: 'Courses', foldersCount: 3 }])
  const terms = await (await owner.call('GET', `/api/videos/folders/${courses.folderList[0]?.id}`)).json()
  expect(terms).toMatchObject({
    folderList: [
      { name: 'Term 0', videosCount: 167 },
      { name: 'Term 1', videosCount: 167 },
      { name: 'Term 2', videosCount: 166 },
    ],
  })
})

test('S29: what is wrong with one address of a list is said there, and the others are imported', async () => {
  const owner = await reelgate.newOwner('imports some')
  const answer = await send(owner, [
    { url: address('good') },
    { url: 'ftp://example.org/a.mp4' },
    { url: 'http://192.168.1.1/a.mp4' },
    { url: address('tag'), tags: ['x'.repeat(256)] },
    { url: address('deep'), folders: Array.from({ length: 21 }, (_, level) => `${level}`) },
    { url: address('date'), upload_time: 99_999_999_999 },
    { url: address('last') },
  ])
  const { imports } = (await answer.json()) as Reply
  expect(imports.map(({ title, message }) => title ?? message)).toEqual([
    'good.mp4',
    'Write a whole address that begins with https:// or http://.',
    expect.stringContaining('not on the public internet'),
    expect.stringContaining('1 to 255 characters'),
    expect.stringContaining('20 levels'),
    expect.stringContaining('in the future'),
    'last.mp4',
  ])
  expect((await owner.list()).rows.map(({ title }) => title)).toEqual(['last.mp4', 'good.mp4'])
})

test('S29: a list whose answer was lost is sent again with its Idempotency-Key, and nothing is imported twice', async () => {
  const owner = await reelgate.newOwner('imports again')
  const sendOnce = async () => (await send(owner, [{ url: address('a') }, { url: 'x' }], { 'Idempotency-Key': 'k1' })).text()
  const first = await sendOnce()
  expect(await sendOnce()).toBe(first)
  expect(await owner.list()).toMatchObject({ count: 1 })
})

test('S29: more than 5 000 pending imports, and more than 500 in a call, are refused as a whole', async () => {
  const owner = await reelgate.newOwner('imports too many')
  const full = Array.from({ length: 500 }, (_, index) => ({ url: address(index) }))
  expect((await send(owner, [...full, { url: address('more') }])).status).toBe(400)
  expect((await send(owner, [])).status).toBe(400)
  for (let call = 0; call < 10; call++) expect((await send(owner, full)).status).toBe(200)
  const refused = await send(owner, [{ url: address('more') }])
  expect([refused.status, refused.headers.get('Retry-After')]).toEqual([429, '60'])
  expect(await owner.list()).toMatchObject({ count: 5_000 })
})

test('S29: a key that may upload but not edit uses the folders that exist; a key without uploads, and an account without imports, import nothing', async () => {
  const owner = await reelgate.newOwner('imports with keys')
  const command = async (name: 'account create' | 'key create', args: unknown) => {
    const { apiKey } = (await sendCommand(dataPaths(reelgate.dataDir).controlSocket, name, args)) as { apiKey: string }
    return createOwner(reelgate.url, apiKey)
  }
  const newKey = (name: string, permissions: string[]) =>
    command('key create', { account: 'imports with keys', name, permissions })
  const uploader = await newKey('uploads', ['uploader'])
  await owner.call('POST', '/api/videos/folders', { body: { name: 'Courses' } })
  const entries = [
    { url: address('a'), folders: ['Courses'] },
    { url: address('b'), folders: ['Elsewhere'] },
  ]
  expect(await (await send(uploader, entries)).json()).toMatchObject({
    imports: [{ title: 'a.mp4' }, { message: 'There is no folder “Elsewhere”, and this key may not create folders.' }],
  })
  const reader = await newKey('reads', ['viewer'])
  const off = await command('account create', { name: 'imports off', mayUpload: true, mayImport: false })
  expect([(await send(reader, entries)).status, (await send(off, entries)).status]).toEqual([403, 403])
  expect(await owner.list()).toMatchObject({ count: 1 })
})
