import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { open, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { parseMasterKey } from '../../src/crypto/master-key.ts'
import { keyFromPhrase, phraseFromKey } from '../../src/crypto/recovery-phrase.ts'
import { addFile, SRT } from '../assets/sample-files.ts'
import { getMasterKey, type Installed, untilFinished } from '../data-folder.ts'
import { type Reelgate, startReelgate, startSharedReelgate } from '../in-process.ts'
import { type Location, makeLocation } from '../installation-folder.ts'
import { addDub, audibleIn, near } from '../pipeline/dubs.ts'
import { play } from '../pipeline/replaced.ts'
import { goldenWith, runCli, startReelgate as startProcess } from '../reelgate.ts'
import { restore } from '../restore-key.ts'
import { changeRows, readRows } from '../rows.ts'
import { isLong } from '../seeded-random.ts'
import { makeVideo } from '../videos.ts'
import { bytesOf, readMediaPlaylist, readRenditions } from '../viewer.ts'
import { addVideoKeys, expectOnlyCurrentOpens, masterKeysOf } from './secrets.ts'

// `reelgate key rotate-master`, with a running server and without one, and with a key that its owner stores.

/** Has no secrets. */
let stopped: Awaited<ReturnType<typeof startSharedReelgate>>
beforeAll(async () => {
  stopped = await startSharedReelgate()
  await stopped.stop()
})
afterAll(() => stopped.remove())

async function newCopy(copyOf: Installed): Promise<Location> {
  const location = await makeLocation({ copyOf })
  onTestFinished(location.remove)
  return location
}

test('T-27: with a running server: a viewer plays on, the new phrase restores the new key, and the old key opens nothing', async () => {
  const reelgate = await startReelgate({ video: await makeVideo(), env: { REELGATE_OUTBOUND_ALLOW: '127.0.0.1:9' } })
  const { owner, videoId } = reelgate
  const old = getMasterKey(reelgate)
  const oldPhrase = phraseFromKey(old).join(' ')
  await addFile(owner, videoId, SRT, 'en')
  await untilFinished(reelgate, videoId)
  const dubId = await addDub(reelgate)
  const webhook = await owner.call('POST', '/api/hooks', { body: { value: 'http://127.0.0.1:9/', status: 0 } })
  const form = await owner.credentials('Uploaded after the rotation')
  const viewer = reelgate.newViewer()
  await viewer.redeem(await owner.issueOtp(videoId))
  const playlist = readMediaPlaylist(await viewer.playlist(await videoRendition(viewer)))
  const segment = () =>
    bytesOf(new URL(playlist.segments[0]?.uri ?? '', `${reelgate.url}/play/${viewer.state.session}/playlist/`).href)
  const before = await segment()

  const rotated = JSON.parse((await reelgate.cli('key', 'rotate-master', '--json')).stdout)
  const current = getMasterKey(reelgate)
  expect(rotated).toMatchObject({ masterKeyId: current.id.toString('hex'), unreadable: 0, removeOldKeyFrom: null })
  expect(rotated.rewrapped).toBeGreaterThanOrEqual(3)
  expect(keyFromPhrase(rotated.phrase).bytes).toEqual(current.bytes)
  expect(current.bytes).not.toEqual(old.bytes)
  expect(masterKeysOf(reelgate)).toEqual({ ids: [rotated.masterKeyId], inFile: [rotated.masterKeyId] })
  expect((await stat(reelgate.masterKeyFile)).mode & 0o777).toBe(0o600)
  expectOnlyCurrentOpens(reelgate, [old])
  expect(readRows(reelgate, `select actor, subject from audit_event where kind = 'master-key:rotated'`)).toEqual([
    { actor: 'command-line', subject: rotated.masterKeyId },
  ])

  // What was open before continues, and new things work.
  expect((await viewer.key(0)).status).toBe(200)
  expect(await segment()).toEqual(before)
  expect((await reelgate.newViewer().redeem(await owner.issueOtp(videoId))).playing).toBe(true)
  expect(webhook.status).toBe(200)

  await reelgate.stop()
  expect(await restore(reelgate, oldPhrase)).toMatchObject({ code: 1, stderr: expect.stringMatching(/another installation/) })
  await rm(reelgate.masterKeyFile)
  expect(await restore(reelgate, rotated.phrase)).toMatchObject({ code: 0 })
  await reelgate.restart()
  expect(await segment()).toEqual(before) // its path was signed with the old key
  expect((await owner.call('PUT', `/api/videos/${videoId}/trim`, { body: { startS: 0.4, endS: 3 } })).status).toBe(200)
  await expect.poll(async () => (await owner.video(videoId)).replacement).toBeUndefined()
  expect((await audibleIn(await play(reelgate), dubId)).fromS).toEqual(near(0.6)) // of its own file again
  await owner.send(form, new Blob([await readFile(await makeVideo())]))
  await untilFinished(reelgate, form.videoId)
  expect((await reelgate.newViewer().redeem(await owner.issueOtp(form.videoId))).playing).toBe(true)
  expectOnlyCurrentOpens(reelgate, [old])
  await reelgate.stop()
  await writeFile(reelgate.masterKeyFile, `${old.bytes.toString('hex')}\n`, { mode: 0o600 })
  expect(await runCli(['serve'], { ...reelgate.env, PORT: '0' })).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/This master key does not belong to this data folder/),
  })
})

test('without a server: the phrase is printed once, a second rotation works like the first, and damaged values are counted', async () => {
  const golden = await goldenWith(await makeVideo())
  const location = await newCopy(golden)
  await addVideoKeys(location, 1200)
  const damaged = changeRows(
    location,
    `update generation set wrapped_content_key = ? where plan = '{}' and video_id < '1'`,
    Buffer.alloc(64),
  )
  const first = getMasterKey(location)
  const { code, stdout } = await runCli(['key', 'rotate-master'], location.env)
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: expect.stringMatching(/is in use\. \d+ secrets[\s\S]*shown only this once[\s\S]*^ +1 [a-z]+/m),
  })
  expect(stdout).toContain(`${damaged} values could not be opened: they are damaged`)
  const second = getMasterKey(location)
  changeRows(location, `delete from generation where wrapped_content_key = ?`, Buffer.alloc(64))
  expectOnlyCurrentOpens(location, [first])
  expect(await runCli(['key', 'rotate-master'], location.env)).toMatchObject({ code: 0 })
  expect(expectOnlyCurrentOpens(location, [first, second])).toBeGreaterThan(2000)
  const reelgate = await startReelgate({ location, copyOf: golden })
  expect((await reelgate.newViewer().redeem(await reelgate.owner.issueOtp(reelgate.videoId))).playing).toBe(true)
})

test('under systemd, whose journal keeps the output, no phrase is printed', async () => {
  const location = await newCopy(stopped)
  const path = join(location.dataDir, '..', 'journal')
  await using journal = await open(path, 'w')
  const { dev, ino } = await journal.stat()
  const main = join(import.meta.dirname, '../../bin/main.js')
  const child = spawn(process.execPath, [main, 'key', 'rotate-master'], {
    env: { PATH: process.env.PATH ?? '', ...location.env, JOURNAL_STREAM: `${dev}:${ino}` },
    stdio: ['ignore', journal.fd, 'inherit'],
  })
  expect(await once(child, 'exit')).toEqual([0, null])
  const kept = await readFile(path, 'utf8')
  expect(kept).toMatch(/has no secrets[\s\S]*key phrase/)
  for (const word of phraseFromKey(getMasterKey(location))) expect(kept).not.toMatch(new RegExp(`\\d ${word}\\b`))
})

test('a key that its owner stores is rotated by a start with both, and then needs the new one alone', async () => {
  const golden = await goldenWith(await makeVideo())
  const location = await newCopy(golden)
  const old = getMasterKey(location)
  const next = parseMasterKey(Buffer.alloc(32, 7))
  const [oldHex, nextHex] = [old, next].map(({ bytes }) => bytes.toString('hex'))
  const withKeys = (REELGATE_MASTER_KEY: string) => ({ ...location.env, REELGATE_MASTER_KEY })
  expect(await runCli(['key', 'rotate-master'], withKeys(`${oldHex}`))).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/the one of REELGATE_MASTER_KEY, so Reelgate cannot replace it\. Put a new one/),
  })
  const doctor = async (keys: string) => (await runCli(['doctor'], withKeys(keys))).stdout
  expect(await doctor(`${nextHex},${oldHex}`)).toMatch(/A rotation is not finished/)
  const rotated = await runCli(['key', 'rotate-master', '--json'], withKeys(`${nextHex},${oldHex}`))
  expect(JSON.parse(rotated.stdout)).toMatchObject({ phrase: null, removeOldKeyFrom: 'REELGATE_MASTER_KEY' })
  expect(await doctor(`${nextHex},${oldHex}`)).toMatch(/REELGATE_MASTER_KEY has an older key, too, and nothing needs it/)
  expect(await runCli(['serve'], { ...withKeys(`${oldHex}`), PORT: '0' })).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/does not belong/),
  })
  await writeFile(location.masterKeyFile, `${nextHex}\n`)
  expectOnlyCurrentOpens(location, [old])
  const reelgate = await startReelgate({ location, copyOf: golden })
  expect((await reelgate.newViewer().redeem(await reelgate.owner.issueOtp(reelgate.videoId))).playing).toBe(true)
})

test('an interrupted rotation needs both keys: one alone is refused in words, and both phrases restore the file', async () => {
  const location = await newCopy(stopped)
  const old = getMasterKey(location)
  const next = parseMasterKey(Buffer.alloc(32, 9))
  const [oldHex, nextHex] = [old, next].map(({ bytes }) => bytes.toString('hex'))
  const ids = `${next.id.toString('hex')} ${old.id.toString('hex')}`
  changeRows(location, `update setting set value = ? where name = 'master-key-id'`, ids)
  expect(await runCli(['serve'], { ...location.env, PORT: '0' })).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/A rotation of the master key is not finished, so both keys are needed/),
  })
  await writeFile(location.masterKeyFile, `${nextHex}\n${oldHex}\n`)
  expect(await runCli(['backup', `${location.dataDir}-backup`], location.env)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/The master key is being rotated.*Make the backup when that is finished/),
  })
  const { phrase: nextPhrase } = JSON.parse((await runCli(['key', 'phrase', '--json'], location.env)).stdout)
  await rm(location.masterKeyFile)
  expect(await restore(location, phraseFromKey(old).join(' '))).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/run this again with its recovery phrase/),
  })
  expect(await restore(location, nextPhrase)).toMatchObject({ code: 0, stdout: expect.not.stringMatching(/run this again/) })
  expect(await readFile(location.masterKeyFile, 'utf8')).toBe(`${nextHex}\n${oldHex}\n`)
  expect(await runCli(['key', 'rotate-master'], location.env)).toMatchObject({ code: 0 })
  expect(masterKeysOf({ ...location })).toEqual({ ids: [ids.split(' ')[0]], inFile: [ids.split(' ')[0]] })
})

test('what is wrapped during a rotation is wrapped by the new key: nothing is lost, and every key is released', async () => {
  const receivers = '127.0.0.1:9'
  const golden = await goldenWith(await makeVideo())
  const location = await newCopy(golden)
  await addVideoKeys(location, isLong ? 100_000 : 2_000)
  const reelgate = await startProcess({ location, copyOf: golden, env: { REELGATE_OUTBOUND_ALLOW: receivers } })
  const { owner, videoId } = reelgate
  const old = getMasterKey(reelgate)
  const ok = async (response: Promise<Response>) => expect([200, 201]).toContain((await response).status)
  const clients: (() => Promise<unknown>)[] = [
    () => ok(owner.call('POST', '/api/hooks', { body: { value: `http://${receivers}/`, status: 0 } })),
    () => ok(addFile(owner, videoId, SRT, 'en')),
    () => ok(owner.call('PUT', '/api/videos?title=Once', { headers: { 'Idempotency-Key': randomUUID() } })),
    async () => {
      const upload = await owner.credentials('Uploaded meanwhile')
      await ok(owner.send(upload, new Blob(['no video'])))
    },
    async () => {
      const viewer = reelgate.newViewer()
      await viewer.redeem(await owner.issueOtp(videoId))
      await ok(viewer.key(0))
    },
  ]
  let isRotating = true
  let calls = 0
  const working = clients.map(async (call, index) => {
    // An account may have 20 webhooks.
    for (let round = 0; round < (index === 0 ? 15 : Number.POSITIVE_INFINITY) && (isRotating || round === 0); round++, calls++)
      await call()
  })
  const began = performance.now()
  const rotated = await reelgate.cli('key', 'rotate-master', '--json')
  const seconds = (performance.now() - began) / 1000
  isRotating = false
  await Promise.all(working)
  expect(rotated.code).toBe(0)
  process.stderr.write(`${JSON.parse(rotated.stdout).rewrapped} secrets in ${seconds.toFixed(1)} s, ${calls} calls meanwhile\n`)
  expectOnlyCurrentOpens(reelgate, [old])
  await reelgate.stop()
  await reelgate.restart()
  await clients.at(-1)?.()
}, 600_000)

async function videoRendition(viewer: ReturnType<Reelgate['newViewer']>): Promise<string> {
  return readRenditions(await viewer.playlist('main'))[0]?.uri ?? ''
}
