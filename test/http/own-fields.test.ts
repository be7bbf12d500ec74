import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Owner, UploadCredentials } from '../client.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { createTusClient } from '../ingest/tus-client.ts'
import { type Receivers, startReceivers, webhooksOf } from '../webhooks/receiver.ts'

// `externalId` and `metadata`: docs/videos.md, "Own fields".

let receivers: Receivers
let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  receivers = await startReceivers()
  reelgate = await startSharedReelgate({ env: { REELGATE_OUTBOUND_ALLOW: receivers.host } })
})
afterAll(async () => {
  await reelgate.remove()
  await receivers.close()
})
let owner: Owner
beforeEach(async () => {
  owner = await reelgate.newOwner('with own fields')
})

type Answer = { status: number; body: { message: string; code?: string } }

async function ask(method: string, path: string, body?: unknown): Promise<Answer> {
  const response = await owner.call(method, path, { body })
  return { status: response.status, body: (await response.json()) as Answer['body'] }
}
const edit = (id: string, body: object) => ask('POST', `/api/videos/${id}`, body)
const query = (pairs: Record<string, string>) => `?${new URLSearchParams(pairs)}`
async function newVideo(pairs: Record<string, string>): Promise<UploadCredentials> {
  const response = await owner.call('PUT', `/api/videos${query({ title: 'A video', ...pairs })}`)
  expect(response.status).toBe(200)
  return (await response.json()) as UploadCredentials
}
const found = async (pairs: Record<string, string>) => {
  const { count, rows } = await owner.list(query(pairs))
  expect(rows).toHaveLength(count)
  return rows.map(({ id }) => id)
}
const ownOf = async (id: string) => {
  const { externalId, metadata } = await owner.video(id)
  return { externalId, metadata }
}

describe('own fields of a video', () => {
  test('are set with its upload, and are in the list and the one video; a video without them has neither', async () => {
    const { videoId } = await newVideo({
      externalId: 'lms/4711 ü',
      'metadata[course]': 'drawing',
      'metadata[term 1]': 'ö "x" = &',
    })
    const own = { externalId: 'lms/4711 ü', metadata: { course: 'drawing', 'term 1': 'ö "x" = &' } }
    expect(await owner.video(videoId)).toMatchObject(own)
    expect((await owner.list()).rows[0]).toMatchObject(own)
    const plain = await owner.video((await owner.credentials('Plain')).videoId)
    expect(Object.keys(plain)).not.toEqual(expect.arrayContaining(['externalId']))
    expect(Object.keys(plain)).not.toEqual(expect.arrayContaining(['metadata']))
  })

  test('are set with an import, of JSON, of a form and of a list', async () => {
    const url = 'https://videos.example/a.mp4'
    const metadata = { course: 'drawing' }
    const one = await owner.call('PUT', '/api/videos/importUrl', { body: { url, externalId: 'one', metadata } })
    const form = await fetch(`${owner.url}/api/videos/importUrl`, {
      method: 'PUT',
      headers: { Authorization: `Apisecret ${owner.apiKey}` },
      body: new URLSearchParams({ url, externalId: 'form', 'metadata[course]': 'drawing' }),
    })
    expect([one.status, form.status]).toEqual([200, 200])
    const list = await owner.call('POST', '/api/imports', {
      body: {
        imports: [
          { url, externalId: 'two', metadata },
          { url, externalId: 'two' },
          { url, metadata: { a: '\0' } },
        ],
      },
    })
    const { imports } = (await list.json()) as { imports: { id?: string; message?: string }[] }
    expect(imports.map(({ message }) => message)).toEqual([
      undefined,
      'Another video of this account has the externalId "two". GET /api/videos?externalId=two finds it.',
      'The value of metadata "a" must have no NUL and no unpaired surrogates.',
    ])
    for (const externalId of ['one', 'form', 'two']) {
      const [id = ''] = await found({ externalId })
      expect(await ownOf(id)).toEqual({ externalId, metadata })
    }
  })

  test('are set with a resumable upload, as JSON', async () => {
    const tus = createTusClient(owner)
    const metadata = JSON.stringify({ course: 'drawing' })
    const { videoId } = await tus.create(10, { title: 'A video', externalId: 'a', metadata })
    expect(await ownOf(videoId)).toEqual({ externalId: 'a', metadata: { course: 'drawing' } })
    for (const wrong of ['[1]', '{"a":1}', 'course']) {
      await expect(tus.create(10, { metadata: wrong })).rejects.toThrow(/400 .*metadata expects an object of texts/)
    }
    await expect(tus.create(10, { externalId: 'a', filename: 'a.mp4' })).rejects.toThrow(/409 .*Another video/)
  })

  test('change with the video, each alone; null removes them', async () => {
    const { videoId } = await newVideo({ externalId: 'a', 'metadata[course]': 'drawing', 'metadata[term]': '1' })
    expect(await edit(videoId, { title: 'Other' })).toMatchObject({ status: 200 })
    expect(await ownOf(videoId)).toEqual({ externalId: 'a', metadata: { course: 'drawing', term: '1' } })
    expect(await edit(videoId, { metadata: { course: 'painting' } })).toMatchObject({ status: 200 })
    expect(await ownOf(videoId)).toEqual({ externalId: 'a', metadata: { course: 'painting' } })
    expect(await edit(videoId, { externalId: 'b' })).toMatchObject({ status: 200 })
    expect(await edit(videoId, { externalId: 'b' })).toMatchObject({ status: 200 })
    expect(await ownOf(videoId)).toEqual({ externalId: 'b', metadata: { course: 'painting' } })
    expect(await edit(videoId, { externalId: null, metadata: null })).toMatchObject({ status: 200 })
    expect(await ownOf(videoId)).toEqual({})
    expect(await found({ externalId: 'b' })).toEqual([])
    expect(await found({ 'metadata[course]': 'painting' })).toEqual([])
  })

  test('are in its webhooks', async () => {
    const receiver = receivers.newReceiver()
    await webhooksOf(owner).create(receiver.url)
    const upload = await newVideo({ externalId: 'a', 'metadata[course]': 'drawing' })
    await owner.send(upload, new Blob(['no video']))
    const plain = await owner.credentials('Plain')
    await owner.send(plain, new Blob(['no video']))
    const events = (await receiver.until(2)).map(({ event }) => event.payload)
    expect(events.find(({ id }) => id === upload.videoId)).toMatchObject({ externalId: 'a', metadata: { course: 'drawing' } })
    expect(Object.keys(events.find(({ id }) => id === plain.videoId) ?? {})).not.toContain('metadata')
  })

  test('X50: a delivery with the largest fields and very many tags stays below 20 kB', async () => {
    const receiver = receivers.newReceiver()
    await webhooksOf(owner).create(receiver.url)
    const upload = await owner.credentials('\u0001'.repeat(500))
    const tags = Array.from({ length: 200 }, (_, n) => `${n} `.padEnd(255, 'ü'))
    await ask('POST', '/api/videos/tags', { videos: [upload.videoId], tags: tags.slice(0, 40) })
    const own = { externalId: '🎬'.repeat(255), metadata: { a: 'x'.repeat(4088) } }
    expect(await edit(upload.videoId, own)).toMatchObject({ status: 200 })
    await owner.send(upload, new Blob(['no video']))
    const [received] = await receiver.until(1)
    expect(received?.event.payload).toMatchObject(own)
    expect(Buffer.byteLength(received?.body ?? '')).toBeLessThan(20_000)
  })

  test.each<[string, object, string]>([
    ['an id with a control character', { externalId: 'a\nb' }, 'externalId must have 1 to 255 characters'],
    ['a longer id', { externalId: 'a'.repeat(256) }, 'externalId must have 1 to 255 characters'],
    ['an id that is no text', { externalId: 5 }, 'externalId'],
    ['more than 4 kB', { metadata: { a: 'x'.repeat(4089) } }, 'at most 4096 bytes as JSON, but got 4097'],
    ['a value that is no text', { metadata: { a: 5 } }, 'metadata'],
    ['a list', { metadata: ['a'] }, 'metadata'],
    ['an empty name', { metadata: { '': 'x' } }, 'A name in metadata must have 1 to 64 characters'],
    ['a name with brackets', { metadata: { 'a[b]': 'x' } }, 'A name in metadata must have 1 to 64 characters'],
  ])('%s is refused by a sentence', async (_, body, sentence) => {
    const { videoId } = await newVideo({})
    const refused = await edit(videoId, body)
    expect(refused).toMatchObject({ status: 400, body: { code: 'invalid' } })
    expect(refused.body.message).toContain(sentence)
    expect(await ownOf(videoId)).toEqual({})
  })
})

describe('externalId', () => {
  test('X51: is unique in its account, and in no other', async () => {
    const { videoId } = await newVideo({ externalId: 'x' })
    const other = await newVideo({})
    const refusals = [
      await ask('PUT', `/api/videos${query({ title: 'Second', externalId: 'x' })}`),
      await ask('PUT', '/api/videos/importUrl', { url: 'https://videos.example/a.mp4', externalId: 'x' }),
      await edit(other.videoId, { externalId: 'x', title: 'Not changed' }),
    ]
    const sentence = 'Another video of this account has the externalId "x". GET /api/videos?externalId=x finds it.'
    for (const refusal of refusals) expect(refusal).toMatchObject({ status: 409, body: { code: 'conflict', message: sentence } })
    expect((await owner.video(other.videoId)).title).toBe('A video')
    expect(await found({ externalId: 'x' })).toEqual([videoId])
    owner = await reelgate.newOwner('another')
    expect(await found({ externalId: 'x' })).toEqual([])
    expect(await found({ externalId: 'x', folderId: 'root' })).toEqual([])
    await newVideo({ externalId: 'x' })
  })

  test('X51: of ten concurrent uploads with the same one, exactly one is made', async () => {
    const path = `/api/videos${query({ title: 'One of ten', externalId: 'x' })}`
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => ask('PUT', path)))
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual([200, ...Array(9).fill(409)])
    expect((await owner.list()).count).toBe(1)
  })

  test('is free again once its video is deleted; from the trash a video returns only while it still is', async () => {
    const upload = await newVideo({ externalId: 'x', 'metadata[course]': 'drawing' })
    await owner.send(upload, new Blob(['no video']))
    await owner.until(upload.videoId, 'Not a media file')
    await ask('DELETE', `/api/videos?videos=${upload.videoId}&trash=1`)
    expect(await found({ externalId: 'x' })).toEqual([])
    expect(await found({ 'metadata[course]': 'drawing' })).toEqual([])
    const second = await newVideo({ externalId: 'x' })
    const restore = () => ask('POST', '/api/trash/restore', { videos: [upload.videoId] })
    expect(await restore()).toMatchObject({ status: 409, body: { code: 'conflict' } })
    expect((await owner.list()).count).toBe(1)
    await owner.delete([second.videoId])
    expect(await restore()).toMatchObject({ status: 200 })
    expect(await found({ externalId: 'x' })).toEqual([upload.videoId])
    expect(await found({ 'metadata[course]': 'drawing' })).toEqual([upload.videoId])
  })
})

describe('a list filtered by metadata', () => {
  test('has the videos with all of the pairs, exactly, newest first', async () => {
    const ids: Record<string, string> = {}
    for (const name of ['a1', 'a2', 'b1', 'b2', 'A1'])
      ids[name] = (
        await newVideo({ title: `Lesson ${name}`, 'metadata[course]': name.slice(0, 1), 'metadata[term]': name.slice(1) })
      ).videoId
    const { a1, a2, b2, A1 } = ids
    await ask('POST', '/api/videos/tags', { videos: [a1], tags: ['t'] })
    expect(await found({ 'metadata[course]': 'a' })).toEqual([a2, a1])
    expect(await found({ 'metadata[course]': 'A' })).toEqual([A1])
    expect(await found({ 'metadata[course]': 'a', 'metadata[term]': '1' })).toEqual([a1])
    expect(await found({ 'metadata[course]': 'a', tag: 't' })).toEqual([a1])
    expect(await found({ 'metadata[term]': '2', folderId: 'root', q: 'son b2' })).toEqual([b2])
    expect(await found({ 'metadata[course]': 'a', sort: 'title' })).toEqual([a1, a2])
    expect(await found({ 'metadata[course]': 'c' })).toEqual([])
    expect(await found({ 'metadata[other]': 'a' })).toEqual([])
    expect(await found({ 'metadata[course]': '' })).toEqual([])
  })

  test('is read on from page to page', async () => {
    for (let n = 0; n < 5; n++) await newVideo({ title: `${n}`, 'metadata[course]': 'ä & b' })
    await newVideo({})
    const titles: string[] = []
    let next = `/api/videos${query({ 'metadata[course]': 'ä & b', limit: '2' })}`
    while (next !== '') {
      const response = await owner.call('GET', next)
      const { count, rows } = (await response.json()) as { count: number; rows: { title: string }[] }
      expect(count).toBe(5)
      titles.push(...rows.map(({ title }) => title))
      const link = /<([^>]*)>/.exec(response.headers.get('link') ?? '')?.[1]
      next = link ? new URL(link).pathname + new URL(link).search : ''
    }
    expect(titles).toEqual(['4', '3', '2', '1', '0'])
  })

  test.each([
    ['metadata=a', 'metadata[NAME]=VALUE'],
    ['Metadata[course]=a', 'metadata[NAME]=VALUE'],
    ['metadata[a]=1&metadata[a]=2', 'metadata[NAME]=VALUE'],
    ['metadata[]=1', 'A name in metadata'],
    [`metadata[a]=${'x'.repeat(256)}`, 'cannot be searched for'],
    ['externalID=x', 'externalId'],
    [`externalId=${'x'.repeat(256)}`, '1 to 255 characters'],
  ])('%s is refused by a sentence', async (text, sentence) => {
    const refused = await ask('GET', `/api/videos?${text}`)
    expect(refused.status).toBe(400)
    expect(refused.body.message).toContain(sentence)
  })
})
