import { execFile, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { getStoredSource } from '../data-folder.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { startNginx } from '../nginx.ts'

// Clients of tus as they come, directly and through a proxy.

let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  reelgate = await startSharedReelgate()
})
afterAll(() => reelgate.remove())

const run = promisify(execFile)
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
const storedHash = async (videoId: string) => sha256(await getStoredSource(reelgate, videoId).clear())
const headers = () => ({ Authorization: `Bearer ${reelgate.owner.apiKey}` })

/** In a process of its own: its packages have the types of browsers. Prints a line of JSON for each event. */
const CLIENT = `
import { readFileSync } from 'node:fs'

const [client, endpoint, secret, path, chunkSize, retries] = process.argv.slice(1)
const bytes = readFileSync(path)
const print = (event) => process.stdout.write(JSON.stringify(event) + "\\n")
const options = {
  endpoint,
  headers: { Authorization: 'Bearer ' + secret },
  chunkSize: Number(chunkSize),
  retryDelays: Array.from({ length: Number(retries) }, () => 50),
  onAfterResponse: (_request, response) =>
    print({ status: response.getStatus(), videoId: response.getHeader('Reelgate-Video-Id') }),
}
if (client === 'uppy') {
  const [{ default: Uppy }, { default: Tus }] = await Promise.all([import('@uppy/core'), import('@uppy/tus')])
  const uppy = new Uppy().use(Tus, options)
  // Outside a browser its client of tus takes a buffer where it has a file there.
  uppy.addFile({ name: 'Lesson 12.mp4', type: 'video/mp4', data: Object.assign(bytes, { size: bytes.length }) })
  const { failed } = await uppy.upload()
  print({ failed: failed.map(({ error }) => error) })
} else {
  const { Upload } = await import('tus-js-client')
  const onError = (error) => print({ failed: [error.message] })
  const metadata = { title: 'Sent by tus-js-client', filename: 'a.mp4' }
  new Upload(bytes, { ...options, metadata, onError, onSuccess: () => print({ failed: [] }) }).start()
}
`

type Client = { name: 'tus-js-client' | 'uppy'; chunkBytes?: number; retries?: number; onStatus?(status: number): void }

/** Uploads a file with a client in a process of its own. @returns the id of its video, and what failed */
async function send(endpoint: string, file: Buffer, { name, chunkBytes = 100_000, retries = 200, onStatus }: Client) {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-tus-'))
  await writeFile(join(folder, 'a.mp4'), file)
  const args = ['--input-type=module', '-e', CLIENT, name, endpoint, reelgate.owner.apiKey, join(folder, 'a.mp4')]
  const client = spawn(process.execPath, [...args, String(chunkBytes), String(retries)], { stdio: ['ignore', 'pipe', 'inherit'] })
  let videoId = ''
  let failed: string[] | undefined
  for await (const line of createInterface(client.stdout)) {
    const event = JSON.parse(line) as { status?: number; videoId?: string; failed?: string[] }
    videoId = event.videoId || videoId
    failed = event.failed ?? failed
    if (event.status) onStatus?.(event.status)
  }
  await rm(folder, { recursive: true })
  return { videoId, failed }
}

async function expectStored(file: Buffer, { videoId, failed }: Awaited<ReturnType<typeof send>>): Promise<void> {
  expect(failed).toEqual([])
  expect(await storedHash(videoId)).toBe(sha256(file))
}

test.each(['tus-js-client', 'uppy'] as const)(
  'F-158: %s sends a file as it comes, in parts, and the video has a title',
  async (name) => {
    const file = randomBytes(350_000)
    const sent = await send(`${reelgate.url}/api/uploads`, file, { name })
    await expectStored(file, sent)
    expect((await reelgate.owner.video(sent.videoId)).title).toBe(name === 'uppy' ? 'Lesson 12.mp4' : 'Sent by tus-js-client')
  },
)

test('F-158: tus-js-client continues by itself after the server was away', async () => {
  const file = randomBytes(600_000)
  const { promise: isUnderWay, resolve } = Promise.withResolvers<void>()
  const sending = send(`${reelgate.url}/api/uploads`, file, {
    name: 'tus-js-client',
    onStatus: (status) => status === 204 && resolve(),
  })
  await isUnderWay
  await reelgate.stop()
  await reelgate.restart()
  await expectStored(file, await sending)
})

test('F-158: the lines for curl in the docs send a file, and send what is missing when they are run again', async () => {
  const page = await readFile(join(import.meta.dirname, '../../docs/resumable-uploads.md'), 'utf8')
  const [, section = ''] = /## With curl\n([\s\S]*?)\n## /.exec(page) ?? []
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-curl-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = randomBytes(250_000)
  await writeFile(join(folder, 'lesson-12.mp4'), file)
  const lines = section
    .replaceAll(/^ {4}/gm, '')
    .replaceAll('https://video.example.org', reelgate.url)
    .replaceAll('YOUR_SECRET', reelgate.owner.apiKey)
    .replaceAll('50000000', '100000')
  const { stdout } = await run('bash', ['-euc', `${lines}\noffset`], { cwd: folder })
  expect(stdout.trim()).toBe('250000')
  const { rows } = (await (await reelgate.owner.call('GET', '/api/videos?limit=1')).json()) as {
    rows: { id: string; title: string }[]
  }
  expect(rows[0]?.title).toBe('lesson-12.mp4')
  expect(await storedHash(rows[0]?.id ?? '')).toBe(sha256(file))
})

test('F-159: through nginx as it is set up by itself: it buffers, says no protocol, stops at a size, and leads from below a path', async () => {
  const nginx = await startNginx(() => ({
    http: 'client_max_body_size 100k;',
    location: `rewrite ^/video/(.*)$ /$1 break; proxy_pass ${reelgate.url};`,
  }))
  onTestFinished(() => nginx.remove())
  const endpoint = `${nginx.url}/video/api/uploads`
  const file = randomBytes(250_000)
  const tooLarge = await send(endpoint, file, { name: 'tus-js-client', chunkBytes: 200_000, retries: 0 })
  expect(tooLarge.failed).toEqual([expect.stringContaining('response code: 413')])
  await expectStored(file, await send(endpoint, file, { name: 'tus-js-client' }))
})

test('F-159: behind a proxy that ends TLS the address of an upload is that of the public URL, or leads from where the client is', async () => {
  const begin = async (url: string) => {
    const ofTus = { 'Tus-Resumable': '1.0.0', 'Upload-Length': '1', 'Upload-Metadata': 'filename YQ==' }
    const response = await fetch(`${url}/api/uploads`, { method: 'POST', headers: { ...headers(), ...ofTus } })
    return response.headers.get('Location') ?? ''
  }
  expect(await begin(reelgate.url)).toMatch(new RegExp(`^${reelgate.url}/api/uploads/[0-9a-f]{32}$`))
  const nginx = await startNginx(() => ({ location: `proxy_set_header Host video.example; proxy_pass ${reelgate.url};` }))
  onTestFinished(() => nginx.remove())
  const location = await begin(nginx.url)
  expect(location).toMatch(/^\.\.\/api\/uploads\/[0-9a-f]{32}$/)
  expect(new URL(location, 'https://video.example/school/api/uploads').href).toMatch(
    /^https:\/\/video\.example\/school\/api\/uploads\/[0-9a-f]{32}$/,
  )
})

test('F-159: nginx answers 502 while the server is away, and the upload continues when it is there again', async () => {
  const nginx = await startNginx(() => ({ location: `proxy_pass ${reelgate.url};` }))
  onTestFinished(() => nginx.remove())
  const file = randomBytes(500_000)
  const { promise: isUnderWay, resolve } = Promise.withResolvers<void>()
  const statuses: number[] = []
  const sending = send(`${nginx.url}/api/uploads`, file, {
    name: 'tus-js-client',
    onStatus(status) {
      statuses.push(status)
      if (status === 204) resolve()
    },
  })
  await isUnderWay
  await reelgate.stop()
  await expect.poll(() => statuses).toContain(502)
  await reelgate.restart()
  await expectStored(file, await sending)
})
