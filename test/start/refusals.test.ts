import { execFile } from 'node:child_process'
import { chmod, cp, mkdir, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import SqliteDatabase from 'better-sqlite3'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { readConfig, unknownVariables } from '../../src/config.ts'
import { openSandbox } from '../../src/encode/sandbox.ts'
import { Failure } from '../../src/errors.ts'
import { listFiles } from '../data-folder.ts'
import { makePlace } from '../place.ts'
import { runCli, startReelgate, startSharedReelgate } from '../reelgate.ts'

// A refused start is one sentence on stderr that says what to do, exit code 1, and leaves everything as it was.

let original: Awaited<ReturnType<typeof startSharedReelgate>>
beforeAll(async () => {
  original = await startSharedReelgate()
  const { owner } = original
  const upload = await owner.credentials('A film')
  await owner.send(upload, new Blob(['This is no film.']))
  await owner.until(upload.videoId, 'Not a media file')
  await original.stop()
})
afterAll(() => original.remove())

test('F-39: without its master key an installation does not start, and no new key is made', async () => {
  const { dataDir, start } = await newInstallation()
  await rm(`${dataDir}.key`)
  expect(await start()).toRefuse(/The master key .*data\.key is missing.*Put the key file back/)
  expect(await start()).toRefuse(/missing/)
})

test('F-37: a database of an older version that waits for its key is not changed, and that version still reads it', async () => {
  const dataDir = join(await newFolder(), 'data')
  await mkdir(dataDir)
  const path = join(dataDir, 'reelgate.db')
  const older = new SqliteDatabase(path)
  older.exec(
    "create table setting (name text primary key, value text not null); insert into setting values ('master-key-id', 'ab')",
  )
  older.close()
  const before = await readFile(path)
  expect(await serve({ REELGATE_DATA: dataDir })).toRefuse(/The master key .*data\.key is missing, and .*reelgate\.db needs it/)
  expect(await readFile(path)).toEqual(before)
})

test('F-39: without its key and with a damaged database it is the damage that is told, and no new key is made', async () => {
  const { dataDir, start } = await newInstallation()
  await rm(`${dataDir}.key`)
  await writeFile(join(dataDir, 'reelgate.db'), 'not a database')
  expect(await start()).toRefuse(/The database .*reelgate\.db cannot be opened: it is damaged/)
  await expect(readFile(`${dataDir}.key`)).rejects.toThrow('ENOENT')
})

test('F-39: with another installation’s master key it does not start', async () => {
  const { dataDir, start } = await newInstallation()
  await writeFile(`${dataDir}.key`, '0'.repeat(64), { mode: 0o600 })
  expect(await start()).toRefuse(/master key is not the one of this data folder/)
  expect(await start({ REELGATE_MASTER_KEY: '1'.repeat(64) })).toRefuse(/master key is not the one of this data folder/)
})

test.each([
  { file: 'empty', text: '' },
  { file: 'too short', text: 'abc123' },
  { file: 'something else', text: '-----BEGIN PRIVATE KEY-----' },
])('F-39: a master key file that is $file is refused by name', async ({ text }) => {
  const { dataDir, start } = await newInstallation()
  await writeFile(`${dataDir}.key`, text)
  expect(await start()).toRefuse(/data\.key does not hold a master key.*Put the right file back/)
})

test.each([
  { others: 'its group', mode: 0o640 },
  { others: 'everybody', mode: 0o604 },
])('D07: a master key that $others may read is refused, with the command that closes it', async ({ mode }) => {
  const { dataDir, start } = await newInstallation()
  await chmod(`${dataDir}.key`, mode)
  expect(await start()).toRefuse(/Other users may read the master key .*data\.key. Run chmod 600 on it/)
  await chmod(`${dataDir}.key`, 0o600)
})

test('F-17: when the database is gone and films are there, no new one is made', async () => {
  const { dataDir, start } = await newInstallation()
  for (const suffix of ['', '-wal', '-shm']) await rm(join(dataDir, `reelgate.db${suffix}`), { force: true })
  expect(await start()).toRefuse(/There are films in .*sources but no database .*Restore it from a backup/)
  expect(await listFiles({ dataDir, masterKeyFile: '' })).not.toContain('reelgate.db')
  expect(await runCli(['account', 'create', 'owner'], { REELGATE_DATA: dataDir })).toRefuse(/no database/)
})

test('F-17: an installation whose database is gone is never begun anew, films or none', async () => {
  const { dataDir, start } = await newInstallation()
  for (const name of ['reelgate.db', 'sources', 'segments', 'posters']) await rm(join(dataDir, name), { recursive: true })
  expect(await start()).toRefuse(/The database .*reelgate\.db is missing. Restore it from a backup/)
  expect(await listFiles({ dataDir, masterKeyFile: '' })).not.toContain('reelgate.db')
})

test('F-17: a database whose log was deleted is refused, for its last commits were in it; so is an old copy; both can be taken all the same', async () => {
  const folder = await newFolder()
  const reelgate = await startReelgate({ within: folder })
  const { dataDir, owner } = reelgate
  await owner.credentials('in the log')
  await reelgate.kill()
  await cp(join(dataDir, 'reelgate.db-wal'), join(folder, 'kept'))
  await rm(join(dataDir, 'reelgate.db-wal'))
  await rm(join(dataDir, 'reelgate.db-shm'), { force: true })
  const older =
    /The database .*reelgate\.db is older than its data folder: its log reelgate\.db-wal is missing, or it is an old copy/
  expect(await serve({ REELGATE_DATA: dataDir })).toRefuse(older)
  expect(await runCli(['account', 'list'], { REELGATE_DATA: dataDir })).toRefuse(older)
  await cp(join(folder, 'kept'), join(dataDir, 'reelgate.db-wal'))
  await reelgate.restart()
  expect((await owner.list()).rows.map(({ title }) => title)).toEqual(['in the log'])
  await reelgate.stop()
  await cp(join(dataDir, 'reelgate.db'), join(folder, 'old copy'))
  await reelgate.restart()
  await owner.credentials('later')
  await reelgate.stop()
  await cp(join(folder, 'old copy'), join(dataDir, 'reelgate.db'))
  expect(await serve({ REELGATE_DATA: dataDir })).toRefuse(older)
  await rm(join(dataDir, 'reelgate.mark'))
  await reelgate.restart()
  expect((await owner.list()).count).toBe(1)
})

test('F-17: a database that cannot be written is refused by name, and stays as it was', async () => {
  const { dataDir, start } = await newInstallation()
  const database = join(dataDir, 'reelgate.db')
  const before = await readFile(database)
  await promisify(execFile)('chattr', ['+i', database])
  try {
    expect(await start()).toRefuse(/The database .*reelgate\.db cannot be opened: it is damaged or not writable/)
  } finally {
    await promisify(execFile)('chattr', ['-i', database])
  }
  expect(await readFile(database)).toEqual(before)
})

test('F-17: damage in a database too large to be checked before it serves is found soon, and then nothing is written any more', async () => {
  const { dataDir } = await newInstallation()
  const database = new SqliteDatabase(join(dataDir, 'reelgate.db'))
  database.exec('create table ballast (bytes blob)')
  database.prepare('insert into ballast values (zeroblob(?))').run(70 * 2 ** 20)
  database.exec('create table broken (text)')
  database.close()
  await damageLastPage(join(dataDir, 'reelgate.db'))
  const reelgate = await startReelgate({ env: { REELGATE_DATA: dataDir } }).catch(String)
  if (typeof reelgate === 'string') {
    // Found before it served.
    expect(reelgate).toContain('The database is damaged: nothing was changed. Stop Reelgate and restore it from a backup.')
    return
  }
  await expect.poll(() => reelgate.output()).toContain('the database is damaged: nothing is written any more')
  const { stdout } = await reelgate.cli('account', 'list', '--json') // reads go on
  expect(JSON.parse(stdout)).toHaveLength(1)
  expect(await reelgate.cli('account', 'create', 'x')).toRefuse(/The database is damaged: nothing was changed/)
  const ready = await fetch(`${reelgate.url}/readyz`)
  expect([ready.status, await ready.json()]).toMatchObject([503, { checks: { database: 'failed' } }])
})

test.each([
  { damaged: 'in its header', at: 0 },
  { damaged: 'on its first page', at: 100 },
  { damaged: 'on a page in its middle', at: 20 * 4096 },
])('F-17: a database that is damaged $damaged is refused by name', async ({ at }) => {
  const { dataDir, start } = await newInstallation()
  const file = await open(join(dataDir, 'reelgate.db'), 'r+')
  await file.write(Buffer.alloc(3000, 0xa5), 0, undefined, at)
  await file.close()
  expect(await start()).toRefuse(/The database .*reelgate\.db cannot be opened: it is damaged.*Restore it from a backup/)
})

test('F-37: a database of a newer version is refused by that version’s name', async () => {
  const { dataDir, start } = await newInstallation()
  const database = new SqliteDatabase(join(dataDir, 'reelgate.db'))
  database.prepare('insert into kysely_migration values (?, ?)').run('0099-later', new Date().toISOString())
  database.close()
  expect(await start()).toRefuse(/newer version of Reelgate \(it has step 0099-later\). Start that version/)
})

test('F-40: a second server on one data folder is refused, whatever its port', async () => {
  const first = await startSharedReelgate()
  onTestFinished(() => first.remove())
  expect(await serve({ REELGATE_DATA: first.dataDir })).toRefuse(
    /Another Reelgate server runs on .*data. Stop it first, or set REELGATE_DATA/,
  )
  expect((await fetch(`${first.url}/healthz`)).status).toBe(200)
})

test('F-40: a port in use is refused by its number', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void other.close())
  await new Promise((resolve) => other.once('listening', resolve))
  const address = other.address()
  const port = String(typeof address === 'object' ? address?.port : '')
  const { start } = await newInstallation()
  expect(await start({ PORT: port })).toRefuse(new RegExp(`Port ${port} is in use by another program. Stop it, or set PORT`))
})

test('an address that is not this machine’s is refused', async () => {
  const { start } = await newInstallation()
  expect(await start({ HOST: '192.0.2.1' })).toRefuse(/cannot listen on 192\.0\.2\.1:0. Set HOST and PORT/)
})

test('a data folder that cannot be written is refused by name', async () => {
  const folder = await newFolder()
  await writeFile(join(folder, 'file'), '')
  expect(await serve({ REELGATE_DATA: join(folder, 'file') })).toRefuse(/The data folder .*file cannot be written.*REELGATE_DATA/)
  expect(await serve({ REELGATE_DATA: join(folder, 'file', 'data') })).toRefuse(/The data folder .* cannot be written/)
})

test('F-24: without ffmpeg, or with one that does not start, the start is refused with the command that installs it', async () => {
  const folder = await newFolder()
  await expect(openSandbox([folder])).rejects.toMatchObject({
    kind: 'unavailable',
    message: 'ffmpeg is not installed: run apt-get install ffmpeg',
  })
  for (const name of ['ffmpeg', 'ffprobe']) await writeFile(join(folder, name), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
  await expect(openSandbox([folder])).rejects.toMatchObject({ message: expect.stringContaining('prlimit is not installed') })
  await expect(openSandbox([folder, '/usr/bin', '/bin'])).rejects.toMatchObject({
    message: expect.stringContaining('ffmpeg is installed but does not start'),
  })
})

test('another version of Node is refused before anything of it can crash', async () => {
  const older = `data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'24.1.0'}})`
  const { start } = await newInstallation()
  expect(await start({ NODE_OPTIONS: `--import=${older}` })).toRefuse(
    /Reelgate needs Node 26 and this is Node 24\.1\.0. Start it with npm start/,
  )
})

test.each([
  { name: 'PORT', value: '99999' },
  { name: 'PORT', value: 'http' },
  { name: 'REELGATE_PUBLIC_URL', value: 'video.example.org' },
  { name: 'REELGATE_PUBLIC_URL', value: 'https://video.example.org/?a=b' },
  { name: 'REELGATE_PUBLIC_URL', value: 'https://video:example:org' },
  { name: 'REELGATE_MASTER_KEY', value: 'secret' },
  { name: 'REELGATE_UPLOAD_MAX_BYTES', value: '1 GB' },
  { name: 'REELGATE_UPLOAD_MAX_BYTES', value: '0' },
  { name: 'REELGATE_IMPORT_MAX_S', value: '12h' },
  { name: 'REELGATE_IMPORT_MAX_S', value: '9999999' },
  { name: 'REELGATE_ENCODERS', value: '0' },
  { name: 'REELGATE_LIMITS', value: 'on' },
  { name: 'REELGATE_LIMITS', value: '{"reads":600}' },
  { name: 'REELGATE_LIMITS', value: '{"reads":{"ip":0}}' },
  { name: 'REELGATE_LIMITS', value: '{"reads":{"ip":1.5}}' },
  { name: 'REELGATE_LIMITS', value: '{"reeds":{"ip":1}}' },
  { name: 'REELGATE_LIMITS', value: '{"redeem":{"key":1}}' },
  { name: 'REELGATE_DEMO', value: 'no' },
  { name: 'REELGATE_LOG_LEVEL', value: 'loud' },
])('$name=$value is refused by name', ({ name, value }) => {
  const read = () => readConfig({ [name]: value })
  expect(read).toThrow(Failure)
  expect(read).toThrow(new RegExp(`^${name} has a value that cannot be`))
  // A value may be a secret.
  if (name === 'REELGATE_MASTER_KEY') expect(read).not.toThrow(value)
})

test.each(['nginx', '10.0.0.0/33', '::1/129', '127.0.0.1;10.0.0.1', 'fe80::1%eth0'])('R04: %s is no proxy to trust', (value) => {
  expect(() => readConfig({ REELGATE_TRUSTED_PROXIES: value })).toThrow(/^REELGATE_TRUSTED_PROXIES holds "/)
})

test('R03: a public address before a loopback one needs the name of the proxy between them', () => {
  const publicUrl = { REELGATE_PUBLIC_URL: 'https://video.example.org' }
  expect(() => readConfig(publicUrl)).toThrow(/a proxy stands in front. Name its address in REELGATE_TRUSTED_PROXIES/)
  expect(() => readConfig({ ...publicUrl, HOST: '::1' })).toThrow(/a proxy stands in front/)
  expect(readConfig({ ...publicUrl, HOST: '0.0.0.0' }).trustedProxies).toEqual([])
  expect(readConfig({ ...publicUrl, REELGATE_TRUSTED_PROXIES: '127.0.0.1, 2001:db8::/32' }).trustedProxies).toEqual([
    '127.0.0.1',
    '2001:db8::/32',
  ])
  for (const local of ['http://localhost:8080', 'http://127.0.0.1:8080', 'http://[::1]:8080'])
    expect(readConfig({ REELGATE_PUBLIC_URL: local }).publicUrl).toBe(local)
})

test('a place to ask that cannot be read is refused at the start', async () => {
  expect(await serve({ REELGATE_OUTBOUND_ALLOW: '10.0.0.0/8, images.lan' })).toRefuse(
    /REELGATE_OUTBOUND_ALLOW has "images.lan", which is neither HOST:PORT nor ADDRESS\/BITS/,
  )
})

test('limits are the shipped ones, changed by name, or off', () => {
  const shipped = readConfig({}).limits
  expect(shipped?.reads).toEqual({ ip: 600, key: 1200, account: 2400 })
  expect(readConfig({ REELGATE_LIMITS: '{"reads":{"key":9},"redeem":{"ip":5}}' }).limits).toEqual({
    ...shipped,
    reads: { ip: 600, key: 9, account: 2400 },
    redeem: { ip: 5 },
  })
  expect(readConfig({ REELGATE_LIMITS: 'off' }).limits).toBeUndefined()
})

test('R08: as shipped, an address may ask least, then a key, then an account', () => {
  const { redeem: _, playback: __, ...owners } = readConfig({}).limits ?? expect.fail()
  expect(Object.keys(owners)).toEqual(['reads', 'writes', 'otp', 'uploads'])
  for (const { ip, key, account } of Object.values(owners)) {
    expect(ip).toBeLessThan(key)
    expect(key).toBeLessThan(account)
  }
})

test('a variable that cannot be is refused before anything is made', async () => {
  const folder = await newFolder()
  expect(await serve({ REELGATE_DATA: join(folder, 'data'), PORT: '99999' })).toRefuse(/^PORT has a value that cannot be/)
  expect(await listFiles({ dataDir: folder, masterKeyFile: '' })).toEqual([])
})

test('a mistyped variable is told, and has no effect', () => {
  expect(unknownVariables({ REELGATE_DATE: './data', REELGATE_DATA: './data', PATH: '' })).toEqual(['REELGATE_DATE'])
})

test('a master key from two places is refused', async () => {
  const { dataDir, start } = await newInstallation()
  expect(await start({ REELGATE_MASTER_KEY: '0'.repeat(64), REELGATE_MASTER_KEY_FILE: `${dataDir}.key` })).toRefuse(
    /both set: keep one/,
  )
})

async function damageLastPage(path: string): Promise<void> {
  await using file = await open(path, 'r+')
  const { size } = await file.stat()
  await file.write(Buffer.alloc(3000, 0xa5), 0, undefined, size - 4096)
}

/** A stopped installation with one account and one uploaded file, for the test to hurt. */
async function newInstallation() {
  const { remove, env: place, ...installed } = await makePlace({ copyOf: original })
  onTestFinished(remove)
  return { ...installed, start: (env: Record<string, string> = {}) => serve({ ...place, ...env }) }
}

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-start-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return folder
}

const serve = (env: Record<string, string>) => runCli(['serve'], { PORT: '0', REELGATE_LOG_LEVEL: 'silent', ...env })

interface Refusals {
  toRefuse(words: RegExp): void
}
declare module 'vitest' {
  interface Assertion extends Refusals {}
}

expect.extend({
  /** One sentence or two on one line of stderr, nothing else anywhere, exit code 1. */
  toRefuse({ code, stdout, stderr }: Awaited<ReturnType<typeof runCli>>, words: RegExp) {
    const pass = code === 1 && stdout === '' && /^[A-Z/][^\n]*\.\n$/.test(stderr) && words.test(stderr)
    return {
      pass,
      message: () =>
        `expected a refusal like ${words} with code 1, found code ${code}, on stdout ${JSON.stringify(stdout)}, on stderr ${stderr}`,
    }
  },
})
