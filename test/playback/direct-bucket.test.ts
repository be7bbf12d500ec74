import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { AwsV4Signer } from 'aws4fetch'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import type { Bucket } from '../../src/storage/s3/bucket.ts'
import { readBody } from '../../src/storage/s3/objects.ts'
import { presignerOf } from '../../src/storage/s3/presign.ts'
import { listSegments, markUnfinished, untilFinished } from '../data-folder.ts'
import { readSteps } from '../docs/steps.ts'
import { findFreePort } from '../free-port.ts'
import { type Reelgate, startReelgate, startSharedReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'
import { startFaultProxy } from '../s3/fault-proxy.ts'
import { bucketEnvironment, contentsOf, storeEndpoint } from '../s3.ts'
import { sampleOf } from '../sample.ts'
import { newChance } from '../seeded-random.ts'
import { makeVideo } from '../videos.ts'
import { bytesOf, readMediaPlaylist, type Viewer } from '../viewer.ts'

// Segments straight from a bucket: one server whose players may load them, set up by the steps of docs/operations.md.

const EXISTING_RULE =
  '<CORSRule><ID>of another program</ID><AllowedOrigin>https://other.example</AllowedOrigin><AllowedMethod>PUT</AllowedMethod><MaxAgeSeconds>17</MaxAgeSeconds></CORSRule>'

let reelgate: Reelgate & { remove(): Promise<void> }
let bucket: Bucket
let otherId: string
beforeAll(async () => {
  const { env, bucket: own } = await bucketEnvironment()
  bucket = own
  await putCors(bucket, EXISTING_RULE)
  const [settings] = (await readSteps('Files in a bucket')).flatMap(({ lines }) => lines ?? [])
  const text = settings?.text ?? expect.fail()
  const port = String(await findFreePort())
  const documented = Object.fromEntries(text.split('\n').flatMap((line) => (line ? [line.split(/=(.*)/s)] : [])))
  expect(Object.keys(documented)).toEqual(expect.arrayContaining([...Object.keys(env), 'REELGATE_PUBLIC_URL']))
  reelgate = await startSharedReelgate({
    env: { ...documented, ...env, PORT: port, REELGATE_PUBLIC_URL: `http://127.0.0.1:${port}`, REELGATE_DEMO: 'off' },
  })
  const file = await makeVideo({ seconds: 9, dark: true })
  reelgate.videoId = await reelgate.owner.readyVideo(file)
  otherId = await reelgate.owner.readyVideo(file, 'Another')
  for (const id of [reelgate.videoId, otherId]) await untilFinished(reelgate, id)
})
afterAll(() => reelgate?.remove())

async function putCors(to: Bucket, rules: string): Promise<void> {
  const body = Buffer.from(`<CORSConfiguration>${rules}</CORSConfiguration>`)
  const headers = { 'content-md5': createHash('md5').update(body).digest('base64') }
  await to.send({ method: 'PUT', query: { cors: '' }, headers, body })
}

const readCors = async (of: Bucket) =>
  (await of.ask({ method: 'GET', query: { cors: '' } }, readBody)).toString().match(/<CORSRule>.*?<\/CORSRule>/gs) ?? []

async function newViewer(of: Reelgate = reelgate, videoId = of.videoId): Promise<Viewer> {
  const viewer = of.newViewer()
  await viewer.redeem(await of.owner.issueOtp(videoId))
  return viewer
}

/** The addresses of a rendition's segments, in order. */
async function addressesOf(viewer: Viewer, rendition = '1'): Promise<string[]> {
  const { segments } = readMediaPlaylist(await viewer.playlist(rendition))
  return segments.map(({ uri }) => new URL(uri, `${viewer.url}/play/x/playlist/`).href)
}

const isInBucket = (address: string) => address.startsWith(`${bucket.address.endpoint}/`) && address.includes('X-Amz-Signature=')

test('F-210: the playlists of a finished video name presigned addresses of the bucket, and all of it plays from there', async () => {
  const viewer = await newViewer()
  const addresses = await addressesOf(viewer)
  expect(addresses.filter((address) => !isInBucket(address))).toEqual([])
  for (const rendition of ['1', '2'])
    for (const segment of (await viewer.download(rendition)).segments) expect(segment.includes('moof')).toBe(true)
  const response = await fetch(addresses[0] ?? '', { headers: { Origin: reelgate.url } })
  expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([200, reelgate.url])
  expect(response.headers.get('cache-control')).toContain('immutable')
})

test('F-210: all viewers of an hour have the same addresses, which are those of aws4fetch and end within two hours', async () => {
  const [one, two] = await Promise.all([newViewer(), newViewer()])
  const [ours, others] = await Promise.all([addressesOf(one), addressesOf(two)])
  expect(ours.map(withoutHour)).toEqual(others.map(withoutHour))
  const url = new URL(ours[0] ?? '')
  const [, year, month, day, hour, rest] =
    /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d{4})Z$/.exec(url.searchParams.get('X-Amz-Date') ?? '') ?? []
  const endsMs = Date.parse(`${year}-${month}-${day}T${hour}:00:00Z`) + Number(url.searchParams.get('X-Amz-Expires')) * 1000
  expect([rest, endsMs - Date.now() > 3_500_000, endsMs - Date.now() <= 7_200_000]).toEqual(['0000', true, true])

  const { credentials, ...address } = bucket.address
  for (const sessionToken of [undefined, 'a/session+token='])
    for (const key of ['reelgate/segments/a/1/1/0.0123456789ab.m4s', "it's (a) key!*/ä"]) {
      const own = { ...credentials, sessionToken }
      const wallNowS = Date.UTC(2026, 0, 2, 3, 59) / 1000
      const signer = new AwsV4Signer({
        ...{ url: `${address.endpoint}/${address.bucket}/${encodeURI(key)}?X-Amz-Expires=7200`, service: 's3', signQuery: true },
        ...{ accessKeyId: own.accessKeyId, secretAccessKey: own.secretAccessKey, region: address.region },
        ...(sessionToken === undefined ? {} : { sessionToken }),
        datetime: '20260102T030000Z',
      })
      const signature = (href: string) => new URL(href).searchParams.get('X-Amz-Signature')
      const made = presignerOf({ ...address, credentials: own }, wallNowS)(key)
      expect(signature(made)).toBe(signature((await signer.sign()).url.href))
    }
})

const withoutHour = (address: string) => address.replace(/X-Amz-Date=.*$/, '')

test('F-210: until a video is finished its playlists name this server, which waits and answers 307 to the bucket; every segment plays meanwhile', async () => {
  const { owner } = reelgate
  const videoId = await owner.readyVideo(await makeVideo({ seconds: 20, dark: true }), 'New')
  const playing = await newViewer(reelgate, videoId)
  for (const segment of (await playing.download('1')).segments) expect(segment.includes('moof')).toBe(true)
  await untilFinished(reelgate, videoId)
  await owner.delete([videoId])

  const finish = markUnfinished(reelgate, otherId)
  const viewer = await newViewer(reelgate, otherId)
  const addresses = await addressesOf(viewer)
  finish()
  for (const [number, address] of addresses.entries()) {
    expect(address.startsWith(`${reelgate.url}/media/`)).toBe(true)
    const { status, headers } = await fetch(address, { redirect: 'manual' })
    const location = headers.get('location') ?? ''
    expect([status, headers.get('cache-control'), isInBucket(location)]).toEqual([307, 'no-store', true])
    const sql = 'select sha256 from segment where video_id = ? and rendition_id = 1 and number = ?'
    const [row] = readRows<{ sha256: Buffer }>(reelgate, sql, otherId, number)
    expect(
      createHash('sha256')
        .update(await bytesOf(location))
        .digest(),
    ).toEqual(row?.sha256)
  }
})

test('F-212: the rule for the public address was added next to those that the bucket had, and once', async () => {
  await reelgate.stop()
  await reelgate.restart()
  const rules = await readCors(bucket)
  expect(rules).toHaveLength(2)
  expect(rules.filter((rule) => rule.includes('https://other.example') && rule.includes('<MaxAgeSeconds>17<'))).toHaveLength(1)
  const [own = ''] = rules.filter((rule) => rule.includes(`<AllowedOrigin>${reelgate.url}</AllowedOrigin>`))
  expect([...own.matchAll(/<AllowedMethod>(\w+)</g)].map(([, method]) => method).sort()).toEqual(['GET', 'HEAD'])
  expect(own).toContain('<ExposeHeader>Retry-After</ExposeHeader>')
})

test('after the steps of docs/operations.md the doctor finds the bucket, and that players may load from it', async () => {
  const commands = (await readSteps('Files in a bucket')).flatMap((step) => step.commands)
  expect(commands).toEqual(['systemctl restart reelgate', 'reelgate doctor'])
  const checks: { check: string; state: string }[] = JSON.parse((await reelgate.cli('doctor', '--json')).stdout)
  for (const check of ['bucket', 'segments']) expect(checks).toContainEqual(expect.objectContaining({ check, state: 'ok' }))
})

test('F-212: the page of the player may load from the bucket, and from nowhere else', async () => {
  const policy = (await fetch(`${reelgate.url}/player/`)).headers.get('content-security-policy')
  expect(policy).toContain(`connect-src 'self' ${bucket.address.endpoint};`)
})

test('F-212: a server that may not add the rule sends segments itself, raises an alert with the rule to set, and says so in doctor; once the rule is there, it does not', async () => {
  const proxy = await startFaultProxy(await storeEndpoint())
  proxy.fault = ({ method, path, reply }) => {
    if (method !== 'PUT' || !path.includes('?cors')) return false
    reply.writeHead(403).end('<Error><Code>AccessDenied</Code></Error>')
    return true
  }
  const { env, bucket: own } = await bucketEnvironment(proxy.endpoint)
  const port = String(await findFreePort())
  const there = await startReelgate({
    env: { ...env, PORT: port, REELGATE_PUBLIC_URL: `http://127.0.0.1:${port}`, REELGATE_DEMO: 'off' },
  })
  there.videoId = await there.owner.readyVideo(await makeVideo())
  await untilFinished(there, there.videoId)
  await there.stop()
  await there.restart() // an alert needs an account, which the first start made later
  const [first = ''] = await addressesOf(await newViewer(there))
  expect(first).toContain(`${there.url}/media/`)
  expect((await fetch(first, { redirect: 'manual' })).status).toBe(200)
  type Listed = { rows: { numbers: { reason: string; rule: string } }[] }
  const alerts: Listed = JSON.parse(await (await there.owner.call('GET', '/api/alerts?cause=bucket-not-direct')).text())
  expect(alerts.rows).toHaveLength(1)
  const { reason = '', rule = '{}' } = alerts.rows[0]?.numbers ?? {}
  expect(reason).toContain(`no CORS rule for ${there.url}`)
  expect(JSON.parse(rule)).toMatchObject({ AllowedOrigins: [there.url], AllowedMethods: ['GET', 'HEAD'] })
  const examine = async () => {
    const checks: { check: string; state: string; says: string }[] = JSON.parse((await there.cli('doctor', '--json')).stdout)
    return checks.find(({ check }) => check === 'segments')
  }
  expect(await examine()).toMatchObject({ state: 'warning', says: expect.stringContaining('AllowedOrigins') })

  await putCors(
    own,
    [...(await readCors(own)), `<CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod></CORSRule>`].join(
      '',
    ),
  )
  expect(await examine()).toMatchObject({ state: 'ok' })
  await there.stop()
  await there.restart()
  expect((await addressesOf(await newViewer(there)))[0]).toContain(`${proxy.endpoint}/`)
})

test('players load from the bucket where viewers have one address, and neither a CDN nor REELGATE_MEDIA_DELIVERY=server is set', () => {
  const env = { REELGATE_STORAGE_URL: 's3://my-videos/reelgate', AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret' }
  const direct = (more: Record<string, string>) => readConfig({ ...env, ...more }).directPlayers
  const publicUrl = { REELGATE_PUBLIC_URL: 'https://video.example.org/below', REELGATE_TRUSTED_PROXIES: '127.0.0.1' }
  expect(direct({})).toBe(undefined)
  const players = direct(publicUrl)
  expect(players?.origin).toBe('https://video.example.org')
  expect(players?.findProblem('https://s3.example.org')).toBe(undefined)
  expect(players?.findProblem('http://minio:9000')).toContain('not https')
  expect(players?.findProblem('https://127.0.0.1:9000')).toContain('this machine alone')
  expect(direct({ ...publicUrl, REELGATE_MEDIA_URL: 'https://media.example.org' })).toBe(undefined)
  expect(direct({ ...publicUrl, REELGATE_MEDIA_DELIVERY: 'server' })).toBe(undefined)
})

/** A request of exactly this path: `fetch` would resolve its dots. */
async function askUnchanged(method: string, address: string): Promise<{ status: number | undefined; bytes: Buffer }> {
  const [, host = '', port = '', path = ''] = /^http:\/\/(.*):(\d+)(\/.*)$/.exec(address) ?? []
  const asked = request({ method, host, port, path }).end()
  const [response] = await once(asked, 'response')
  return { status: response.statusCode, bytes: Buffer.concat(await response.toArray()) }
}

test('X61: the bucket gives no byte for an address that is changed, has ended or is of another video, and none of its objects has a clear byte or a key', async () => {
  const viewer = await newViewer()
  const valid = await addressesOf(viewer)
  const key = Buffer.from(await (await viewer.key(0)).arrayBuffer())
  const { prefix } = bucket.address
  const stored = new Map<string, Buffer>()
  for (const name of (await contentsOf(bucket)).objects)
    stored.set(name, await bucket.ask({ method: 'GET', key: prefix + name }, readBody))
  for (const bytes of stored.values()) for (const clear of ['moof', 'ftyp', key]) expect(bytes.includes(clear)).toBe(false)

  const chance = newChance('addresses of a bucket')
  const { next } = chance
  const pick = <T>(from: readonly T[]): T => from[Math.floor(next() * from.length)] ?? expect.fail()
  const otherFiles = [...stored.keys()].filter((name) => !valid.some((address) => address.includes(`/${name}?`)))
  const endedAt = () => presignerOf(bucket.address, Date.now() / 1000 - 7200 - Math.floor(next() * 10) * 3600)
  const strangers = presignerOf(
    { ...bucket.address, credentials: { ...bucket.address.credentials, secretAccessKey: 'of another' } },
    Date.now() / 1000,
  )
  const changes: ((address: string) => [string, string])[] = [
    (address) => {
      const at = address.length - 1 - Math.floor(next() * 64)
      return ['GET', address.slice(0, at) + (address[at] === '0' ? '1' : '0') + address.slice(at + 1)]
    },
    (address) => ['GET', address.slice(0, address.length - 1 - Math.floor(next() * 64))],
    (address) => ['GET', address.replace(/X-Amz-Signature=.*/, '')],
    (address) => ['GET', address.replace(/\?.*/, '')],
    (address) => ['GET', address.replace(/\/segments\/.*\?/, `/${pick(otherFiles)}?`)],
    (address) => ['GET', address.replace(/\?/, `/../../../../../../${pick(otherFiles)}?`)],
    (address) => ['GET', address.replace(/\?/, `%2f..%2f..%2f..%2f${pick(otherFiles)}?`)],
    (address) => ['GET', address.replace(/(X-Amz-Expires=)\d+/, `$1${pick([86_400, 604_800, 7201, -1, 1e12])}`)],
    (address) => ['GET', address.replace(/(X-Amz-Date=\d{8}T)\d\d/, `$1${pick(['23', '00', '99'])}`)],
    (address) => ['GET', address.replace(/(X-Amz-Credential=)\w+/, `$1${pick(['other', ''])}`)],
    (address) => ['GET', `${address}&response-content-type=text%2Fhtml`],
    (address) => ['GET', address.replace('?', `?${pick(['acl', 'cors', 'policy', 'tagging', 'versionId=null'])}&`)],
    (address) => ['GET', address.replace(/(\/tests-\w+)\/.*\?/, `$1?${pick(['', 'list-type=2&', 'uploads&', 'versions&'])}`)],
    (address) => [pick(['HEAD', 'PUT', 'DELETE', 'POST']), address],
    () => ['GET', endedAt()(`${prefix}${pick([...stored.keys()])}`)],
    () => ['GET', strangers(`${prefix}${pick([...stored.keys()])}`)],
  ]
  const tries = Array.from({ length: 5000 }, () => pick(changes)(pick(valid)))
  const given: string[] = []
  for (const [method, address] of sampleOf('addresses of a bucket', tries, 300)) {
    if (valid.includes(address) && method === 'GET') continue // of this hour as it happens
    const { status = 0, bytes } = await askUnchanged(method, address)
    if (status < 400 || [...stored.values()].some((sealed) => sealed.length > 16 && bytes.includes(sealed.subarray(0, 16))))
      given.push(`${method} ${address}: ${status}`)
  }
  expect(given).toEqual([])
  expect((await contentsOf(bucket)).objects.sort()).toEqual([...stored.keys()].sort())
})

test('F-213: a segment whose object is missing or damaged is loaded from this server while it is repaired, and then from the bucket under another address', async () => {
  const viewer = await newViewer()
  const file = () =>
    listSegments(reelgate, reelgate.videoId).find((row) => row.rendition_id === 1 && row.number === 1)?.file ?? expect.fail()
  const key = `${bucket.address.prefix}segments/${file()}`
  const published = await bucket.ask({ method: 'GET', key }, readBody)
  const [, before = ''] = await addressesOf(viewer)
  await bucket.send({ method: 'DELETE', key })
  expect((await fetch(before)).status).toBe(404)
  const report = await viewer.call('damage', undefined, JSON.stringify({ rendition: 1, segment: 1 }))
  expect(report.status).toBe(200)
  let [, address = ''] = await addressesOf(viewer)
  while (!isInBucket(address)) {
    expect(address).toContain(`${reelgate.url}/media/`)
    expect([307, 503]).toContain((await fetch(address, { redirect: 'manual' })).status)
    await pause(20)
    address = (await addressesOf(viewer))[1] ?? ''
  }
  expect(address).not.toBe(before)
  expect(await bytesOf(address)).toEqual(published)
})

test('F-214: what the bucket sends is counted by the keys of sessions for a finished video, and by the segments that are named here until then', async () => {
  const videoId = await reelgate.owner.readyVideo(await makeVideo({ seconds: 9, dark: true }), 'Counted')
  await untilFinished(reelgate, videoId)
  const readSent = () =>
    Number(
      readRows<{ sent: number }>(reelgate, 'select sum(sent_bytes) as sent from video_usage where video_id = ?', videoId)[0]
        ?.sent ?? 0,
    )
  const finish = markUnfinished(reelgate, videoId)
  const early = await newViewer(reelgate, videoId)
  const [first = ''] = await addressesOf(early)
  await bytesOf(first)
  await early.key(0)
  const segments = listSegments(reelgate, videoId)
  const sizeOf = (id: number) => segments.reduce((sum, row) => sum + (row.rendition_id === id ? row.size_bytes : 0), 0)
  const firstBytes = segments.find((row) => row.rendition_id === 1 && row.number === 0)?.size_bytes ?? 0
  await expect.poll(readSent).toBe(firstBytes)

  finish()
  const viewer = await newViewer(reelgate, videoId)
  for (const address of await addressesOf(viewer)) await bytesOf(address)
  expect((await viewer.key(0)).status).toBe(200)
  const kinds = readRows<{ id: number; kind: string }>(reelgate, 'select id, kind from rendition where video_id = ?', videoId)
  const of = (kind: string) => kinds.flatMap((row) => (row.kind === kind ? [sizeOf(row.id)] : []))
  await expect.poll(readSent).toBe(firstBytes + Math.max(...of('video')) + of('audio').reduce((sum, size) => sum + size, 0))
})
