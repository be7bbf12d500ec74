import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createSegmentPaths } from '../../web/player/segment-paths.ts'

const MINUTE_MS = 60_000
const SESSION = 's'.repeat(22)
const signed = (exp: number) => `media/${exp}/${'A'.repeat(22)}/`
const base = (exp: number) => `https://video.example/${signed(exp)}${'0'.repeat(32)}/1/2`
const segment = (exp: number, number = 3) => `${base(exp)}/${number}.m4s`

const playlistOf = (exp: number, third: string) =>
  ['#EXTM3U', ...['0.m4s', '1.m4s', '2.m4s', third, '4.m4s', '5.m4s'].map((file) => `${base(exp)}/${file}`)].join('\n')

/** A server that signs again each time it is asked, and a player whose minutes pass when the test says so. */
async function startPlayer({ refusals = [], third = '3.m4s' }: { refusals?: number[]; third?: string } = {}) {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const asked: string[] = []
  let exp = 1000
  const server = createServer((request, response) => {
    asked.push(`${request.url} ${request.headers['reelgate-proof']}`)
    response.setHeader('Reelgate-Nonce', 'newest')
    if (request.url?.endsWith('/damage')) return void response.end('{}')
    response.statusCode = refusals.shift() ?? 200
    response.end(response.statusCode === 200 ? playlistOf(++exp, third) : '{"code":"proof-stale"}')
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await new Promise((resolve) => server.once('listening', resolve))
  const nonces: (string | null)[] = []
  const signer = { pageId: 'page', sign: async () => 'a proof', takeNonce: (nonce: string | null) => void nonces.push(nonce) }
  const paths = createSegmentPaths(signer, SESSION)
  const playlist = `http://127.0.0.1:${(server.address() as AddressInfo).port}/play/${SESSION}/playlist/2`
  paths.note(playlist, playlistOf(1000, '3.m4s'), performance.now())
  return { paths, asked, nonces, pass: (minutes: number) => vi.advanceTimersByTime(minutes * MINUTE_MS) }
}

test('while its playlist is young a segment’s address stays as it is', async () => {
  const { paths, asked, pass } = await startPlayer()
  pass(54)
  expect(await paths.newest(segment(1000))).toBe(segment(1000))
  expect(asked).toEqual([])
})

test('five minutes before the signature expires the playlist is requested again, and no request waits for it', async () => {
  const { paths, asked, nonces, pass } = await startPlayer()
  pass(56)
  expect(await paths.newest(segment(1000))).toBe(segment(1000))
  expect(await paths.newest(segment(1000, 4))).toBe(segment(1000, 4))
  await paths.renew(segment(1000)) // the one that is under way
  expect(await paths.newest(segment(1000, 5))).toBe(segment(1001, 5))
  expect(asked).toEqual([`/play/${SESSION}/playlist/2 a proof`])
  expect(nonces).toEqual(['newest'])
})

test('after the end a segment waits for its new address', async () => {
  const { paths, pass } = await startPlayer()
  pass(61)
  expect(await paths.newest(segment(1000))).toBe(segment(1001))
  pass(61)
  expect(await paths.newest(segment(1000))).toBe(segment(1002))
})

test('F-47: when the playlist of a segment that is gone cannot be read, that is the reason, and it is read again', async () => {
  const { paths, asked } = await startPlayer({ refusals: [401], third: '3.1.m4s' })
  expect(await paths.replace(segment(1000))).toEqual({ status: 401, retryAfter: null, body: '{"code":"proof-stale"}' })
  expect(await paths.replace(segment(1000))).toBe(true)
  expect(await paths.newest(segment(1000))).toBe(`${base(1001)}/3.1.m4s`)
  expect(asked.filter((request) => request.includes('/playlist/'))).toHaveLength(2)
})

test('F-47: a segment that could not be parsed, and is repaired and gone later, is found under its new address', async () => {
  const { paths, asked } = await startPlayer({ refusals: [503], third: '3.1.m4s' })
  for (let failures = 0; failures < 3; failures++) paths.rereadFor(segment(1000))
  expect(await paths.newest(segment(1000))).toBe(segment(1000)) // it waits for the playlist
  expect(asked).toEqual([`/play/${SESSION}/damage a proof`, `/play/${SESSION}/playlist/2 a proof`])
  expect(await paths.replace(segment(1000))).toBe(true)
})

test('F-202: a segment is loaded from where its playlist names it last: from this server while it is repaired, and the others from the origin', async () => {
  const { paths } = await startPlayer()
  const origin = 'https://cdn.example/bcdn_token=x&token_path=%2Fmedia%2F&expires=7/media/7/y'
  const text = [
    '#EXTM3U',
    `#EXT-X-MAP:URI="${origin}/2/init.mp4"`,
    `${origin}/2/3.m4s`,
    '../../../media/7/y/2/4.m4s',
    `${origin}/2/5.1.m4s`,
  ]
  paths.note(`https://video.example/below/play/${SESSION}/playlist/2`, text.join('\n'), performance.now())
  const newest = await Promise.all(['init.mp4', '3.m4s', '4.m4s', '5.m4s'].map((file) => paths.newest(`${base(1000)}/${file}`)))
  expect(newest).toEqual([
    `${origin}/2/init.mp4`,
    `${origin}/2/3.m4s`,
    'https://video.example/below/media/7/y/2/4.m4s',
    `${origin}/2/5.1.m4s`,
  ])
})

test('F-210: a segment in a bucket is found by its number, whatever its attempt and its signature are called', async () => {
  const { paths } = await startPlayer()
  const inBucket = (number: number, attempt: string, signature: string) =>
    `https://s3.example/my-videos/reelgate/segments/${'0'.repeat(32)}/1/2/${number}.${attempt}.m4s?X-Amz-Date=20260102T030000Z&X-Amz-Signature=${signature}`
  const text = [
    '#EXTM3U',
    '#EXT-X-MAP:URI="../../../media/7/y/2/init.mp4"',
    inBucket(3, 'c0ffee', 'aa'),
    '../../../media/7/y/2/4.1.m4s',
  ]
  paths.note(`https://video.example/play/${SESSION}/playlist/2`, text.join('\n'), performance.now())
  const newest = await Promise.all([inBucket(3, 'dead', 'bb'), inBucket(4, 'dead', 'bb')].map((url) => paths.newest(url)))
  expect(newest).toEqual([inBucket(3, 'c0ffee', 'aa'), 'https://video.example/media/7/y/2/4.1.m4s'])
  expect(await paths.newest('https://video.example/media/6/x/2/init.mp4')).toBe('https://video.example/media/7/y/2/init.mp4')
})

test('F-213: of a segment that another origin does not have, the server is asked to check the file before its playlist is read', async () => {
  const { paths, asked } = await startPlayer({ third: '3.1.m4s' })
  expect(await paths.replace(segment(1000))).toBe(true)
  expect(asked).toEqual([`/play/${SESSION}/damage a proof`, `/play/${SESSION}/playlist/2 a proof`])
})

test('the IV of a segment is made as the protocol’s vectors say, also of a repaired one; an init segment has none', async () => {
  const { paths } = await startPlayer()
  const text = [
    '#EXTM3U',
    '#EXT-X-REELGATE-IV-KEY:9f8dd5427da6b1f4c88ddb7ac8d14d6b',
    '../../../media/7/y/3/init.mp4',
    '../../../media/7/y/3/899.m4s',
  ]
  paths.note(`https://video.example/play/${SESSION}/playlist/3`, text.join('\n'), performance.now())
  paths.note(`https://video.example/play/${SESSION}/playlist/1`, text.join('\n').replaceAll('y/3/', 'y/1/'), performance.now())
  const hexOf = async (file: string) =>
    Buffer.from((await paths.ivOf(`https://video.example/media/7/y/${file}`)) ?? []).toString('hex')
  expect(await hexOf('1/0.m4s')).toBe('23e51ef048b44128473ae33b99527cb0')
  expect(await hexOf('3/899.2.m4s')).toBe('d01392ced0e6d80a1163e7933185f66a')
  expect(await hexOf('3/init.mp4')).toBe('')
})
