import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { getContentKey, getMasterKey, getStoredSource, untilFinished } from '../data-folder.ts'
import { makeFilm } from '../films.ts'
import { type Reelgate, startSharedReelgate } from '../reelgate.ts'

// What a thief of the data folder, or a reader of the log, holds in the hand.

let reelgate: Reelgate & { remove(): Promise<void> }
let startedWith: string
beforeAll(async () => {
  reelgate = await startSharedReelgate({ env: { REELGATE_LOG_LEVEL: 'trace' } })
  startedWith = reelgate.output()
})
afterAll(() => reelgate.remove())

/** The ways in which a secret could be written down. */
function formsOf(secret: Buffer): Buffer[] {
  const texts = (['hex', 'base64', 'base64url'] as const).map((encoding) => secret.toString(encoding).replace(/=+$/, ''))
  return [secret, ...[...texts, secret.toString('hex').toUpperCase()].map((text) => Buffer.from(text))]
}

async function filesOf(folder: string): Promise<Map<string, Buffer>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return new Map(await Promise.all(files.map(async (path): Promise<[string, Buffer]> => [path, await readFile(path)])))
}

/** Where any form of any of the secrets lies: the name of the secret with the place. */
function findSecrets(places: ReadonlyMap<string, Buffer>, secrets: Readonly<Record<string, Buffer>>): string[] {
  return Object.entries(secrets).flatMap(([name, secret]) =>
    [...places]
      .filter(([, bytes]) => formsOf(secret).some((form) => bytes.includes(form)))
      .map(([place]) => `${name} in ${place}`),
  )
}

test('K12, O01: neither data folder nor log holds an API key, an OTP, a session’s keys or what opens them', async () => {
  const owner = await reelgate.newOwner('an owner')
  const videoId = await owner.readyVideo(await makeFilm(), 'A film with a title')
  await untilFinished(reelgate, videoId)

  const otps: string[] = []
  for (let i = 0; i < 100; i++) otps.push(await owner.issueOtp(videoId))
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

  const running = await filesOf(reelgate.dataDir)
  // The scan sees: a title in the database, and each secret where it is planted.
  expect(findSecrets(running, { title: Buffer.from('A film with a title') })).not.toEqual([])
  for (const form of formsOf(windowKey))
    expect(findSecrets(new Map([['planted', form]]), secrets)).toEqual(['a window key in planted'])

  expect(findSecrets(running, secrets)).toEqual([])
  const log = Buffer.from(reelgate.output().slice(startedWith.length))
  expect(findSecrets(new Map([['log', log]]), secrets)).toEqual([])

  await reelgate.stop()
  expect(findSecrets(await filesOf(reelgate.dataDir), secrets)).toEqual([])
  await reelgate.restart()
})

test('O01: a hundred OTPs are all distinct and have no beginning in common', async () => {
  const { videoId } = await reelgate.owner.credentials('A film')
  const otps = await Promise.all(Array.from({ length: 100 }, () => reelgate.owner.issueOtp(videoId)))
  for (const otp of otps) expect(otp).toMatch(/^[A-Za-z0-9]{64}$/)
  // 8 characters are 47 bits: a time or a counter in front would be the same in many of them.
  for (const part of [(otp: string) => otp.slice(0, 8), (otp: string) => otp.slice(-8)])
    expect(new Set(otps.map(part)).size).toBe(100)
  expect(new Set(otps.map((otp) => otp[0])).size).toBeGreaterThan(20)
})
