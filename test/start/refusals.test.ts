import { chmod, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { dataPaths } from '../../src/config/data-paths.ts'
import { listUnknownVariables } from '../../src/config/environment.ts'
import { Failure } from '../../src/errors.ts'
import { openSandbox } from '../../src/sandbox/bubblewrap.ts'
import { listFiles } from '../data-folder.ts'
import { startReelgate } from '../in-process.ts'
import { changeRows } from '../rows.ts'
import { sampleOf } from '../sample.ts'
import { copyToHurt, newFolder, serve, startOriginal } from './refusals.ts'

let original: Awaited<ReturnType<typeof startOriginal>>
beforeAll(async () => {
  original = await startOriginal()
})
afterAll(() => original.remove())

const newInstallation = () => copyToHurt(original)

test('F-39: without its master key an installation does not start, and no new key is created', async () => {
  const { dataDir, start } = await newInstallation()
  await rm(`${dataDir}.key`)
  expect(await start()).toRefuse(/The master key .*data\.key is missing.*Put the key file back/)
  expect(await start()).toRefuse(/missing/)
})

test('F-39: with another installation’s master key it does not start', async () => {
  const { dataDir, start } = await newInstallation()
  await writeFile(`${dataDir}.key`, '0'.repeat(64), { mode: 0o600 })
  expect(await start()).toRefuse(/master key does not belong to this data folder/)
  expect(await start({ REELGATE_MASTER_KEY: '1'.repeat(64) })).toRefuse(/master key does not belong to this data folder/)
})

const INVALID_KEYS = [
  { file: 'empty', text: '' },
  { file: 'too short', text: 'abc123' },
  { file: 'something else', text: '-----BEGIN PRIVATE KEY-----' },
]
test.each(sampleOf('invalid key files', INVALID_KEYS, 1))(
  'F-39: a master key file that is $file is refused by name',
  async ({ text }) => {
    const { dataDir, start } = await newInstallation()
    await writeFile(`${dataDir}.key`, text)
    expect(await start()).toRefuse(/data\.key does not hold a master key.*Put the right file back/)
  },
)

const OTHERS = [
  { others: 'its group', mode: 0o640 },
  { others: 'everybody', mode: 0o604 },
]
test.each(sampleOf('keys that others may read', OTHERS, 1))(
  'D07: a master key that $others may read is refused, with the command that closes it',
  async ({ mode }) => {
    const { dataDir, start } = await newInstallation()
    await chmod(`${dataDir}.key`, mode)
    expect(await start()).toRefuse(/Other users may read the master key .*data\.key. Run chmod 600 on it/)
    await chmod(`${dataDir}.key`, 0o600)
  },
)

test('F-37: a database of a newer version is rejected with the migration’s name', async () => {
  const { start, ...installation } = await newInstallation()
  changeRows(installation, 'insert into kysely_migration values (?, ?)', '0099-later', new Date().toISOString())
  expect(await start()).toRefuse(/newer version of Reelgate \(it has the migration 0099-later\). Start that version/)
})

const DAMAGED_MARKS = ['', 'NaN\n', '17953\0\0\0\0', '1795394191\n\n']
test.each(sampleOf('damaged high-water marks', DAMAGED_MARKS, 1))(
  'F-17: a damaged high-water mark (%j) is reported as such',
  async (text) => {
    const { dataDir, start } = await newInstallation()
    const { mark } = dataPaths(dataDir)
    await writeFile(mark, text)
    expect(await start()).toRefuse(/^The high-water mark .*reelgate\.mark is damaged: .*remove this file and start again\./)
    expect(await readFile(mark, 'utf8')).toBe(text)
  },
)

test('F-40: a second server on one data folder does not start, whatever its port', async () => {
  const first = await startReelgate()
  expect(await serve({ REELGATE_DATA: first.dataDir })).toRefuse(
    /Another Reelgate server runs on .*data. Stop it first, or set REELGATE_DATA/,
  )
  expect((await fetch(`${first.url}/healthz`)).status).toBe(200)
})

test('F-40: a port in use is named in the error', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void other.close())
  await new Promise((resolve) => other.once('listening', resolve))
  const address = other.address()
  const port = String(typeof address === 'object' ? address?.port : '')
  const { start } = await newInstallation()
  expect(await start({ PORT: port })).toRefuse(new RegExp(`Port ${port} is in use by another program. Stop it, or set PORT`))
})

test('a HOST that is not this machine’s is rejected', async () => {
  const { start } = await newInstallation()
  expect(await start({ HOST: '192.0.2.1' })).toRefuse(/cannot listen on 192\.0\.2\.1:0. Set HOST and PORT/)
})

test('a data folder that cannot be written is rejected by name', async () => {
  const folder = await newFolder()
  await writeFile(join(folder, 'file'), '')
  expect(await serve({ REELGATE_DATA: join(folder, 'file') })).toRefuse(/The data folder .*file cannot be written.*REELGATE_DATA/)
  expect(await serve({ REELGATE_DATA: join(folder, 'file', 'data') })).toRefuse(/The data folder .* cannot be written/)
})

test('F-24: without ffmpeg, or with one that does not run, the start fails with the command that installs it', async () => {
  const folder = await newFolder()
  await expect(openSandbox({ toolFolders: [folder] })).rejects.toMatchObject({
    kind: 'unavailable',
    message: 'ffmpeg is not installed: run apt-get install ffmpeg',
  })
  for (const name of ['ffmpeg', 'ffprobe']) await writeFile(join(folder, name), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
  await expect(openSandbox({ toolFolders: [folder] })).rejects.toMatchObject({
    message: expect.stringContaining('prlimit is not installed'),
  })
  await expect(openSandbox({ toolFolders: [folder, '/usr/bin', '/bin'] })).rejects.toMatchObject({
    message: expect.stringContaining('ffmpeg is installed but does not start'),
  })
})

test('another version of Node is rejected before it can crash', async () => {
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
  { name: 'REELGATE_MASTER_KEY_COMMAND', value: 'cat secret | head' },
  { name: 'REELGATE_UPLOAD_MAX_BYTES', value: '1 GB' },
  { name: 'REELGATE_UPLOAD_MAX_BYTES', value: '0' },
  { name: 'REELGATE_IMPORT_MAX_S', value: '12h' },
  { name: 'REELGATE_IMPORT_MAX_S', value: '9999999' },
  { name: 'REELGATE_ENCODERS', value: '65' },
  { name: 'REELGATE_WORKER_TOKEN', value: 'worker_short' },
  { name: 'REELGATE_LIMITS', value: 'on' },
  { name: 'REELGATE_LIMITS', value: '{"reads":600}' },
  { name: 'REELGATE_LIMITS', value: '{"reads":{"ip":0}}' },
  { name: 'REELGATE_LIMITS', value: '{"reads":{"ip":1.5}}' },
  { name: 'REELGATE_LIMITS', value: '{"reeds":{"ip":1}}' },
  { name: 'REELGATE_LIMITS', value: '{"redeem":{"key":1}}' },
  { name: 'REELGATE_DEMO', value: 'no' },
  { name: 'REELGATE_SANDBOX', value: 'off' },
  { name: 'REELGATE_LOG_LEVEL', value: 'loud' },
])('$name=$value is refused by name', ({ name, value }) => {
  const read = () => readConfig({ [name]: value })
  expect(read).toThrow(Failure)
  expect(read).toThrow(new RegExp(`^${name} is invalid: expected `))
  // A value may be a secret.
  if (name.startsWith('REELGATE_MASTER_KEY')) expect(read).not.toThrow(value)
})

test.each(['nginx', '10.0.0.0/33', '::1/129', '127.0.0.1;10.0.0.1', 'fe80::1%eth0'])('R04: %s is no proxy to trust', (value) => {
  expect(() => readConfig({ REELGATE_TRUSTED_PROXIES: value })).toThrow(
    /^REELGATE_TRUSTED_PROXIES is invalid: expected .*, got "/,
  )
})

test('R03: a public URL with a loopback HOST needs the address of the proxy in between', () => {
  const publicUrl = { REELGATE_PUBLIC_URL: 'https://video.example.org' }
  expect(() => readConfig(publicUrl)).toThrow(/there is a proxy in front. Name its address in REELGATE_TRUSTED_PROXIES/)
  expect(() => readConfig({ ...publicUrl, HOST: '::1' })).toThrow(/there is a proxy in front/)
  expect(readConfig({ ...publicUrl, HOST: '0.0.0.0' }).trustedProxies).toEqual([])
  expect(readConfig({ ...publicUrl, REELGATE_TRUSTED_PROXIES: '127.0.0.1, 2001:db8::/32' }).trustedProxies).toEqual([
    '127.0.0.1',
    '2001:db8::/32',
  ])
  for (const local of ['http://localhost:8080', 'http://127.0.0.1:8080', 'http://[::1]:8080'])
    expect(readConfig({ REELGATE_PUBLIC_URL: local }).publicUrl).toBe(local)
})

test('an invalid REELGATE_OUTBOUND_ALLOW is rejected at the start', async () => {
  expect(await serve({ REELGATE_OUTBOUND_ALLOW: '10.0.0.0/8, images.lan' })).toRefuse(
    /REELGATE_OUTBOUND_ALLOW has "images.lan", which is neither HOST:PORT nor ADDRESS\/BITS/,
  )
})

test('limits have defaults, can be changed by name, or be off', () => {
  const shipped = readConfig({}).limits
  expect(shipped?.reads).toEqual({ ip: 600, key: 1200, account: 2400 })
  expect(readConfig({ REELGATE_LIMITS: '{"reads":{"key":9},"redeem":{"ip":5}}' }).limits).toEqual({
    ...shipped,
    reads: { ip: 600, key: 9, account: 2400 },
    redeem: { ip: 5 },
  })
  expect(readConfig({ REELGATE_LIMITS: 'off' }).limits).toBeUndefined()
})

test('R08: by default an address has the lowest limit, then a key, then an account', () => {
  const { reads, writes, otp, uploads } = readConfig({}).limits ?? expect.fail()
  const owners = { reads, writes, otp, uploads }
  for (const { ip, key, account } of Object.values(owners)) {
    expect(ip).toBeLessThan(key)
    expect(key).toBeLessThan(account)
  }
})

test('an invalid variable is rejected before anything is created', async () => {
  const folder = await newFolder()
  expect(await serve({ REELGATE_DATA: join(folder, 'data'), PORT: '99999' })).toRefuse(
    /^PORT is invalid: expected a port from 0 to 65535\.\n$/,
  )
  expect(await listFiles({ dataDir: folder, masterKeyFile: '' })).toEqual([])
})

test('a mistyped variable is reported, and has no effect', () => {
  expect(listUnknownVariables({ REELGATE_DATE: './data', REELGATE_DATA: './data', REELGATE_INSTALL: 'off', PATH: '' })).toEqual([
    'REELGATE_DATE',
  ])
})

test('a master key from two sources is rejected', async () => {
  const { dataDir, start } = await newInstallation()
  expect(await start({ REELGATE_MASTER_KEY: '0'.repeat(64), REELGATE_MASTER_KEY_FILE: `${dataDir}.key` })).toRefuse(
    /both set: keep one/,
  )
})
