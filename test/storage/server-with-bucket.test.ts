import { openAsBlob } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { expect, onTestFinished, test } from 'vitest'
import { readBody } from '../../src/storage/s3/objects.ts'
import { uploadForm } from '../client.ts'
import { untilFinished } from '../data-folder.ts'
import { startReelgate, startSharedReelgate } from '../in-process.ts'
import { type Location, makeLocation } from '../installation-folder.ts'
import { downloadVideo } from '../pipeline/videos.ts'
import { startFaultProxy } from '../s3/fault-proxy.ts'
import { bucketEnvironment, contentsOf, storeEndpoint } from '../s3.ts'
import { isLong } from '../seeded-random.ts'
import { makeLargeVideo, makeVideo } from '../videos.ts'
import { readRenditions } from '../viewer.ts'

// A server whose files are in a bucket: from the upload to the deletion.

test('a video is uploaded, encoded, played and deleted with its files in a bucket, and none of them is on the disk', async () => {
  const { env, bucket } = await bucketEnvironment()
  const reelgate = await startReelgate({ env: { ...env, REELGATE_DEMO: 'off' } })
  const { owner } = reelgate
  const videoId = await owner.upload('A video', await makeVideo())
  await untilFinished(reelgate, videoId)
  expect(await owner.video(videoId)).toMatchObject({ status: 'ready' })
  const { objects, uploads } = await contentsOf(bucket)
  for (const kind of ['sources', 'segments', 'posters'])
    expect(objects.filter((name) => name.startsWith(`${kind}/${videoId}/`)).length).toBeGreaterThan(0)
  expect(uploads).toEqual([])
  const local = await readdir(reelgate.dataDir)
  expect(local.filter((name) => ['sources', 'segments', 'posters', 'files'].includes(name))).toEqual([])

  const viewer = reelgate.newViewer()
  expect(await viewer.redeem(await owner.issueOtp(videoId))).toMatchObject({ playing: true })
  for (const { segments } of await downloadVideo(reelgate, videoId)) expect(segments.length).toBeGreaterThan(0)
  const [poster] = (await owner.video(videoId)).posters
  expect((await fetch(poster?.posterUrl ?? '')).status).toBe(200)

  await reelgate.stop()
  await reelgate.restart()
  expect((await reelgate.owner.video(videoId)).status).toBe('ready')
  await owner.delete([videoId])
  await expect.poll(async () => (await contentsOf(bucket)).objects.sort()).toEqual(['check', 'reelgate'])
})

test('F-261: a source that is larger than the cache is encoded without a copy, in blocks out of the bucket', async () => {
  const proxy = await startFaultProxy(await storeEndpoint())
  const { env } = await bucketEnvironment(proxy.endpoint)
  const ranges: string[] = []
  proxy.fault = ({ method, path, headers }) => {
    if (method === 'GET' && path.includes('/sources/') && headers.range) ranges.push(headers.range)
    return false
  }
  const reelgate = await startReelgate({ env: { ...env, REELGATE_DEMO: 'off', REELGATE_CACHE_SIZE: '1MB' } })
  const { owner } = reelgate
  const { videoId, ...issued } = await owner.credentials('A video')
  const video = await makeLargeVideo({ seconds: 5 })
  expect((await owner.send({ videoId, ...issued }, new Blob([video]))).status).toBe(201)
  await untilFinished(reelgate, videoId)
  expect(await owner.video(videoId)).toMatchObject({ status: 'ready' })
  const sizes = ranges.map((range) => range.match(/\d+/g)?.map(Number) ?? []).map(([first = 0, last = 0]) => last + 1 - first)
  expect([sizes.length > 0, Math.max(...sizes)]).toEqual([true, 2 ** 20])
})

test('F-195: while the bucket does not answer uploads get 503 with Retry-After, encodes wait, and both continue afterwards', async () => {
  const proxy = await startFaultProxy(await storeEndpoint())
  const { env } = await bucketEnvironment(proxy.endpoint)
  const reelgate = await startReelgate({ env: { ...env, REELGATE_DEMO: 'off', REELGATE_METRICS_PORT: '0' } })
  const { owner } = reelgate
  const path = await makeVideo()
  const played = await owner.upload('A video to watch', path)
  await untilFinished(reelgate, played)
  const issued = await owner.credentials('Before')
  const videoId = await owner.upload('A video', path)
  await proxy.stop()
  const refused = await fetch(issued.clientPayload.uploadLink, {
    method: 'POST',
    body: uploadForm(issued, await openAsBlob(path), 'video.mp4'),
  })
  expect([refused.status, Number(refused.headers.get('Retry-After')) > 0]).toEqual([503, true])
  await expect.poll(() => storageOf(reelgate.url)).toEqual([200, 'away'])
  expect(await readBucketUp(reelgate.output())).toBe('0')
  const { code, stdout } = await reelgate.cli('doctor', '--json')
  expect(code).toBe(1)
  expect(JSON.parse(stdout)).toContainEqual({
    check: 'bucket',
    state: 'trouble',
    says: expect.stringContaining('does not answer'),
  })
  // What a CDN or a browser has, plays.
  const viewer = reelgate.newViewer()
  expect(await viewer.redeem(await owner.issueOtp(played))).toMatchObject({ playing: true })
  const [rendition] = readRenditions(await viewer.playlist('main'))
  const [segment = ''] = (await viewer.playlist(rendition?.uri ?? '')).match(/^[^#\n].*$/m) ?? []
  expect((await viewer.key(0)).status).toBe(200)
  const missing = await fetch(new URL(segment, `${reelgate.url}/play/x/playlist/`))
  expect([missing.status, Number(missing.headers.get('Retry-After')) > 0]).toEqual([503, true])
  await proxy.listen()
  await untilFinished(reelgate, videoId)
  expect(await owner.video(videoId)).toMatchObject({ status: 'ready' })
  expect((await owner.send(issued, await openAsBlob(path))).status).toBe(201)
  await expect.poll(() => storageOf(reelgate.url)).toEqual([200, 'ok'])
})

if (isLong)
  test('F-236: a server whose bucket is silent for more than 30 s answers 503, encodes wait, and all continues', async () => {
    const proxy = await startFaultProxy(await storeEndpoint())
    const { env } = await bucketEnvironment(proxy.endpoint)
    const reelgate = await startReelgate({ env: { ...env, REELGATE_DEMO: 'off' } })
    const { owner } = reelgate
    const file = await openAsBlob(await makeVideo())
    const videoId = await owner.upload('A video', await makeVideo())
    const { promise: end, resolve } = Promise.withResolvers<boolean>()
    proxy.fault = () => end
    const issued = await owner.credentials('Meanwhile')
    const begunMs = performance.now()
    const sent = await fetch(issued.clientPayload.uploadLink, { method: 'POST', body: uploadForm(issued, file, 'video.mp4') })
    expect([sent.status, Number(sent.headers.get('Retry-After')) > 0]).toEqual([503, true])
    expect(performance.now() - begunMs).toBeLessThan(60_000)
    await expect.poll(() => storageOf(reelgate.url)).toEqual([200, 'away'])
    proxy.fault = undefined
    resolve(true)
    await untilFinished(reelgate, videoId)
    expect((await owner.video(videoId)).status).toBe('ready')
    expect((await owner.send(issued, file)).status).toBe(201)
  })

test('F-241: a server that starts while its bucket is away serves lists and playlists, and asks nothing of a bucket with another id', async () => {
  const proxy = await startFaultProxy(await storeEndpoint())
  const { env, bucket } = await bucketEnvironment(proxy.endpoint)
  const reelgate = await startReelgate({ env: { ...env, REELGATE_DEMO: 'off' } })
  const { owner } = reelgate
  const videoId = await owner.upload('A video', await makeVideo({ seconds: 1 }))
  await untilFinished(reelgate, videoId)
  await reelgate.stop()
  const marker = { key: `${bucket.address.prefix}reelgate` }
  const id = await bucket.ask({ method: 'GET', ...marker }, readBody)
  await proxy.stop()
  await reelgate.restart()
  expect((await owner.video(videoId)).status).toBe('ready')
  const viewer = reelgate.newViewer()
  expect(await viewer.redeem(await owner.issueOtp(videoId))).toMatchObject({ playing: true })
  expect(await storageOf(reelgate.url)).toEqual([200, 'away'])
  await bucket.send({ method: 'PUT', ...marker, body: Buffer.from('another\n') })
  const before = proxy.requests().length
  await proxy.listen()
  await expect.poll(() => proxy.requests().slice(before)).toContainEqual(expect.stringMatching(/^GET .*reelgate$/))
  expect((await fetch((await owner.video(videoId)).posters[0]?.posterUrl ?? '')).status).toBe(503)
  expect(
    proxy
      .requests()
      .slice(before)
      .every((request) => /^GET .*\/reelgate$/.test(request)),
  ).toBe(true)
  await bucket.send({ method: 'PUT', ...marker, body: id })
  await expect.poll(() => storageOf(reelgate.url)).toEqual([200, 'ok'])
  expect((await fetch((await owner.video(videoId)).posters[0]?.posterUrl ?? '')).status).toBe(200)
})

test('F-196: a start refuses a bucket of another installation, one without its files, and the folder instead of its bucket', async () => {
  const [{ env }, other] = [await bucketEnvironment(), await bucketEnvironment()]
  const [first, second] = [await makeLocation(), await makeLocation()]
  onTestFinished(async () => {
    for (const location of [first, second]) await location.remove()
  })
  const start = (location: Location, more: Record<string, string> = {}) =>
    startSharedReelgate({ location, env: { REELGATE_DEMO: 'off', ...more } })
  for (const [location, more] of [[first, env] as const, [second, {}] as const]) {
    const reelgate = await start(location, more)
    await reelgate.owner.credentials('A video')
    await reelgate.stop()
  }
  await expect(start(second, env)).rejects.toThrow('belong to another installation')
  await expect(start(first, other.env)).rejects.toThrow('are not below s3://')
  await expect(start(first)).rejects.toThrow('Set REELGATE_STORAGE_URL to it')
})

test('doctor checks a bucket and its rules', async () => {
  const { env } = await bucketEnvironment()
  const reelgate = await startReelgate({ env: { ...env, REELGATE_DEMO: 'off' } })
  const { stdout } = await reelgate.cli('doctor', '--json')
  expect(JSON.parse(stdout)).toContainEqual(expect.objectContaining({ check: 'bucket', state: 'ok' }))
  expect(JSON.parse(stdout)).toContainEqual(expect.objectContaining({ check: 'bucket rules', state: 'warning' }))
})

test('F-265: doctor does not judge a bucket that is configured while the files are in the data folder', async () => {
  const { env } = await bucketEnvironment()
  const reelgate = await startReelgate({ video: await makeVideo({ seconds: 1 }), env, storage: 'folder' })
  const checks: { check: string; says: string }[] = JSON.parse((await reelgate.cli('doctor', '--json')).stdout)
  expect(checks.filter(({ check }) => ['bucket rules', 'segments'].includes(check))).toEqual([
    expect.objectContaining({ check: 'bucket rules', state: 'ok', says: 'Files are in the data folder.' }),
  ])
})

/** The value of `reelgate_bucket_up`. */
async function readBucketUp(output: string): Promise<string | undefined> {
  const url = /"url":"(http:[^"]+\/metrics)","msg":"metrics: served"/.exec(output)?.[1] ?? ''
  return /^reelgate_bucket_up (\d)/m.exec(await (await fetch(url)).text())?.[1]
}

async function storageOf(url: string): Promise<[number, string]> {
  const response = await fetch(`${url}/readyz`)
  const { checks }: { checks: { storage: string } } = JSON.parse(await response.text())
  return [response.status, checks.storage]
}
