import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFile, rm } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { getStoredSource, listSegments, untilFinished } from '../data-folder.ts'
import { findFreePort } from '../free-port.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { sendRaw } from '../raw-http.ts'
import { changeRows, readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { readMediaPlaylist, type Viewer } from '../viewer.ts'

// What answers give away, besides what was requested.

/** As the owner configured it: not the name by which the connections of these tests come in. */
let publicUrl: string
let reelgate: Reelgate & { remove(): Promise<void> }
let video: string
let videoId: string
let viewer: Viewer
beforeAll(async () => {
  const port = await findFreePort()
  publicUrl = `http://localhost:${port}`
  video = await makeVideo({ seconds: 15, rate: 10 })
  reelgate = await startSharedReelgate({ video, env: { PORT: String(port), REELGATE_PUBLIC_URL: publicUrl } })
  videoId = reelgate.videoId
  viewer = reelgate.newViewer()
  expect((await viewer.redeem(await reelgate.owner.issueOtp(videoId))).playing).toBe(true)
})
afterAll(() => reelgate?.remove())

async function addVideo(title: string): Promise<string> {
  const id = await reelgate.owner.readyVideo(video, title)
  await untilFinished(reelgate, id)
  return id
}

const withKey = () => `Authorization: Apisecret ${reelgate.owner.apiKey}`

describe('X12: the addresses in answers are made from the configured one', () => {
  const BY_PROXY = {
    'X-Forwarded-Host': 'evil.example',
    'X-Forwarded-Proto': 'javascript',
    'X-Forwarded-Port': '6666',
    'X-Forwarded-Prefix': '/evil',
    'X-Original-Host': 'evil.example',
    Forwarded: 'host=evil.example;proto=http',
  }

  test.each<[string, Record<string, string>]>([
    ['a hostile Host', { Host: 'evil.example' }],
    ['a Host of script', { Host: '"><script>evil' }],
    ['hostile headers of a proxy', BY_PROXY],
    ['all of them', { Host: 'evil.example', ...BY_PROXY }],
  ])('whatever is said by %s', async (_, headers) => {
    const video = await askAs(headers, 'GET', `/api/videos/${videoId}`)
    const list = await askAs(headers, 'GET', '/api/videos')
    const credentials = await askAs(headers, 'PUT', '/api/videos?title=x')
    for (const { status, text } of [video, list, credentials]) {
      expect(status).toBe(200)
      expect(text).not.toMatch(/evil|:6666/)
    }
    const { posters, poster }: { posters: { posterUrl: string }[]; poster: string } = JSON.parse(video.text)
    for (const address of [poster, ...posters.map(({ posterUrl }) => posterUrl)])
      expect(address.replace(/[\w-]{22}\.jpg$/, 'TOKEN')).toBe(`${publicUrl}/poster/TOKEN`)
    expect(JSON.parse(credentials.text).clientPayload.uploadLink).toBe(`${publicUrl}/upload`)
  })

  test('also in the response to an upload', async () => {
    const { clientPayload } = await reelgate.owner.credentials('x')
    const { uploadLink: _, ...fields } = clientPayload
    const form = new FormData()
    for (const [name, value] of Object.entries({ ...fields, success_action_status: '201' })) form.append(name, value)
    form.append('file', new Blob(['no video']), 'x.mp4')
    const { headers, body } = new Request('http://x', { method: 'POST', body: form })
    const sent = Buffer.from(await new Response(body).arrayBuffer())
    const type = headers.get('content-type') ?? ''
    const answer = await askAs({ Host: 'evil.example', ...BY_PROXY, 'Content-Type': type }, 'POST', '/upload', sent)
    expect(answer.status).toBe(201)
    expect(answer.text).toContain(`<Location>${publicUrl}/upload/`)
    expect(answer.text + JSON.stringify(answer.headers)).not.toMatch(/evil|:6666/)
  })

  async function askAs(headers: Record<string, string>, method: string, path: string, body?: Buffer) {
    const { hostname, port } = new URL(reelgate.url)
    const Authorization = `Apisecret ${reelgate.owner.apiKey}`
    const asked = request({ hostname, port, method, path, headers: { Authorization, ...headers } }).end(body)
    const [answer]: IncomingMessage[] = await once(asked, 'response')
    if (!answer) throw new Error('no answer')
    return { status: answer.statusCode, headers: answer.headers, text: (await answer.toArray()).join('') }
  }
})

describe('P18: a poster', () => {
  test('is an image for everyone who has its address, which the owner gives out and which cannot be guessed', async () => {
    const { posters } = await reelgate.owner.video(videoId)
    for (const { posterUrl } of posters) {
      const response = await fetch(posterUrl)
      expect(response.status).toBe(200)
      expect(response.headers.get('content-type')).toBe('image/jpeg')
      expect(response.headers.get('cache-control')).toBe('public, max-age=86400') // as long as a cache may have it once it is not public
      const guess = posterUrl.replace(/.\.jpg$/, (end) => (end.startsWith('A') ? 'B.jpg' : 'A.jpg'))
      expect((await fetch(guess)).status).toBe(404)
    }
    for (const name of [videoId, `${videoId}.jpg`, `${videoId}/1.jpg`, '1.jpg', ''])
      expect((await fetch(`${reelgate.url}/poster/${name}`)).status).not.toBe(200)
  })

  test('of a video that is not public is for its viewers’ sessions and its account’s keys alone, and again for everybody who has the address when it is', async () => {
    const { owner } = reelgate
    const [poster] = (await owner.video(videoId)).posters
    const url = poster?.posterUrl ?? ''
    const setPublic = async (value: 0 | 1) =>
      expect((await owner.call('POST', `/api/videos/${videoId}`, { body: { public: value } })).status).toBe(200)
    const withSecret = (secret: string) => fetch(url, { headers: { Authorization: `Apisecret ${secret}` } })
    await setPublic(0)
    expect((await fetch(url)).status).toBe(404)
    expect((await withSecret('x'.repeat(64))).status).toBe(404)
    expect((await withSecret((await reelgate.newOwner('Another')).apiKey)).status).toBe(404)
    const forOwner = await withSecret(owner.apiKey)
    expect([forOwner.status, forOwner.headers.get('cache-control')]).toEqual([200, 'private, no-store'])
    const jpeg = Buffer.from(await forOwner.arrayBuffer())
    expect(jpeg.toString('hex', 0, 3)).toBe('ffd8ff')

    const ofSession = reelgate.newViewer()
    const { body } = await ofSession.redeem(await owner.issueOtp(videoId))
    const path = `play/${body.session}/file/poster`
    expect(body.video).toMatchObject({ poster: path })
    const forViewer = await ofSession.call('file', 'poster')
    expect([forViewer.status, forViewer.headers.get('content-type')]).toEqual([200, 'image/jpeg'])
    expect(Buffer.from(await forViewer.arrayBuffer()).equals(jpeg)).toBe(true)
    expect((await fetch(`${reelgate.url}/${path}`)).status).toBe(403) // without its proof
    await ofSession.call('leave', undefined, '{}')
    await setPublic(1)
    expect((await fetch(url)).status).toBe(200)
  })

  test('says nothing from which a segment’s address could be made', async () => {
    const [poster] = (await reelgate.owner.video(videoId)).posters
    const { init, segments } = readMediaPlaylist(await viewer.playlist('1'))
    const [exp = '', sig = ''] = init.split('media/')[1]?.split('/') ?? []
    expect(sig).toHaveLength(22)
    const posterUrl = poster?.posterUrl ?? ''
    const answer = await sendRaw(reelgate.url, `GET ${new URL(posterUrl).pathname}`)
    const given = [posterUrl, ...[...answer.headers].flat(), answer.text].join('\n')
    const parts = [videoId, exp, sig, ...listSegments(reelgate, videoId).map(({ file }) => file)]
    for (const part of parts) expect(given.includes(part)).toBe(false)
    // Nor does a segment's address without its signature, or with the poster's token in its place.
    const token = /([\w-]{22})\.jpg/.exec(posterUrl)?.[1] ?? ''
    for (const other of [token, createHash('md5').update(`${exp}/${videoId}/1 `).digest('base64url')]) {
      const path = segments[0]?.uri.replace(sig, other) ?? ''
      expect((await fetch(new URL(path, `${reelgate.url}/play/x/playlist/`))).status).toBe(403)
    }
  })
})

test('P17: a playback session opens no original: no address gives a byte of the source', async () => {
  const source = getStoredSource(reelgate, videoId)
  const { name } = readRows<{ name: string }>(reelgate, 'select file as name from source where video_id = ?', videoId)[0] ?? {}
  const clear = await source.clear()
  const sealed = await readFile(source.path)
  const { session } = viewer.state
  const media = readMediaPlaylist(await viewer.playlist('1')).init.replace(/^(\.\.\/)+/, '/')
  const names = ['original', 'source', 'download', 'mp4', 'video.mp4', 'original.mp4', videoId, name ?? '']
  const addresses = [
    ...names.flatMap((file) => [
      `/play/${session}/file/${encodeURIComponent(file)}`,
      `/play/${session}/${encodeURIComponent(file)}`,
      `/api/videos/${videoId}/files/${encodeURIComponent(file)}`,
      `/sources/${file}`,
      media.replace(/\/1\/init\.mp4$/, `/0/${encodeURIComponent(file)}`),
      media.replace(/init\.mp4$/, encodeURIComponent(file)),
    ]),
    `/api/videos/${videoId}/files`,
    `/upload/orig/${videoId}`,
  ]
  for (const address of addresses) {
    for (const operation of ['file', 'playlist', 'key']) {
      const proof = viewer.proof({ operation, session, argument: address.split('/').at(-1) })
      const response = await viewer.send('GET', address, proof)
      const bytes = Buffer.from(await response.arrayBuffer())
      expect([address, response.status >= 400 && response.status < 500]).toEqual([address, true])
      for (const secret of [clear, sealed]) expect(bytes.includes(secret.subarray(1000, 1032))).toBe(false)
    }
  }
})

describe('P19: an id', () => {
  test('of a video has 128 bits, of which each is as likely 0 as 1', async () => {
    const ids = await Promise.all(Array.from({ length: 200 }, async () => (await reelgate.owner.credentials('x')).videoId))
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{32}$/)
    const ones = Array.from({ length: 128 }, (_, bit) => ids.filter((id) => (BigInt(`0x${id}`) >> BigInt(bit)) & 1n).length)
    // Of 200 fair bits fewer than 50 or more than 150 are ones less than once in 10¹².
    for (const count of ones) expect(Math.abs(count - 100)).toBeLessThan(50)
    expect(new Set(ids.map((id) => id.slice(0, 8))).size).toBe(200)
    await reelgate.owner.delete(ids)
  })

  test('together with a valid one, or another owner’s, is answered like an unknown one', async () => {
    const other = await reelgate.newOwner('Ben')
    const number = BigInt(`0x${videoId}`)
    const near = [1n, -1n, 2n, 16n, 1n << 127n].map((step) =>
      ((number + step) & ((1n << 128n) - 1n)).toString(16).padStart(32, '0'),
    )
    const answerTo = async (owner: typeof other, method: string, path: string, body?: unknown) => {
      const response = await owner.call(method, path, { body })
      return `${response.status} ${(await response.text()).replace(/"requestId":"[^"]+"/, '')}`
    }
    for (const [method, path, body] of [
      ['GET', '/api/videos/ID'],
      ['POST', '/api/videos/ID/otp', {}],
      ['DELETE', '/api/videos?videos=ID'],
    ] as const) {
      const none = await answerTo(reelgate.owner, method, path.replace('ID', '0'.repeat(32)), body)
      for (const id of near) expect(await answerTo(reelgate.owner, method, path.replace('ID', id), body)).toBe(none)
      for (const id of [videoId, ...near]) expect(await answerTo(other, method, path.replace('ID', id), body)).toBe(none)
    }
    const [, , unknown] = await Promise.all([0, 1, 2].map((at) => fetchSession(at)))
    for (const answer of [await fetchSession(0), await fetchSession(1)]) expect(answer).toEqual(unknown)
  })

  /** A stranger asks for a key of a session that is (0), of another one (1), of none (2). */
  async function fetchSession(which: number) {
    const stranger = reelgate.newViewer()
    await stranger.openPage()
    const { session } = viewer.state
    stranger.state.session = [session, session.replace(/.$/, (end) => (end === 'A' ? 'Q' : 'A')), 'A'.repeat(22)][which] ?? ''
    const response = await stranger.key(0)
    return { status: response.status, text: await response.text() }
  }
})

test('P20: the answer with a key is guessed at by no browser, read by no other site and signed by no software', async () => {
  const { status, headers } = await viewer.key(0)
  expect(status).toBe(200)
  expect(headers.get('content-type')).toBe('application/octet-stream')
  expect(headers.get('content-length')).toBe('16')
  expect(headers.get('x-content-type-options')).toBe('nosniff')
  expect(headers.get('cross-origin-resource-policy')).toBe('same-origin')
  expect(headers.get('cache-control')).toBe('no-store')
  for (const name of ['server', 'x-powered-by', 'via', 'set-cookie', 'access-control-allow-origin', 'etag', 'last-modified'])
    expect([name, headers.get(name)]).toEqual([name, null])
})

describe('X11: an answer that refuses cannot be read as a page', () => {
  const SCRIPT = '<script>alert(document.domain)</script><img src=x onerror=alert(1)>'
  const encoded = encodeURIComponent(SCRIPT)
  const JSON_TYPE = 'Content-Type: application/json'
  const FORM_TYPE = 'Content-Type: application/x-www-form-urlencoded'

  test.each<[string, string[], string]>([
    [`GET /${encoded}`, [], ''],
    [`GET /${SCRIPT.replaceAll(' ', '+')}`, [], ''],
    [`GET /%ZZ${encoded}`, [], ''],
    [`GET /api/${encoded}`, [], ''],
    [`GET /api/videos/${encoded}`, ['KEY'], ''],
    [`GET /api/videos?limit=${encoded}`, ['KEY'], ''],
    [`GET /api/videos?page=${encoded}`, ['KEY'], ''],
    [`GET /api/videos?${encoded}=1&page=x`, ['KEY'], ''],
    [`PUT /api/videos?title=${encoded.repeat(20)}`, ['KEY'], ''],
    [`PUT /api/videos?title=x&folderId=${encoded}`, ['KEY'], ''],
    [`POST /api/videos/${encoded}/otp`, ['KEY', JSON_TYPE], '{}'],
    ['POST /api/videos/ID/otp', ['KEY', JSON_TYPE], `{"ttl":"${SCRIPT}"}`],
    ['POST /api/videos/ID/otp', ['KEY', JSON_TYPE], SCRIPT],
    ['POST /api/videos/ID/otp', ['KEY', JSON_TYPE], JSON.stringify({ annotate: SCRIPT })],
    ['POST /api/videos/ID/otp', ['KEY', 'Content-Type: text/html'], SCRIPT],
    ['GET /api/videos', [`Authorization: ${SCRIPT}`], ''],
    ['PATCH /api/videos', ['KEY'], ''],
    [`${'<script>'} /api/videos`, ['KEY'], ''],
    [`POST /v2/otp?video=${encoded}`, [FORM_TYPE], 'clientSecretKey=SECRET'],
    [`POST /v2/${encoded}`, [FORM_TYPE], 'clientSecretKey=SECRET'],
    [`POST /v2/otp?video=ID&type=${encoded}`, [FORM_TYPE], `clientSecretKey=${encoded}`],
    [`GET /play/${encoded}/playlist/main`, [], ''],
    ['POST /play/redeem', [JSON_TYPE], `{"otp":"${SCRIPT}"}`],
    ['POST /play/redeem', [JSON_TYPE, `Reelgate-Proof: ${SCRIPT}`], SCRIPT],
    [`GET /media/1/${encoded}/x/1/1/0.m4s`, [], ''],
    [`GET /poster/${encoded}.jpg`, [], ''],
    [`GET /player/assets/${encoded}`, [], ''],
    ['POST /upload', ['Content-Type: text/html'], SCRIPT],
    [
      'POST /upload',
      ['Content-Type: multipart/form-data; boundary=b'],
      `--b\r\nContent-Disposition: form-data; name="${SCRIPT.replaceAll('"', '')}"\r\n\r\n${SCRIPT}\r\n--b--\r\n`,
    ],
    [`GET /healthz/${encoded}`, [], ''],
  ])('%s', async (line, lines, body) => {
    const { status, headers, text } = await sendRaw(
      reelgate.url,
      line.replace('ID', videoId),
      lines.map((given) => (given === 'KEY' ? withKey() : given)),
      body.replace('SECRET', reelgate.owner.apiKey),
    )
    expect(status).toBeLessThan(500)
    expect(text).not.toContain('<script')
    expect(text).not.toContain('<img')
    // Node itself answers what is no HTTP, without a body and before any of our code.
    if (text === '') return
    expect(headers.get('content-type')).toMatch(/^application\/(json|xml)/)
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(text).not.toMatch(/<html|<pre|<!doctype|fastify|node_modules/i)
  })
})

describe('L05: what no viewer and no owner needs is not there', () => {
  test.each([
    ...['/metrics', '/debug', '/debug/pprof', '/debug/vars', '/status', '/server-status', '/documentation', '/swagger.json'],
    ...[
      '/.env',
      '/.git/HEAD',
      '/.git/config',
      '/.npmrc',
      '/package.json',
      '/package-lock.json',
      '/src/server.ts',
      '/node_modules',
    ],
    ...['/reelgate.db', '/reelgate.db-wal', '/lock.db', '/control.sock', '/data/reelgate.db', '/data.key', '/tmp', '/sources'],
    ...['/player/manifest.json', '/player/assets/manifest.json', '/player/assets/', '/player/.env', '/player/../.git/HEAD'],
    ...['/player/assets/..%2f..%2freelgate.db', '/dist/player/manifest.json', '/api/metrics', '/v2/debug', '/play/metrics'],
    ...['/poster/', '/upload/reelgate.db', '/index.php', '/phpinfo.php', '/wp-login.php', '/actuator/env', '/robots.txt'],
  ])('%s', async (path) => {
    for (const method of ['GET', 'POST']) {
      const { status, text } = await sendRaw(reelgate.url, `${method} ${path}`)
      expect([400, 404, 405, 415]).toContain(status)
      expect(text.length).toBeLessThan(600)
      expect(text).not.toMatch(/SQLite format|REELGATE_|ref:|"dependencies"|"isEntry"/)
    }
  })

  test('no source map of the player, and no mention of one', async () => {
    const page = await (await fetch(`${reelgate.url}/player/`)).text()
    const assets = Array.from(page.matchAll(/(?:src|href)="([^"]+\.(?:js|css))"/g), ([, path = '']) => path)
    expect(assets).toHaveLength(2)
    for (const asset of assets) {
      const address = new URL(asset, `${reelgate.url}/player/`).href
      const response = await fetch(address)
      expect(response.status).toBe(200)
      expect(response.headers.get('sourcemap')).toBeNull()
      expect(await response.text()).not.toMatch(/sourceMappingURL=\S+\.map/)
      expect((await fetch(`${address}.map`)).status).toBe(404)
    }
  })
})

describe('L03: where something of the server is broken', () => {
  /** What an answer must not hold: stacks, places, SQL, words of the parts. */
  const INSIDES =
    /\bat .*:\d+:\d+|\.ts\b|node:|node_modules|\/tmp\/|data\/|segments\/|select |insert |no such (table|file)|SQLITE|ENOENT|kysely/i

  function expectSilent(status: number, text: string): string {
    expect(status).toBe(500)
    expect(text).not.toMatch(INSIDES)
    const [, shown = text] = /<body[^>]*>([\s\S]*)/.exec(text) ?? []
    expect(shown.replace(/<[^>]*>/g, '').length).toBeLessThan(400)
    const requestId = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/.exec(text)?.[0] ?? ''
    expect(requestId).not.toBe('')
    return requestId
  }

  test('a lost poster is a 503 in words, which the log explains', async () => {
    const broken = await addVideo('A video that the disk loses')
    await rm(join(reelgate.dataDir, 'posters', broken), { recursive: true })
    const response = await fetch((await reelgate.owner.video(broken)).poster)
    const text = await response.text()
    expect([response.status, response.headers.get('cache-control')]).toEqual([503, 'no-store'])
    expect(text).not.toMatch(INSIDES)
    expect(text).toMatch(/poster/i)
    await expect.poll(() => reelgate.output()).toContain('file: damaged')
    await reelgate.owner.delete([broken])
  })

  test('a missing table is reported in the log alone, at neither interface and not to viewers', async () => {
    changeRows(reelgate, 'alter table otp rename to otp_lost')
    try {
      const current = await reelgate.owner.call('POST', `/api/videos/${videoId}/otp`, { body: {} })
      const v2 = await sendRaw(
        reelgate.url,
        `POST /v2/otp?video=${videoId}`,
        ['Content-Type: application/x-www-form-urlencoded'],
        `clientSecretKey=${reelgate.owner.apiKey}`,
      )
      const page = await fetch(`${reelgate.url}/player/?otp=${'A'.repeat(64)}`)
      const viewer = reelgate.newViewer()
      await viewer.openPage() // names no OTP, so it reads none
      const newcomer = await viewer.redeem('A'.repeat(64))
      for (const [status, text] of [
        [current.status, await current.text()],
        [v2.status, v2.text],
        [page.status, await page.text()],
        [newcomer.status, JSON.stringify(newcomer.body)],
      ] as const) {
        const requestId = expectSilent(status, text)
        await expect.poll(() => reelgate.output()).toContain(requestId)
      }
    } finally {
      changeRows(reelgate, 'alter table otp_lost rename to otp')
    }
    expect(await reelgate.owner.issueOtp(videoId)).toHaveLength(64)
  })
})
