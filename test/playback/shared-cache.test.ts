import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { startNginx } from '../nginx.ts'
import { makeVideo } from '../videos.ts'
import { bytesOf, createViewer, readMediaPlaylist, type Viewer } from '../viewer.ts'

// A cache that many viewers share lies between them and the server: Debian's nginx, which keeps whatever it is not forbidden to.

let reelgate: Reelgate & { remove(): Promise<void> }
let nginx: { url: string; remove(): Promise<void> }
let videoId: string
beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeVideo() })
  nginx = await startNginx((folder) => ({
    http: `proxy_cache_path ${folder}/cache keys_zone=shared:1m;`,
    location: `
      proxy_pass ${reelgate.url};
      proxy_cache shared;
      proxy_cache_valid any 10m;
      proxy_cache_methods GET HEAD POST;
      proxy_cache_lock on;
      add_header X-Cache $upstream_cache_status always;`,
  }))
  videoId = reelgate.videoId
})
afterAll(async () => {
  await nginx?.remove()
  await reelgate?.remove()
})

async function newPlayingViewer(): Promise<Viewer> {
  const viewer = createViewer(nginx.url)
  expect((await viewer.redeem(await reelgate.owner.issueOtp(videoId))).playing).toBe(true)
  return viewer
}

/** An answer's status, bytes, and whether the cache gave it. */
async function taken(asked: Response | Promise<Response>) {
  const response = await asked
  const bytes = Buffer.from(await response.arrayBuffer())
  return { status: response.status, bytes, fromCache: response.headers.get('x-cache') === 'HIT' }
}

test('P07: the key that one viewer was given is given to no other by the cache between them', async () => {
  const ann = await newPlayingViewer()
  const address = `/play/${ann.state.session}/key/0`
  const annsProof = ann.proof({ operation: 'key', session: ann.state.session, argument: '0' })
  const key = await taken(ann.send('GET', address, annsProof))
  expect(key).toMatchObject({ status: 200, fromCache: false })
  expect(key.bytes).toHaveLength(16)

  const ben = await newPlayingViewer()
  const bensProof = ben.proof({ operation: 'key', session: ann.state.session, argument: '0' })
  for (const proof of [undefined, annsProof, bensProof]) {
    for (let time = 0; time < 3; time++) {
      const other = await taken(ben.send('GET', address, proof))
      expect([401, 403]).toContain(other.status)
      expect(other.fromCache).toBe(false)
      expect(other.bytes.includes(key.bytes)).toBe(false)
    }
  }
  // Ann asks on: neither her key nor the refusals of others were kept.
  expect(await taken(ann.key(0))).toMatchObject({ status: 200, fromCache: false })
})

test('P07: nothing that is one viewer’s alone is kept: no page, no session, no playlist, no refusal', async () => {
  const ann = await newPlayingViewer()
  const pages = await Promise.all([1, 2].map(async () => (await fetch(`${nginx.url}/player/`)).text()))
  expect(pages[0]).not.toBe(pages[1])
  for (const name of ['main', '1', 'main', '1']) expect((await taken(ann.call('playlist', name))).fromCache).toBe(false)
  const otp = await reelgate.owner.issueOtp(videoId)
  const first = createViewer(nginx.url)
  const second = createViewer(nginx.url)
  expect((await first.redeem(otp)).playing).toBe(true)
  expect((await second.redeem(otp)).body.code).toBe('otp-used')
})

test('P07: a response that an owner got is not given to anyone without a key, at either interface', async () => {
  const { apiKey } = reelgate.owner
  for (const [method, path] of [
    ['GET', '/api/videos'],
    ['GET', `/api/videos/${videoId}`],
    ['POST', `/api/videos/${videoId}/otp`],
    ['POST', `/v2/otp?video=${videoId}`],
    ['POST', `/v2/videos`],
  ] as const) {
    const ask = async (key: string) => {
      const body = method === 'POST' ? new URLSearchParams({ clientSecretKey: key }) : undefined
      return taken(fetch(`${nginx.url}${path}`, { method, headers: { Authorization: `Apisecret ${key}` }, body }))
    }
    const response = await ask(apiKey)
    expect([path, response.status, response.fromCache]).toEqual([path, 200, false])
    expect([path, (await ask('x'.repeat(64))).status]).toEqual([path, 401])
    expect([path, (await ask(apiKey)).status]).toEqual([path, 200])
  }
})

test('P07: the cache is a true one: a segment, which is ciphertext, comes from it the second time', async () => {
  const ann = await newPlayingViewer()
  const { segments } = readMediaPlaylist(await ann.playlist('1'))
  const address = new URL(segments[0]?.uri ?? '', `${nginx.url}/play/x/playlist/`).href
  const sealed = await bytesOf(address)
  expect(await taken(fetch(address))).toMatchObject({ status: 200, fromCache: true, bytes: sealed })
})
