import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import * as apart from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { sampledTests } from '../sample.ts'
import { makeVideo } from '../videos.ts'
import { bytesOf, readMediaPlaylist, readRenditions, sendFrom, type Viewer } from '../viewer.ts'

// What viewers received, counted by them, against what the owner sees.

// Each test has a server of its own, with a video of which nothing has been counted: its copy costs less than another encode.
let reelgate: Reelgate & { remove(): Promise<void> }
let video: string
beforeEach(async () => {
  reelgate = await startSharedReelgate({ video: await makeSource() })
  video = reelgate.videoId
})
afterEach(() => reelgate.remove())

const makeSource = () => makeVideo({ seconds: 15, rate: 10 })

async function watching(videoId: string, userId?: string, { newViewer, owner }: Reelgate = reelgate): Promise<Viewer> {
  const viewer = newViewer()
  expect((await viewer.redeem(await owner.issueOtp(videoId, { userId }))).playing).toBe(true)
  return viewer
}

/** The addresses of the video's smallest rendition, init segment first. */
async function addressesOf(viewer: Viewer): Promise<string[]> {
  const [rendition] = readRenditions(await viewer.playlist('main'))
  const { init, segments } = readMediaPlaylist(await viewer.playlist(rendition?.uri ?? ''))
  const base = `${viewer.url}/play/${viewer.state.session}/playlist/`
  return [init, ...segments.map(({ uri }) => uri)].map((uri) => new URL(uri, base).href)
}

type Row = { user_id: string; sent_bytes: number; view_count: number }
const rowsOf = (videoId: string) =>
  readRows<Row>(reelgate, 'select user_id, sent_bytes, view_count from video_usage where video_id = ? order by 1', videoId)
/** Bytes by label. */
const sentOf = (videoId: string) => Object.fromEntries(rowsOf(videoId).map(({ user_id, sent_bytes }) => [user_id, sent_bytes]))
/** Counts are written down every five seconds. */
const written = { interval: 250 }

async function v2Video(videoId: string, { url, owner }: Reelgate = reelgate): Promise<{ viewCount: number }> {
  const body = new URLSearchParams({ clientSecretKey: owner.apiKey })
  return (await fetch(`${url}/v2/video?id=${videoId}`, { method: 'POST', body })).json() as Promise<{
    viewCount: number
  }>
}

const csvOf = (date: unknown, owner = reelgate.owner) => owner.call('POST', '/api/account/video-usage', { body: { date } })
const today = () => new Date().toISOString().slice(0, 10)

test('what a viewer received is what is counted for their label, ranges and repetitions too', async () => {
  const viewer = await watching(video, 'ann')
  const addresses = await addressesOf(viewer)
  let received = 0
  for (const address of [...addresses, ...addresses]) received += (await bytesOf(address)).length
  for (const range of ['bytes=0-99', 'bytes=-7', 'bytes=50-']) {
    const part = await fetch(addresses.at(-1) ?? '', { headers: { Range: range } })
    expect(part.status).toBe(206)
    received += (await part.arrayBuffer()).byteLength
  }
  const refused = await fetch(addresses.at(-1)?.replace(/media\/\d+/, 'media/99') ?? '')
  expect([refused.status, (await refused.arrayBuffer()).byteLength > 0]).toEqual([403, true])
  expect((await fetch(addresses.at(-1) ?? '', { headers: { Range: 'bytes=999999999-' } })).status).toBe(416)
  await expect.poll(() => sentOf(video), written).toEqual({ ann: received })
})

test('bytes go to the label that watches from their address; where two do, in halves; where none does, to none', async () => {
  const [ann, ben, carl] = [await watching(video, 'ann'), await watching(video, 'ben'), await watching(video, 'carl')]
  const address = (await addressesOf(ann)).at(-1) ?? ''
  await ben.playlist('main')
  const proof = carl.proof({ operation: 'playlist', session: carl.state.session, argument: 'main' })
  const asked = await sendFrom('127.0.0.3', `${reelgate.url}/play/${carl.state.session}/playlist/main`, {
    'Reelgate-Proof': proof,
  })
  expect(asked.status).toBe(200)
  const size = (await bytesOf(address)).length
  for (const location of ['127.0.0.3', '127.0.0.4']) expect((await sendFrom(location, address, {})).bytes).toHaveLength(size)
  const half = Math.floor(size / 2)
  await expect.poll(() => sentOf(video), written).toEqual({ ann: size - half, ben: half, carl: size, '': size })
})

describe('a view', () => {
  const { test, draw } = sampledTests('views', 1)

  test('is a session that was given a key: once, however many keys, reloads and restarts', async () => {
    await watching(video, 'came-and-went')
    const viewer = await watching(video, 'ann')
    for (const window of [0, 0]) expect((await viewer.key(window)).status).toBe(200)
    viewer.newPage()
    expect((await viewer.reopen()).playing).toBe(true)
    expect((await viewer.key(0)).status).toBe(200)
    await expect.poll(async () => (await v2Video(video)).viewCount, written).toBe(1)
    await reelgate.stop()
    await reelgate.restart()
    await viewer.key(0) // tells a new nonce
    expect((await viewer.key(0)).status).toBe(200)
    expect((await (await watching(video)).key(0)).status).toBe(200)
    await expect.poll(async () => (await v2Video(video)).viewCount, written).toBe(2)
    expect(rowsOf(video).map(({ user_id, view_count }) => [user_id, view_count])).toEqual([
      ['', 1],
      ['ann', 1],
    ])
    const body = new URLSearchParams({ clientSecretKey: reelgate.owner.apiKey })
    const listed = await fetch(`${reelgate.url}/v2/videos?search[id]=${video}`, { method: 'POST', body })
    expect(await listed.json()).toMatchObject([{ id: video, viewCount: 2 }])
  })

  test('that a crash took is counted with the session’s next key', async () => {
    const crashing = await apart.startReelgate({ video: await makeSource() })
    const viewer = await watching(crashing.videoId, undefined, crashing)
    expect((await viewer.key(0)).status).toBe(200)
    await crashing.kill()
    await crashing.restart()
    await viewer.key(0) // tells a new nonce
    expect((await viewer.key(0)).status).toBe(200)
    await expect.poll(async () => (await v2Video(crashing.videoId, crashing)).viewCount, written).toBe(1)
  })

  test('is no change that a list must be read again for', async () => {
    const { owner } = reelgate
    const before = (await owner.call('GET', '/api/videos')).headers.get('ETag')
    expect((await (await watching(video)).key(0)).status).toBe(200)
    await expect.poll(async () => (await v2Video(video)).viewCount, written).toBe(1)
    expect((await owner.call('GET', '/api/videos')).headers.get('ETag')).toBe(before)
  })

  draw()
})

test('what was downloaded of a video’s files is counted for no label, ranges as ranges', async () => {
  const files = await reelgate.owner.call('GET', `/api/videos/${video}/files`)
  const original = ((await files.json()) as { id: number; type: string; size: number }[]).find(({ type }) => type === 'original')
  const answer = await reelgate.owner.call('GET', `/api/videos/${video}/files/${original?.id}`)
  const { redirect } = (await answer.json()) as { redirect: string }
  expect((await (await fetch(redirect)).arrayBuffer()).byteLength).toBe(original?.size)
  expect((await fetch(redirect, { headers: { Range: 'bytes=10-29' } })).status).toBe(206)
  expect((await fetch(redirect, { method: 'HEAD' })).status).toBe(200)
  await expect.poll(() => sentOf(video), written).toEqual({ '': (original?.size ?? 0) + 20 })
})

test('what was sent of a video just before it was deleted is counted', async () => {
  const viewer = await watching(video, 'ann')
  let received = 0
  for (const address of await addressesOf(viewer)) received += (await bytesOf(address)).length
  await reelgate.owner.delete([video])
  await expect.poll(() => readRows(reelgate, 'select 1 from video where id = ?', video)).toEqual([])
  expect(sentOf(video)).toEqual({ ann: received })
})

test('a server that is stopped has written down every byte', async () => {
  const viewer = await watching(video, 'ann')
  let received = 0
  for (const address of await addressesOf(viewer)) received += (await bytesOf(address)).length
  await reelgate.stop()
  expect(sentOf(video)).toEqual({ ann: received })
  await reelgate.restart()
})

describe('the CSV of a day', () => {
  test('has each video’s kilobytes, rounded up, also of one that was deleted since, and shows another account nothing', async () => {
    const other = await reelgate.owner.readyVideo(await makeVideo())
    for (const address of await addressesOf(await watching(other, 'ben'))) await bytesOf(address)
    await expect.poll(() => sentOf(other), written).toEqual({ ben: expect.any(Number) })
    const [address = ''] = (await addressesOf(await watching(video, 'ann'))).slice(-1)
    const size = (await bytesOf(address)).length
    for (const location of ['127.0.0.5', '127.0.0.5']) await sendFrom(location, address, {})
    await expect.poll(() => Object.values(sentOf(video)).reduce((a, b) => a + b, 0), written).toBe(3 * size)
    await reelgate.owner.delete([video])
    await expect.poll(() => readRows(reelgate, 'select 1 from video where id = ?', video)).toEqual([])
    expect(readRows(reelgate, 'select 1 from view_total where video_id = ?', video)).toEqual([])

    const answer = await csvOf(today())
    expect([answer.status, answer.headers.get('Content-Type')]).toEqual([200, 'text/csv; charset=utf-8'])
    const [header, ...lines] = (await answer.text()).trimEnd().split('\r\n')
    expect(header).toBe('video,bandwidth')
    expect(lines).toContain(`${video},${Math.ceil((3 * size) / 1000)}`)
    const kept = readRows<{ video_id: string; sent: number }>(
      reelgate,
      'select video_id, sum(sent_bytes) as sent from video_usage group by 1 having sum(sent_bytes) > 0',
    )
    expect(lines.toSorted()).toEqual(kept.map(({ video_id, sent }) => `${video_id},${Math.ceil(sent / 1000)}`).toSorted())
    expect(lines).toHaveLength(2)
    expect(await (await csvOf(today(), await reelgate.newOwner('Ben'))).text()).toBe('video,bandwidth\r\n')
  })

  const NO_DAYS = [
    '2026-02-30',
    '2025-02-29',
    '26-02-01',
    '2026-2-1',
    'today',
    '',
    20260201,
    null,
    undefined,
    '2026-02-01T00:00',
    '+2026-02-01',
  ]

  test('is its header alone for a day without views, and refused for what is no day', async () => {
    expect(await (await csvOf('2020-02-29')).text()).toBe('video,bandwidth\r\n')
    for (const date of NO_DAYS) expect([date, (await csvOf(date)).status]).toEqual([date, 400])
  })
})
