import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { addFile, listFiles } from '../assets/sample-files.ts'
import { makeLanguages, TONES } from '../browser/tones.ts'
import type { Owner, VideoBody } from '../client.ts'
import { type Reelgate, startReelgate, startSharedReelgate } from '../in-process.ts'
import { addDub, audioOf } from '../pipeline/dubs.ts'

// `reelgate import --from`, between two servers: docs/moving-in.md.

/** Of files that are none, so that nothing is encoded. */
const COUNT = process.env.REELGATE_LONG ? 200 : 12
const ALL = COUNT + 2
const NEVER = 'Never uploaded'

let old: Reelgate & { remove(): Promise<void> }
let here: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  old = await startSharedReelgate({ video: await makeLanguages(TONES.slice(0, 2), 4), title: 'A real one' })
  here = await startSharedReelgate({ env: { REELGATE_OUTBOUND_ALLOW: new URL(old.url).host } })
})
afterAll(async () => {
  await old.remove()
  await here.remove()
})

const COPIED = ['title', 'description', 'upload_time', 'tags', 'public', 'externalId', 'metadata', 'status'] as const
const copied = (video: VideoBody | undefined) => COPIED.map((field) => [field, video?.[field]])

async function listAll(owner: Owner): Promise<VideoBody[]> {
  const rows: VideoBody[] = []
  for (let page = 1; ; page++) {
    const found = await owner.list(`?limit=40&page=${page}`)
    rows.push(...found.rows)
    if (rows.length >= found.count || found.rows.length === 0) return rows
  }
}

async function ask<T>(owner: Owner, method: string, path: string, body?: unknown): Promise<T> {
  const response = await owner.call(method, path, { body })
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
  return (await response.json()) as T
}

const ACCOUNT_DEFAULTS = { ttl: 600, annotate: [{ type: 'text', text: 'Do not share', alpha: '0.5' }] }
const VIDEO_DEFAULTS = { whitelisthref: 'school.example.org', streamLimit: 2 }
const CHAPTERS = [
  { startS: 0, title: 'Greeting' },
  { startS: 1, title: 'More' },
]
const cue = (startS: number, endS: number) => `WEBVTT\n\n00:00:0${startS}.000 --> 00:00:0${endS}.000\nHello\n`

async function fillOldServer(owner: Owner): Promise<void> {
  const courses = await ask<{ id: string }>(owner, 'POST', '/api/videos/folders', { name: 'Courses', parent: 'root' })
  const light = await ask<{ id: string }>(owner, 'POST', '/api/videos/folders', { name: 'Light', parent: courses.id })
  await ask(owner, 'POST', '/api/videos/folders', { name: 'Empty', parent: courses.id })
  await ask(owner, 'PUT', '/api/otp-defaults', ACCOUNT_DEFAULTS)
  for (let n = 0; n < COUNT; n++) {
    const upload = await owner.credentials(`Lesson ${n}`)
    await owner.send(upload, new Blob([`no video ${n}`]), `lesson ${n}.mp4`)
    const own = { externalId: `lms/${n}`, metadata: { course: 'light' }, folderId: n % 2 ? light.id : 'root' }
    const edit = { description: `About ${n}`, public: n % 3 === 0 ? 0 : 1, ...own }
    await ask(owner, 'POST', `/api/videos/${upload.videoId}`, edit)
    await ask(owner, 'POST', '/api/videos/tags', { videos: [upload.videoId], tags: [`tag ${n % 3}`, 'all'] })
    await owner.until(upload.videoId, 'Not a media file')
  }
  const real = `/api/videos/${old.videoId}`
  await ask(owner, 'PUT', `${real}/otp-defaults`, VIDEO_DEFAULTS)
  const audio = audioOf(old)
  const [first, second] = await audio.list()
  await audio.put(first?.id ?? 0, { language: 'pt-br' })
  await audio.put(second?.id ?? 0, { name: 'The author’s comments', default: true })
  await addDub(old)
  await ask(owner, 'PUT', `${real}/trim`, { startS: 1, endS: 3 })
  await expect.poll(async () => (await owner.video(old.videoId)).replacement).toBe(undefined)
  expect((await addFile(owner, old.videoId, cue(0, 1), 'de')).status).toBe(200)
  await ask(owner, 'PUT', `${real}/chapters`, { language: 'en', chapters: CHAPTERS })
  await ask(owner, 'POST', `${real}/files`, { type: 'poster', time: 1.5 })
  await owner.credentials(NEVER)
}

/** What `import` prints as JSON. */
type Report = { videos: number; added: number; problems: { video: string; title: string; problem: string }[] }

function moveArgs(pace: number): string[] {
  return ['import', '--from', old.url, '--key', old.owner.apiKey, '--pace', String(pace), '--json']
}

async function move(): Promise<{ code: number; report: Report }> {
  const { code, stdout, stderr } = await here.cli(...moveArgs(100_000))
  if (stdout === '') throw new Error(stderr)
  return { code, report: JSON.parse(stdout) as Report }
}

const named = ({ problems }: Report) => problems.map(({ title, problem }) => [title, problem])

/** The text of the captions as the owner downloads them. */
async function captionOf(owner: Owner, videoId: string): Promise<string> {
  const caption = (await listFiles(owner, videoId)).find(({ type }) => type === 'caption')
  const { redirect } = await ask<{ redirect: string }>(owner, 'GET', `/api/videos/${videoId}/files/${caption?.id}`)
  return (await fetch(redirect)).text()
}

test('F-185: everything of another server comes once, also after an interruption, and what could not come is named', async () => {
  await fillOldServer(old.owner)
  const main = new URL('../../bin/main.js', import.meta.url).pathname
  const environment = { env: { PATH: process.env.PATH, ...here.env }, stdio: 'ignore' } as const
  const interrupted = spawn(process.execPath, [main, ...moveArgs(600)], environment)
  await expect.poll(async () => (await here.owner.list()).count).toBeGreaterThan(2)
  interrupted.kill('SIGKILL')
  await once(interrupted, 'exit')

  const { code, report } = await move()
  expect([code, report.videos]).toEqual([1, ALL])
  expect(named(report)).toEqual([[NEVER, 'It has no file there.']])
  const moved = await listAll(here.owner)
  for (const { id } of moved) await here.owner.until(id, 'Not a media file', 'ready')
  const there = (await listAll(old.owner)).filter(({ title }) => title !== NEVER)
  expect((await listAll(here.owner)).map(copied)).toEqual(there.map(copied))

  const { folderList } = await ask<{ folderList: { id: string; name: string }[] }>(here.owner, 'GET', '/api/videos/folders/root')
  expect(folderList).toMatchObject([{ name: 'Courses', videosCount: 0, foldersCount: 2 }])
  const inCourses = await ask<{ folderList: object[] }>(here.owner, 'GET', `/api/videos/folders/${folderList[0]?.id}`)
  expect(inCourses.folderList).toMatchObject([{ name: 'Empty' }, { name: 'Light', videosCount: COUNT / 2 }])
  expect(await ask(here.owner, 'GET', '/api/otp-defaults')).toEqual(ACCOUNT_DEFAULTS)

  const id = moved.find(({ title }) => title === 'A real one')?.id ?? ''
  expect(await ask(here.owner, 'GET', `/api/videos/${id}/otp-defaults`)).toEqual(VIDEO_DEFAULTS)
  const original = (files: Awaited<ReturnType<typeof listFiles>>) => files.find(({ type }) => type === 'original')
  const { name, size } = original(await listFiles(old.owner, old.videoId)) ?? {}
  expect(original(await listFiles(here.owner, id))).toMatchObject({ name, size })
  expect((await here.owner.video(id)).posters.map(({ width }) => width)).toEqual(
    (await old.owner.video(old.videoId)).posters.map(({ width }) => width),
  )
  await expect.poll(async () => (await here.owner.video(id)).replacement).toBe(undefined)
  const tracksOf = async (of: Reelgate, videoId: string) =>
    (await audioOf({ owner: of.owner, videoId }).list()).map(({ name, language, default: isDefault, added, state }) => [
      ...[name, language, isDefault, added, state],
    ])
  await expect.poll(() => tracksOf(here, id)).toEqual(await tracksOf(old, old.videoId))
  expect((await tracksOf(here, id)).at(-1)).toEqual(['Français', 'fr', false, true, 'ready'])
  const { length, trim } = await old.owner.video(old.videoId)
  expect(await here.owner.video(id)).toMatchObject({ length, trim })
  expect(await ask(here.owner, 'GET', `/api/videos/${id}/chapters`)).toEqual({ language: 'en', chapters: CHAPTERS })
  expect(await captionOf(here.owner, id)).toContain('00:00:00.000 --> 00:00:01.000')

  // Nothing comes twice, and not what was deleted here.
  await here.owner.delete([moved[0]?.id ?? ''])
  await old.owner.delete(report.problems.filter(({ title }) => title === NEVER).map(({ video }) => video))
  expect(await move()).toEqual({ code: 0, report: { videos: ALL - 1, added: 0, problems: [] } })
  expect((await here.owner.list()).count).toBe(ALL - 2)
})

test('F-186: a wrong key, an address that is no such server, and one from which nothing may be fetched are named in one sentence', async () => {
  const page = await listen((request, response) => {
    if (request.url?.startsWith('/moved/')) return response.writeHead(301, { Location: 'https://video.example.org/' }).end()
    return response.setHeader('Content-Type', 'text/html').end('<p>Hello</p>')
  })
  const { host } = new URL(page)
  const closed = '127.0.0.1:9'
  const allowed = [new URL(old.url).host, host, closed].join(',')
  const reelgate = await startReelgate({ env: { REELGATE_OUTBOUND_ALLOW: allowed } })
  const viewing = await ask<{ secret: string }>(old.owner, 'POST', '/api/keys', { name: 'Reads', permissions: ['viewer'] })
  const refusals: [from: string, key: string, sentence: string][] = [
    [old.url, 'x'.repeat(64), 'answered 401'],
    [old.url, viewing.secret, 'downloader'],
    ['video.example.org', 'x', '--from expects the address'],
    [`http://${host}`, 'x', 'answered something else than this API does. Check the address.'],
    [`http://${host}/moved`, 'x', 'answered 301: it leads to another address. Use that one.'],
    [`http://${closed}`, 'x', 'does not answer. Check the address'],
    ['http://127.0.0.1:10', 'x', 'REELGATE_OUTBOUND_ALLOW'],
  ]
  for (const [from, key, sentence] of refusals) {
    const { code, stdout, stderr } = await reelgate.cli('import', '--from', from, '--key', key, '--json')
    expect([code, stdout, stderr], from).toEqual([1, '', expect.stringContaining(sentence)])
    expect(stderr.trim().split('\n').length, stderr).toBe(1)
  }
  expect((await reelgate.owner.list()).count).toBe(0)
})

test('F-177: captions whose address the other server gives within this server’s network are not fetched, and named', async () => {
  const owner = await old.newOwner('Its addresses are elsewhere')
  const upload = await owner.credentials('Lesson')
  const { videoId } = upload
  await owner.send(upload, new Blob(['no video']))
  await owner.until(videoId, 'Not a media file')
  expect((await addFile(owner, videoId, cue(0, 1), 'de')).status).toBe(200)
  const caption = (await listFiles(owner, videoId)).find(({ type }) => type === 'caption')
  const asked: string[] = []
  const inside = await listen((request, response) => {
    asked.push(request.url ?? '')
    response.end(cue(0, 1))
  })
  const other = await listen(async ({ url = '', headers }, response) => {
    const isCaption = url.endsWith(`/files/${caption?.id}`)
    const answer = await fetch(`${old.url}${url}`, { headers: { Authorization: headers.authorization ?? '' } })
    response.writeHead(answer.status).end(isCaption ? JSON.stringify({ redirect: `${inside}/de.vtt` }) : await answer.text())
  })
  const allowed = [old.url, other].map((url) => new URL(url).host).join(',')
  const reelgate = await startReelgate({ env: { REELGATE_OUTBOUND_ALLOW: allowed } })
  const { stdout } = await reelgate.cli('import', '--from', other, '--key', owner.apiKey, '--pace', '100000', '--json')
  expect(named(JSON.parse(stdout) as Report)).toEqual([
    ['Lesson', expect.stringMatching(/^Captions de: .*REELGATE_OUTBOUND_ALLOW/)],
  ])
  expect(asked).toEqual([])
})

/** @returns its address */
async function listen(answer: RequestListener): Promise<string> {
  const server = createServer(answer)
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
