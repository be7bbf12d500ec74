import { request } from 'node:http'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'

// The files of the player's page, and the scripts of the pages around it.

let reelgate: Reelgate & { remove(): Promise<void> }
let files: string[]

beforeAll(async () => {
  reelgate = await startSharedReelgate()
  const html = await (await fetch(`${reelgate.url}/player/`)).text()
  files = [...html.matchAll(/(?:src|href)="(?:\.\.\/)+(player\/assets\/[^"]+)"/g)].map(([, path]) => `/${path}`)
  files.push('/v2/api.js', '/v2/player.js', '/v2/uploader.js', '/v2/reelgate.d.ts', '/vdo.js')
})

afterAll(() => reelgate?.remove())

test('a browser gets the player in the best compression that it accepts, and the same player in each', async () => {
  expect(files.length).toBeGreaterThan(4)
  for (const path of files) {
    const plain = await get(path, undefined)
    const gzip = await get(path, 'gzip, deflate')
    const brotli = await get(path, 'gzip, deflate, br, zstd')
    expect([plain, gzip, brotli].map(({ headers }) => headers['content-encoding'])).toEqual([undefined, 'gzip', 'br'])
    expect(gunzipSync(gzip.body).equals(plain.body) && brotliDecompressSync(brotli.body).equals(plain.body), path).toBe(true)
    expect(brotli.body.length).toBeLessThan(gzip.body.length)
    for (const { headers } of [plain, gzip, brotli]) expect(headers.vary).toBe('Accept-Encoding')
    expect(new Set([plain, gzip, brotli].map(({ headers }) => headers.etag)).size).toBe(3)
  }
})

test('a compression with the weight 0 is not sent', async () => {
  const [script = ''] = files
  expect((await get(script, 'br;q=0, gzip;q=0.5')).headers['content-encoding']).toBe('gzip')
  expect((await get(script, 'br; q=0.0, gzip;q=0')).headers['content-encoding']).toBeUndefined()
  expect((await get(script, 'brotli')).headers['content-encoding']).toBeUndefined()
})

/** As it is sent: `fetch` would decompress it. */
async function get(path: string, accepted: string | undefined) {
  const headers = accepted === undefined ? {} : { 'Accept-Encoding': accepted }
  const { promise, resolve, reject } = Promise.withResolvers<import('node:http').IncomingMessage>()
  request(`${reelgate.url}${path}`, { headers }, resolve).on('error', reject).end()
  const response = await promise
  expect(response.statusCode).toBe(200)
  return { headers: response.headers, body: Buffer.concat(await Array.fromAsync(response)) }
}
