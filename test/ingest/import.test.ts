import { readFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { dataPaths } from '../../src/config/data-paths.ts'
import type { CommandName } from '../../src/control/commands.ts'
import { sendCommand } from '../../src/control/socket.ts'
import { readRowsAtRest } from '../at-rest.ts'
import { createOwner } from '../client.ts'
import { getStoredSource, listFiles } from '../data-folder.ts'
import { startSharedReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { rounds } from '../seeded-random.ts'
import { openSharedWorld } from '../ssrf/network-namespace.ts'
import { makeVideo } from '../videos.ts'
import {
  beginImport,
  failuresOf,
  hostsIn,
  LETTER,
  LETTER_RECEIVED,
  type NewHost,
  outcomeOf,
  sendFile,
  untilDecided,
} from './import-host.ts'

// Imports from hosts that mean no harm, and from some that do not know what they send. Every test has a host of its own.

let world: Awaited<ReturnType<typeof openSharedWorld>>
let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let video: Buffer
let newHost: NewHost

beforeAll(async () => {
  world = await openSharedWorld()
  newHost = hostsIn(world, '8.8.1')
  reelgate = await startSharedReelgate(await world.around({ REELGATE_LIMITS: 'off' })) // a crowd imports
  video = await readFile(await makeVideo())
})
afterAll(async () => {
  await reelgate?.remove()
  await world?.end()
})

test('S26: a video at an address becomes a video that plays, named after the last part of its address; only GET is asked', async () => {
  const asked: string[] = []
  const host = await newHost((request, response) => {
    asked.push(`${request.method} ${request.url} ${request.headers['user-agent']}`)
    sendFile(request, response, video)
  })
  const { owner } = reelgate
  const answer = await owner.call('PUT', '/api/videos/importUrl', { body: { url: `${host}/a/Lesson%201.mp4?b=c` } })
  const body = (await answer.json()) as { id: string }
  expect(body).toEqual({ id: expect.stringMatching(/^[0-9a-f]{32}$/), status: 'Queued', title: 'Lesson 1.mp4' })
  await owner.until(body.id, 'ready')
  expect((await getStoredSource(reelgate, body.id).clear()).equals(video)).toBe(true)
  expect(asked).toEqual(['GET /a/Lesson%201.mp4?b=c Reelgate'])
  const otp = await owner.issueOtp(body.id)
  expect(await reelgate.newViewer().redeem(otp)).toMatchObject({ status: 200 })
})

test('a video that is imported from another service keeps its date there; a date in the future is refused', async () => {
  const host = await newHost((request, response) => sendFile(request, response, LETTER))
  const { owner } = reelgate
  const importDated = (upload_time: unknown) =>
    owner.call('PUT', '/api/videos/importUrl', { body: { url: `${host}/a.mp4`, upload_time } })
  const { id } = (await (await importDated(1_577_836_800)).json()) as { id: string }
  expect(await owner.video(id)).toMatchObject({ upload_time: 1_577_836_800 })
  for (const refused of [Math.floor(Date.now() / 1000) + 86_400, -1, 1.5, 'yesterday'])
    expect([refused, (await importDated(refused)).status]).toEqual([refused, 400])
})

test('an import is asked for in a form, too, with a title and in the folder root; another folder is 404', async () => {
  const host = await newHost((request, response) => sendFile(request, response, LETTER))
  const { owner } = reelgate
  const form = (fields: Record<string, string>) =>
    fetch(`${owner.url}/api/videos/importUrl`, {
      method: 'PUT',
      headers: { Authorization: `Apisecret ${owner.apiKey}` },
      body: new URLSearchParams(fields),
    })
  const answer = await form({ url: `${host}/a.mp4`, title: 'Of a form', folderId: 'root', upload_time: '1577836800' })
  const { id, ...rest } = (await answer.json()) as { id: string }
  expect(rest).toEqual({ status: 'Queued', title: 'Of a form' })
  expect(await untilDecided(owner, id)).toMatchObject({ upload_time: 1_577_836_800, ...LETTER_RECEIVED })
  expect((await form({ url: `${host}/a.mp4`, folderId: 'f'.repeat(32) })).status).toBe(404)
  expect((await form({ title: 'No address' })).status).toBe(400)
})

test('the earlier interface imports as well, and answers one object, or the same as XML', async () => {
  const host = await newHost((request, response) => sendFile(request, response, LETTER))
  const { owner } = reelgate
  const ask = (query: string) =>
    fetch(`${owner.url}/v2/importUrl?${query}`, { method: 'POST', body: new URLSearchParams({ clientSecretKey: owner.apiKey }) })
  const url = encodeURIComponent(`${host}/a.mp4?signed=1&more=2`)
  const body = (await (await ask(`url=${url}`)).json()) as { id: string }
  expect(body).toEqual({ id: expect.stringMatching(/^[0-9a-f]{32}$/), name: 'Queued' })
  expect(await untilDecided(owner, body.id)).toMatchObject(LETTER_RECEIVED)
  const xml = await ask(`url=${url}&type=xml`)
  expect(xml.headers.get('content-type')).toMatch(/^application\/xml/)
  expect(await xml.text()).toMatch(/<result><id>[0-9a-f]{32}<\/id><name>Queued<\/name><\/result>$/)
  expect((await ask('')).status).toBe(400)
})

test('S28: where imports are off, or the key may not upload, both interfaces answer 403 and no request is sent', async () => {
  let asked = 0
  const host = await newHost((_request, response) => {
    asked += 1
    response.end()
  })
  const command = async (name: CommandName, args: unknown) =>
    ((await sendCommand(dataPaths(reelgate.dataDir).controlSocket, name, args)) as { apiKey: string }).apiKey
  const without = await command('account create', { name: 'Without', mayUpload: true, mayImport: false })
  await reelgate.newOwner('With')
  const permissions = ['viewer', 'otpCreator', 'editor']
  const readingKey = await command('key create', { account: 'With', name: 'reading', permissions })
  for (const key of [without, readingKey]) {
    const current = await createOwner(reelgate.url, key).call('PUT', '/api/videos/importUrl', { body: { url: `${host}/a.mp4` } })
    const earlier = await fetch(`${reelgate.url}/v2/importUrl?url=${encodeURIComponent(host)}`, {
      method: 'POST',
      body: new URLSearchParams({ clientSecretKey: key }),
    })
    expect([current.status, earlier.status]).toEqual([403, 403])
  }
  expect(asked).toBe(0)
})

test('S22: a signed address works, and its query is in no log, answer or file, neither while it is fetched nor afterwards', async () => {
  let waiting: ServerResponse | undefined
  const host = await newHost((request, response) => {
    if (request.url !== '/a.mp4?X-Amz-Signature=5ecret-of-a-bucket') response.writeHead(403).end()
    else waiting = response
  })
  const { owner } = reelgate
  const id = await beginImport(owner, `${host}/a.mp4?X-Amz-Signature=5ecret-of-a-bucket`)
  const refused = await beginImport(owner, `${host}/b.mp4?X-Amz-Signature=5ecret-of-another`)
  await expect.poll(() => waiting !== undefined).toBe(true)
  await untilDecided(owner, refused)
  expect(await secretsIn()).toEqual([])
  waiting?.end(video)
  await owner.until(id, 'ready')
  expect(await secretsIn()).toEqual([])
  expect(readRows(reelgate, 'select video_id from import where video_id in (?, ?)', id, refused)).toEqual([])

  async function secretsIn(): Promise<string[]> {
    const rows = [...(await readRowsAtRest(reelgate)).values()].map(String)
    const texts = [reelgate.output(), JSON.stringify(await owner.list()), ...rows]
    return texts.filter((text) => text.includes('5ecret-of'))
  }
})

test('S20: a page, JSON, nothing, a missing page and a text end as failures with a reason, and no encode begins', async () => {
  const answers: Record<string, [number, string, string]> = {
    '/page': [200, 'text/html', '\n<!doctype html><title>Log in</title>'],
    '/json': [200, 'application/json', '{"error":"expired"}'],
    '/empty': [200, 'video/mp4', ''],
    '/missing': [404, 'text/html', '<h1>Not here</h1>'],
    '/forbidden': [403, 'application/xml', '<Error><Code>AccessDenied</Code></Error>'],
    '/part': [206, 'video/mp4', 'a part that was not requested'],
    '/nothing': [204, 'video/mp4', ''],
    '/text': [200, 'video/mp4', 'This is a text that calls itself a video. '.repeat(100)],
    '/playlist': [200, 'application/vnd.apple.mpegurl', '#EXTM3U\n#EXTINF:4,\nhttp://127.0.0.1/a.ts\n'],
  }
  const host = await newHost((request, response) => {
    const [status, type, text] = answers[request.url ?? ''] ?? [500, '', '']
    response.writeHead(status, { 'Content-Type': type }).end(text)
  })
  const { owner } = reelgate
  const paths = Object.keys(answers)
  const failures = await failuresOf(
    owner,
    paths.map((path) => `${host}${path}`),
  )
  const reasons = Object.fromEntries(paths.map((path, index) => [path, failures[index]]))
  expect(reasons).toEqual({
    '/page': `Not a media file: ${host}/page returned a web page, not a video.`,
    '/json': `Not a media file: ${host}/json returned a web page, not a video.`,
    '/empty': `Not a media file: ${host}/empty returned an empty file.`,
    '/missing': `Encoding error: ${host}/missing returned status 404 instead of a video.`,
    '/forbidden': `Encoding error: ${host}/forbidden returned status 403 instead of a video.`,
    '/part': `Encoding error: ${host}/part returned status 206 instead of a video.`,
    '/nothing': `Encoding error: ${host}/nothing returned status 204 instead of a video.`,
    '/text': expect.stringMatching(/^Not a media file: ./),
    '/playlist': expect.stringMatching(/^Not a media file: ./),
  })
  const ids = readRows<{ id: string }>(reelgate, "select id from video where status in ('Not a media file', 'Encoding error')")
  for (const { id } of ids) expect(readRows(reelgate, 'select 1 from generation where video_id = ?', id)).toEqual([])
})

test('S19: a packed answer is not unpacked', async () => {
  const packed = gzipSync(Buffer.concat([video, Buffer.alloc(20e6)]))
  const host = await newHost((_request, response) => response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(packed))
  const id = await beginImport(reelgate.owner, `${host}/a.mp4`)
  expect(await untilDecided(reelgate.owner, id)).toMatchObject({ status: 'Not a media file' })
  expect(getStoredSource(reelgate, id).sizeBytes).toBe(packed.length)
})

test('S24: the name comes from the address, cleaned; what the answer calls itself is not asked', async () => {
  const host = await newHost((request, response) => {
    response.setHeader('Content-Disposition', 'attachment; filename="../../etc/passwd"')
    sendFile(request, response, LETTER)
  })
  const { owner } = reelgate
  const names = {
    '/..%2f..%2fetc%2fa%E2%80%AEfdp%00.mp4': 'afdp.mp4',
    [`/${'n'.repeat(5000)}.mp4`]: 'n'.repeat(255),
    '/%zz.mp4': '%zz.mp4',
    '/%E9%9B%BB.mp4': '電.mp4',
    '/a/': '',
  }
  for (const [path, name] of Object.entries(names)) {
    const id = await beginImport(owner, `${host}${path}`)
    const read = await fetch(`${owner.url}/v2/video?id=${id}`, {
      method: 'POST',
      body: new URLSearchParams({ clientSecretKey: owner.apiKey }),
    })
    expect(await read.json()).toMatchObject({ file: name, title: name || new URL(host).hostname })
    await untilDecided(owner, id)
  }
  const files = await listFiles(reelgate, 'sources')
  expect(files.filter((file) => !/^[0-9a-f]{32}\/([0-9a-f]{32}\.sealed)?$/.test(file))).toEqual([])
})

test('a video that is deleted while it is fetched ends its import: the host is left, and no file and no row stays', async () => {
  const left = Promise.withResolvers<void>()
  let isSending = false
  const host = await newHost((request, response) => {
    sendFile(request, response, Buffer.alloc(20e6, 1), { etag: '"1"', sentBytes: 12e6 })
    isSending = true
    // It continues, fast enough not to be given up for its pace, and too slowly to come to its next step.
    const timer = setInterval(() => response.write(Buffer.alloc(4096, 1)), 200)
    response.once('close', () => {
      clearInterval(timer)
      left.resolve()
    })
  })
  const { owner } = reelgate
  const id = await beginImport(owner, `${host}/a.mp4`)
  const received = () =>
    readRows<{ bytes: number }>(reelgate, 'select received_bytes as bytes from import where video_id = ?', id)
  await expect.poll(() => isSending && received()[0]?.bytes).toBe(8 * 2 ** 20)
  expect(await owner.video(id)).toMatchObject({ status: 'Queued' })
  expect((await listFiles(reelgate, 'sources')).filter((file) => file.startsWith(id))).toHaveLength(2)
  await owner.delete([id])
  await left.promise
  expect(received()).toEqual([])
  await expect.poll(async () => (await listFiles(reelgate)).filter((file) => file.includes(id))).toEqual([])
  await expect.poll(() => readRows(reelgate, 'select id from video where id = ?', id)).toEqual([])
})

const CROWD = rounds(20, 1000)

test(`S23: ${CROWD} imports from one slow host ask it twice at a time, and keep neither another account nor the API waiting`, async () => {
  let open = 0
  let most = 0
  const slow = await newHost((_request, response) => {
    open += 1
    most = Math.max(most, open)
    response.once('close', () => {
      open -= 1
    })
    response.writeHead(200).write('A slow beginning')
  })
  const crowd = await reelgate.newOwner('Crowd')
  const ids: string[] = []
  for (let i = 0; i < CROWD; i++) ids.push(await beginImport(crowd, `${slow}/${i}.mp4`))
  await expect.poll(() => most).toBe(2)
  const other = await newHost((request, response) => sendFile(request, response, LETTER))
  expect(await outcomeOf(reelgate.owner, `${other}/a.mp4`)).toMatchObject(LETTER_RECEIVED)
  // Its own imports from elsewhere have places, too.
  expect(await outcomeOf(crowd, `${other}/b.mp4`)).toMatchObject(LETTER_RECEIVED)
  expect((await crowd.list('?limit=1')).count).toBe(CROWD + 1)
  expect(most).toBe(2)
  await crowd.delete(ids)
  await expect.poll(() => open).toBe(0)
})
