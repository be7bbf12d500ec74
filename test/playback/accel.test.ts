import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { get, type IncomingHttpHeaders } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { blobFolder, FOR_GROUP } from '../../src/storage/folder.ts'
import { listSegments } from '../data-folder.ts'
import { readSteps } from '../docs/steps.ts'
import { type Reelgate, startReelgate, startSharedReelgate } from '../in-process.ts'
import { startNginx } from '../nginx.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { readMediaPlaylist } from '../viewer.ts'

// Segments that nginx sends from the data folder, with the lines of docs/operations.md.

let reelgate: Reelgate & { remove(): Promise<void> }
let nginx: { url: string; remove(): Promise<void> }
beforeAll(async () => {
  const steps = await readSteps('Segments sent by nginx')
  const linesFor = (file: string) => steps.find(({ lines }) => lines?.file === file)?.lines?.text ?? expect.fail(file)
  const [, name = '', value = ''] = /^(\w+)=(\S+)\n$/.exec(linesFor('/etc/default/reelgate')) ?? []
  const env = { [name]: value, REELGATE_TRUSTED_PROXIES: '127.0.0.1' }
  reelgate = await startSharedReelgate({ video: await makeVideo({ seconds: 9, dark: true }), env })
  nginx = await startNginx(() => ({
    server: linesFor('/etc/nginx/conf.d/reelgate.conf')
      .replaceAll('/var/lib/reelgate/data', reelgate.dataDir)
      .replace('http://127.0.0.1:8080', reelgate.url),
    location: `proxy_pass ${reelgate.url}; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;`,
  }))
})
afterAll(async () => {
  await nginx?.remove()
  await reelgate?.remove()
})

/** A segment of the first rendition: its path and its file. */
async function openSegment(of: Reelgate = reelgate, number = 1) {
  const viewer = of.newViewer()
  await viewer.redeem(await of.owner.issueOtp(of.videoId))
  const segment = listSegments(of, of.videoId).find((row) => row.number === number) ?? expect.fail()
  const { segments } = readMediaPlaylist(await viewer.playlist(String(segment.rendition_id)))
  const { pathname: path } = new URL(segments[number]?.uri ?? expect.fail(), `${of.url}/play/x/playlist/`)
  const file = join(of.dataDir, 'segments', segment.file)
  return { file, bytes: await readFile(file), path }
}

/** A request from another address of this machine. */
async function askFrom(localAddress: string, url: string): Promise<{ headers: IncomingHttpHeaders; bytes: Buffer }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ headers: IncomingHttpHeaders; bytes: Buffer }>()
  get(url, { localAddress }, async (response) => {
    resolve({ headers: response.headers, bytes: Buffer.concat(await response.toArray()) })
  }).once('error', reject)
  return promise
}

test('F-200: nginx sends the published bytes of a segment from its file, whole or a part, cacheable and for players of any origin', async () => {
  const { path, bytes } = await openSegment()
  const whole = await fetch(nginx.url + path)
  expect(Object.fromEntries(whole.headers)).toMatchObject({
    'content-type': 'video/iso.segment',
    'cache-control': 'public, max-age=31536000, immutable',
    'access-control-allow-origin': '*',
    'cross-origin-resource-policy': 'cross-origin',
    etag: expect.any(String), // nginx's own: it has read the file
  })
  expect(whole.headers.has('x-accel-redirect')).toBe(false)
  expect(Buffer.from(await whole.arrayBuffer())).toEqual(bytes)
  const part = await fetch(nginx.url + path, { headers: { Range: 'bytes=16-99' } })
  expect([part.status, part.headers.get('content-range')]).toEqual([206, `bytes 16-99/${bytes.length}`])
  expect(Buffer.from(await part.arrayBuffer())).toEqual(bytes.subarray(16, 100))
})

test('F-200: what the proxy is asked to send counts as the owner’s traffic, of a part its length', async () => {
  const env = { REELGATE_MEDIA_ACCEL: '/segments/', REELGATE_TRUSTED_PROXIES: '127.0.0.1' }
  const counting = await startReelgate({ video: await makeVideo({ seconds: 9, dark: true }), env })
  const { path, bytes } = await openSegment(counting)
  for (const headers of [{}, { Range: 'bytes=16-99' }]) {
    const response = await fetch(counting.url + path, { headers })
    expect([response.headers.has('x-accel-redirect'), await response.text()]).toEqual([true, ''])
  }
  const readSent = () => readRows<{ sent: number }>(counting, 'select sum(sent_bytes) as sent from video_usage')[0]?.sent
  await expect.poll(readSent).toBe(bytes.length + 84)
})

test('X53: no client gets files by the path of nginx’s own location, and only the trusted proxy is asked to send one', async () => {
  const { path, bytes, file } = await openSegment()
  const inside = file.slice(join(reelgate.dataDir, 'segments').length)
  for (const address of [`/segments${inside}`, `/segments/../segments${inside}`, '/segments/', '/segments../reelgate.db']) {
    const response = await fetch(nginx.url + address)
    expect([address, response.status]).toEqual([address, 404])
    expect(Buffer.from(await response.arrayBuffer()).includes(bytes.subarray(0, 64))).toBe(false)
  }
  const direct = await askFrom('127.0.0.2', reelgate.url + path)
  expect(direct.headers['x-accel-redirect']).toBeUndefined()
  expect(direct.bytes).toEqual(bytes)
  const proxied = await askFrom('127.0.0.1', reelgate.url + path)
  expect(proxied.headers['x-accel-redirect']).toBe(`/segments${inside}`)
  const forged = path.replace(/\/media\/\d+\/[\w-]+/, (signed) => `${signed.slice(0, -1)}${signed.endsWith('A') ? 'B' : 'A'}`)
  expect((await askFrom('127.0.0.1', reelgate.url + forged)).headers['x-accel-redirect']).toBeUndefined()
  expect(() => readConfig({ REELGATE_MEDIA_ACCEL: '/segments/' })).toThrow(/REELGATE_TRUSTED_PROXIES/)
})

test('X53: after the commands of the docs nginx’s user may read the segments there are and those to come, and nothing else', async () => {
  const root = await mkdtemp(join(tmpdir(), 'reelgate-acl-'))
  onTestFinished(() => rm(root, { recursive: true }))
  const folderOf = (kind: string) => join(root, kind)
  for (const kind of ['segments', 'sources', 'tmp']) await mkdir(folderOf(kind), { mode: 0o700 })
  const segments = blobFolder(folderOf('segments'), folderOf('tmp'), undefined, FOR_GROUP)
  await blobFolder(folderOf('segments'), folderOf('tmp')).put('video/1/before', Buffer.from('a'))
  for (const command of (await readSteps('Segments sent by nginx')).flatMap(({ commands }) => commands)) {
    const [program = '', ...args] = command.replaceAll('/var/lib/reelgate/data', root).split(' ')
    if (program === 'setfacl') await promisify(execFile)(program, args)
  }
  await segments.put('video/1/later', Buffer.from('b'))
  await segments.put('another/1/later', Buffer.from('b'))
  await blobFolder(folderOf('sources'), folderOf('tmp')).put('video/1', Buffer.from('c'))

  const rightsOf = async (path: string) => {
    const { stdout } = await promisify(execFile)('getfacl', ['--absolute-names', '--all-effective', join(root, path)])
    return /^user:www-data:.*#effective:(.*)$/m.exec(stdout)?.[1] ?? '---'
  }
  for (const file of ['video/1/before', 'video/1/later', 'another/1/later'])
    expect(await rightsOf(`segments/${file}`)).toMatch(/^r-/)
  for (const folder of ['segments', 'segments/video', 'segments/another/1']) expect(await rightsOf(folder)).toBe('r-x')
  expect([await rightsOf('.'), await rightsOf('sources/video/1'), await rightsOf('tmp')]).toEqual(['--x', '---', '---'])
})

test.each([
  { what: 'missing, though it was sent a moment ago,', number: 1, damage: (file: string) => rm(file) },
  { what: 'shorter than its row', number: 2, damage: (file: string, bytes: Buffer) => writeFile(file, bytes.subarray(1)) },
])(
  'F-201: a segment file that is $what is not sent by nginx: the viewer waits, and it is encoded again, in a file that an access control list may open',
  async ({ number, damage }) => {
    const { path, bytes, file } = await openSegment(reelgate, number)
    if (number === 1) expect((await fetch(nginx.url + path)).status).toBe(200)
    await damage(file, bytes)
    expect((await fetch(nginx.url + path)).status).toBe(503)
    let response = await fetch(nginx.url + path)
    while (response.status === 503) response = await fetch(nginx.url + path)
    expect(Buffer.from(await response.arrayBuffer())).toEqual(bytes)
    expect((await stat(file)).mode & 0o137).toBe(0) // the server's umask takes off more where there is no list
    expect((await stat(join(reelgate.dataDir, 'sources'))).mode & 0o777).toBe(0o700)
    for (const folder of [dirname(file), reelgate.dataDir]) expect((await stat(folder)).mode & 0o007).toBe(0)
  },
)
