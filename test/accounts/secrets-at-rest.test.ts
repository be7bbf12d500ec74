import { openAsBlob } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { readAtRest } from '../at-rest.ts'
import { getContentKey, getMasterKey, getServerPrivateKey, getStoredSource, untilFinished } from '../data-folder.ts'
import { sendRaw } from '../raw-http.ts'
import { type Reelgate, startSharedReelgate } from '../reelgate.ts'
import { makeVideo } from '../videos.ts'

// What a thief of the data folder, or a reader of the log, holds in the hand.

let reelgate: Reelgate & { remove(): Promise<void> }
let startedWith: string
let argumentsFile: string
beforeAll(async () => {
  const recordings = await mkdtemp(join(tmpdir(), 'reelgate-arguments-'))
  argumentsFile = join(recordings, 'started.jsonl')
  const NODE_OPTIONS = `--import=${join(import.meta.dirname, 'record-arguments.ts')}`
  // A process of its own: what is recorded is then what it starts and nothing that the test does.
  reelgate = await startSharedReelgate({
    env: { REELGATE_LOG_LEVEL: 'trace', NODE_OPTIONS, RECORD_ARGUMENTS: argumentsFile },
  })
  startedWith = reelgate.output()
  return () => rm(recordings, { recursive: true, force: true })
})
afterAll(() => reelgate.remove())

/** The ways in which a secret could be written down. */
function formsOf(secret: Buffer): Buffer[] {
  const texts = (['hex', 'base64', 'base64url'] as const).map((encoding) => secret.toString(encoding).replace(/=+$/, ''))
  return [secret, ...[...texts, secret.toString('hex').toUpperCase()].map((text) => Buffer.from(text))]
}

/** Where any form of any of the secrets lies: the name of the secret with the place. */
function findSecrets(locations: ReadonlyMap<string, Buffer>, secrets: Readonly<Record<string, Buffer>>): string[] {
  return Object.entries(secrets).flatMap(([name, secret]) =>
    [...locations]
      .filter(([, bytes]) => formsOf(secret).some((form) => bytes.includes(form)))
      .map(([location]) => `${name} in ${location}`),
  )
}

test('K12, O01: neither data folder nor log holds an API key, an OTP, a session’s keys or what opens them', async () => {
  const owner = await reelgate.newOwner('an owner')
  const videoId = await owner.readyVideo(await makeVideo(), 'A video with a title')
  await untilFinished(reelgate, videoId)

  const otps: string[] = []
  for (let i = 0; i < 100; i++) otps.push(await owner.issueOtp(videoId))
  // An answer that can be asked for again is kept, for a day.
  const keyed = await owner.call('POST', `/api/videos/${videoId}/otp`, { body: {}, headers: { 'Idempotency-Key': 'once' } })
  const { otp: keptOtp } = (await keyed.json()) as { otp: string }
  otps.push(keptOtp)
  const viewer = reelgate.newViewer()
  await viewer.redeem(otps[0] ?? '')
  const windowKey = Buffer.from(await (await viewer.key(0)).arrayBuffer())
  await viewer.redeem(otps[1] ?? '')
  await reelgate.newViewer().redeem(otps[1] ?? '')
  await fetch(`${reelgate.url}/v2/otp?video=${videoId}&clientSecretKey=${owner.apiKey}`, { method: 'POST' })
  await fetch(`${reelgate.url}/api/videos/${owner.apiKey}`, { headers: { Authorization: `Apisecret ${owner.apiKey}` } })

  const secrets = {
    'an API key': Buffer.from(owner.apiKey),
    'the first API key': Buffer.from(reelgate.owner.apiKey),
    'a window key': windowKey,
    'the content key': getContentKey(reelgate, videoId),
    'the source’s key': getStoredSource(reelgate, videoId).seal.key,
    'the master key': getMasterKey(reelgate).bytes,
    ...Object.fromEntries(otps.map((otp, i) => [`OTP ${i}`, Buffer.from(otp)])),
  }
  expect(windowKey).toHaveLength(16)

  const running = await readAtRest(reelgate)
  // The scan sees: a title in the database, and each secret where it is planted.
  expect(findSecrets(running, { title: Buffer.from('A video with a title') })).not.toEqual([])
  for (const form of formsOf(windowKey))
    expect(findSecrets(new Map([['planted', form]]), secrets)).toEqual(['a window key in planted'])

  expect(findSecrets(running, secrets)).toEqual([])
  const log = Buffer.from(reelgate.output().slice(startedWith.length))
  expect(findSecrets(new Map([['log', log]]), secrets)).toEqual([])

  await reelgate.stop()
  expect(findSecrets(await readAtRest(reelgate), secrets)).toEqual([])
  await reelgate.restart()
})

test('O01: a hundred OTPs are all distinct and have no beginning in common', async () => {
  const { videoId } = await reelgate.owner.credentials('A video')
  const otps = await Promise.all(Array.from({ length: 100 }, () => reelgate.owner.issueOtp(videoId)))
  for (const otp of otps) expect(otp).toMatch(/^[A-Za-z0-9]{64}$/)
  // 8 characters are 47 bits: a time or a counter in front would be the same in many of them.
  for (const part of [(otp: string) => otp.slice(0, 8), (otp: string) => otp.slice(-8)])
    expect(new Set(otps.map(part)).size).toBe(100)
  expect(new Set(otps.map((otp) => otp[0])).size).toBeGreaterThan(20)
})

test('L01: of all secrets of a day none is in the log, the folder, a process’s arguments or a refusal, but those the docs admit', async () => {
  const refusals = keepRefusals()
  const owner = await reelgate.newOwner('an owner of a day')
  const startedWith = reelgate.output()
  const upload = await owner.credentials('A video of a day')
  expect((await owner.send(upload, await openAsBlob(await makeVideo({ seconds: 15, rate: 10 })))).status).toBe(201)
  await untilFinished(reelgate, upload.videoId)

  const otps = await Promise.all([1, 2, 3].map(() => owner.issueOtp(upload.videoId, { userId: 'ann', ttl: 300 })))
  const [otp = '', second = ''] = otps
  const viewer = reelgate.newViewer()
  await viewer.redeem(otp)
  const { session, ticket } = viewer.state
  const proofs = [0, 1].map((window) => viewer.proof({ operation: 'key', session, argument: String(window) }))
  const keys: Buffer[] = []
  for (const [window, proof] of proofs.entries())
    keys.push(Buffer.from(await (await viewer.send('GET', `/play/${session}/key/${window}`, proof)).arrayBuffer()))

  // Everything that is refused, with a true secret in each place where a client may put one.
  const { apiKey } = owner
  const stranger = reelgate.newViewer()
  const signature = upload.clientPayload['x-amz-signature'] ?? ''
  await stranger.redeem(otp)
  await viewer.send('GET', `/play/${session}/key/0`, proofs[0])
  await viewer.send('GET', `/play/${session}/key/99999999`, viewer.proof({ operation: 'key', session, argument: '99999999' }))
  await stranger.send('GET', `/play/${session}/playlist/main`, stranger.proof({ operation: 'playlist', session }))
  await owner.send(upload, new Blob(['again']))
  for (const secret of [apiKey, second, session, signature]) {
    const Authorization = `Apisecret ${apiKey}`
    await fetch(`${reelgate.url}/${secret}`)
    await fetch(`${reelgate.url}/api/videos/${secret}?clientSecretKey=${secret}`, { headers: { Authorization } })
    await fetch(`${reelgate.url}/api/videos?limit=${secret}`, { headers: { Authorization } })
    await fetch(`${reelgate.url}/api/videos`, { headers: { Authorization: `Bearer ${secret}` } })
    await fetch(`${reelgate.url}/api/${secret}`, { method: 'PUT', headers: { Authorization } })
    await fetch(`${reelgate.url}/v2/otp?video=${secret}`, {
      method: 'POST',
      body: new URLSearchParams({ clientSecretKey: secret }),
    })
    await fetch(`${reelgate.url}/play/${secret}/key/0?otp=${secret}`, { headers: { 'Reelgate-Proof': secret } })
    await fetch(`${reelgate.url}/play/redeem`, { method: 'POST', body: secret, headers: { 'Content-Type': 'application/json' } })
    await fetch(`${reelgate.url}/upload`, {
      method: 'POST',
      body: secret,
      headers: { 'Content-Type': `multipart/form-data; boundary=${secret}` },
    })
    await fetch(`${reelgate.url}/media/1/${secret.slice(0, 22)}/x/1/1/0.m4s`)
    await sendRaw(reelgate.url, `GET /\u0000${secret} HTTP/9.9`, [`Authorization: ${secret}`]) // what is no HTTP at all
  }
  await reelgate.cli('key', 'revoke', apiKey)

  const source = getStoredSource(reelgate, upload.videoId).seal.key
  const secrets: Record<string, Buffer> = {
    'an API key': Buffer.from(apiKey),
    'the master key': getMasterKey(reelgate).bytes,
    'the content key': getContentKey(reelgate, upload.videoId),
    'the server’s private key': getServerPrivateKey(reelgate),
    'an upload’s signature': Buffer.from(signature),
    'a ticket': Buffer.from(ticket.split('.').at(-1) ?? ''),
    ...Object.fromEntries(otps.map((text, i) => [`OTP ${i}`, Buffer.from(text)])),
    ...Object.fromEntries(keys.map((key, i) => [`window key ${i}`, key])),
    ...Object.fromEntries(proofs.map((proof, i) => [`the tag of proof ${i}`, Buffer.from(proof.split('.').at(-1) ?? '')])),
  }
  const sessionIds = { 'a session’s id': Buffer.from(session) }
  for (const secret of Object.values(secrets)) expect(secret.length).toBeGreaterThanOrEqual(16)

  const started = await readRecordedArguments()
  // docs/security.md admits two: ffmpeg gets the key of the one source it reads, and the database names its sessions.
  expect(findSecrets(started, { 'the source’s key': source })).not.toEqual([])
  expect(findSecrets(started, { ...secrets, ...sessionIds })).toEqual([])

  expect(refusals.size).toBeGreaterThan(30)
  expect(findSecrets(refusals, { ...secrets, ...sessionIds, 'the source’s key': source })).toEqual([])

  const log = () => new Map([['log', Buffer.from(reelgate.output().slice(startedWith.length))]])
  for (const stop of [async () => {}, reelgate.stop]) {
    await stop()
    expect(findSecrets(log(), { ...secrets, ...sessionIds, 'the source’s key': source })).toEqual([])
    const found = findSecrets(await readAtRest(reelgate), { ...secrets, ...sessionIds, 'the source’s key': source })
    expect(found.filter((location) => !/^a session’s id in reelgate\.db(-wal|\/.*)?$/.test(location))).toEqual([])
  }
  await reelgate.restart()
})

/** From now on every refusal that `fetch` gets in this test: its headers and text, by number. */
function keepRefusals(): Map<string, Buffer> {
  const kept = new Map<string, Buffer>()
  const fetching = globalThis.fetch
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (...asked) => {
    const response = await fetching(...asked)
    if (response.status >= 400) {
      const text = `${JSON.stringify([...response.headers])} ${await response.clone().text()}`
      kept.set(`refusal ${kept.size}: ${response.status} ${text}`, Buffer.from(text))
    }
    return response
  })
  onTestFinished(() => void vi.restoreAllMocks())
  return kept
}

/** The arguments and the environment of each process that the server has started until now. */
async function readRecordedArguments(): Promise<Map<string, Buffer>> {
  const lines = (await readFile(argumentsFile, 'utf8')).trimEnd().split('\n')
  return new Map(lines.map((line, i) => [`process ${i}: ${line}`, Buffer.from(line)]))
}
