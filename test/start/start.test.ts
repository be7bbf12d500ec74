import { spawnSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { renderDemoVideo } from '../../src/demo/demo-video.ts'
import { getMasterKey, listFiles } from '../data-folder.ts'
import { openDefaultSandbox } from '../encode/videos.ts'
import { startReelgate } from '../in-process.ts'
import { DATABASE } from '../postgres.ts'
import { startReelgate as startProcess, startSharedReelgate } from '../reelgate.ts'
import { rounds } from '../seeded-random.ts'

/** Tests leave it running, without files of videos. */
let running: Awaited<ReturnType<typeof startSharedReelgate>>
let firstOutput: string
beforeAll(async () => {
  running = await startSharedReelgate()
  firstOutput = running.output()
})
afterAll(() => running.remove())

test('the first start prints an account and its API secret, which works; the second start prints neither', async () => {
  const reelgate = await startProcess()
  const [, accountId, secret] = /account {5}([0-9a-f]{32})\n {2}API secret {2}([A-Za-z0-9]{64})\n/.exec(reelgate.output()) ?? []
  expect(accountId).toBeDefined()
  expect(reelgate.owner.apiKey).toBe(secret)
  expect(await reelgate.owner.list()).toEqual({ count: 0, rows: [] })
  expect(await reelgate.stop()).toBe(0)
  await reelgate.restart()
  expect(reelgate.output()).toContain(`serves ${reelgate.url} `)
  expect(reelgate.output()).not.toMatch(/secret|account|master key|phrase|demo/)
  expect(await reelgate.owner.list()).toEqual({ count: 0, rows: [] })
})

test('I10: a start continues where the first one was killed while it made the database', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-cut-off-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const script = `
    import Sqlite from 'better-sqlite3'
    const database = new Sqlite(process.argv[1])
    database.pragma('cache_size = 1') // so that what is not committed yet is in the file already
    database.exec('create table begun (text); begin')
    for (let row = 0; row < 3000; row++) database.prepare('insert into begun values (?)').run('x'.repeat(900))
    process.kill(process.pid, 'SIGKILL')`
  const database = join(folder, 'reelgate.db')
  const root = join(import.meta.dirname, '../..')
  spawnSync(process.execPath, ['--input-type=module', '-e', script, database], { cwd: root })
  expect((await stat(`${database}-journal`)).size).toBeGreaterThan(0)

  const env = { REELGATE_DATA: folder, REELGATE_MASTER_KEY_FILE: join(folder, 'key') }
  const reelgate = await startReelgate({ database: 'sqlite', env })
  expect(await reelgate.owner.list()).toEqual({ count: 0, rows: [] })
})

test('D07: the master key is made once, next to the data folder, and only the server’s user can read either', async () => {
  expect(firstOutput).toContain(`The master key is in ${running.masterKeyFile}`)
  expect((await stat(running.masterKeyFile)).mode & 0o777).toBe(0o600)
  expect((await stat(running.dataDir)).mode & 0o777).toBe(0o700)
  const key = getMasterKey(running)
  await running.kill()
  await running.restart()
  expect(getMasterKey(running)).toEqual(key)
})

test('the data folder contains what the docs list, and no other user can read it', async () => {
  const files = await listFiles(running)
  expect(files.filter((name) => !/-(wal|shm|journal)$|^tmp\/.|\.reserve$/.test(name))).toEqual([
    'control.sock',
    'files/',
    'lock.db',
    'posters/',
    ...(DATABASE === 'sqlite' ? ['reelgate.db'] : []),
    'reelgate.mark',
    'segments/',
    'sources/',
    'tmp/',
  ])
  expect((await stat(`${running.dataDir}/control.sock`)).mode & 0o777).toBe(0o600)
})

test('/healthz reports a running server, /readyz working database, storage, ffmpeg and free space', async () => {
  const health = await fetch(`${running.url}/healthz`)
  expect([health.status, await health.json()]).toEqual([200, { status: 'ok' }])
  expect(await readiness(running)).toEqual([
    200,
    {
      status: 'ready',
      checks: { database: 'ok', storage: 'ok', space: 'ok', ffmpeg: 'ok', sandbox: expect.stringMatching(/^(ok|low)$/) },
    },
  ])
})

test('F-38: when a folder of files is lost, /readyz names it with 503 and /healthz still returns 200; when it is back both are 200', async () => {
  const reelgate = await startReelgate()
  await rename(`${reelgate.dataDir}/segments`, `${reelgate.dataDir}/elsewhere`)
  await expect
    .poll(() => readiness(reelgate))
    .toMatchObject([503, { status: 'not ready', checks: { database: 'ok', storage: 'failed', ffmpeg: 'ok' } }])
  expect((await fetch(`${reelgate.url}/healthz`)).status).toBe(200)
  await rename(`${reelgate.dataDir}/elsewhere`, `${reelgate.dataDir}/segments`)
  await expect.poll(async () => (await readiness(reelgate))[0]).toBe(200)
})

test('F-48: /readyz starts no program, so that a load balancer never waits for one', async () => {
  const tools = await mkdtemp(join(tmpdir(), 'reelgate-tools-'))
  onTestFinished(() => rm(tools, { recursive: true }))
  const started = join(tools, 'started')
  await mkdir(started)
  const script = `#!/bin/sh\n: > '${started}'/$$\nexec /usr/bin/bwrap "$@"\n` // an empty file: it may write nothing
  await writeFile(join(tools, 'bwrap'), script, { mode: 0o755 })
  const reelgate = await startReelgate({ env: { PATH: [tools, process.env.PATH].join(delimiter), REELGATE_SANDBOX: 'weak' } })
  const atStart = await readdir(started)
  for (let calls = 0; calls < 20; calls++) expect((await readiness(reelgate))[0]).toBe(200)
  expect(atStart.length).toBeGreaterThan(0)
  expect(await readdir(started)).toEqual(atStart)
})

test('I10: a start after kill -9 needs no manual work: stale socket, lock and unfinished files do not matter', async () => {
  const videoId = (await running.owner.credentials('A video')).videoId
  await running.kill()
  await running.restart()
  expect((await running.owner.video(videoId)).status).toBe('PRE-Upload')
  expect((await running.cli('account', 'list')).code).toBe(0)
})

test('F-09: a server that is stopped as soon as it listens exits with 0', async () => {
  const reelgate = await startProcess()
  expect(await reelgate.stop()).toBe(0)
  for (let round = 0; round < rounds(1, 3); round++) {
    await reelgate.restart()
    expect(await reelgate.stop()).toBe(0)
  }
})

test('the master key may come from the environment; then no file is made', async () => {
  const key = 'ab'.repeat(32)
  const reelgate = await startReelgate({ env: { REELGATE_MASTER_KEY: key } })
  await expect(readFile(reelgate.masterKeyFile)).rejects.toThrow('ENOENT')
  expect(reelgate.output()).not.toContain(key)
  // Who keeps the key elsewhere has a copy already; and a phrase would put it into the log of the start.
  expect(reelgate.output()).toContain('You store it yourself, so no recovery phrase is shown.')
  expect(reelgate.output()).not.toMatch(/^ +1 [a-z]+/m)
})

test('the master key may be stored elsewhere, and a key created before the first start is used', async () => {
  const first = await startReelgate()
  const elsewhere = `${first.dataDir}-elsewhere.key`
  await first.stop()
  await rename(first.masterKeyFile, elsewhere)
  const key = await readFile(elsewhere, 'utf8')
  const second = await startReelgate({ env: { REELGATE_MASTER_KEY_FILE: elsewhere } })
  expect(second.output()).toContain(`The master key is in ${elsewhere}`)
  expect(await readFile(elsewhere, 'utf8')).toBe(key)
  await rm(elsewhere)
})

test('in a data folder that other users may enter they still cannot read anything', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-open-'))
  await chmod(folder, 0o755)
  const reelgate = await startProcess({ env: { REELGATE_DATA: folder } })
  onTestFinished(async () => {
    await rm(folder, { recursive: true })
    await rm(`${folder}.key`)
  })
  await reelgate.owner.send(await reelgate.owner.credentials('A video'), new Blob(['This is no video.']))
  const files = await listFiles({ dataDir: folder, masterKeyFile: '' })
  expect(files.length).toBeGreaterThan(8)
  for (const file of files) expect({ file, others: (await stat(join(folder, file))).mode & 0o077 }).toEqual({ file, others: 0 })
})

test('F-09: a demo video that is cancelled before anything reads it ends nothing else', async () => {
  const video = renderDemoVideo(await openDefaultSandbox(), AbortSignal.abort())
  await new Promise((resolve) => video.once('close', resolve))
  expect(video.errored).toMatchObject({ name: 'AbortError' })
})

async function readiness({ url }: { url: string }): Promise<unknown[]> {
  const response = await fetch(`${url}/readyz`)
  return [response.status, await response.json()]
}
