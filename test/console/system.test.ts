import { expect, test } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { dataPaths } from '../../src/config/data-paths.ts'
import { sendCommand } from '../../src/control/socket.ts'
import { startReelgate } from '../in-process.ts'
import { changeRows } from '../rows.ts'
import { startFaultProxy } from '../s3/fault-proxy.ts'
import { bucketEnvironment, storeEndpoint } from '../s3.ts'
import { makeVideo } from '../videos.ts'
import { signIn } from './person.ts'

// What an administrator sees of the installation.

type Checks = { rows: { check: string; state: string; says: string }[] }

test('an administrator reads the checks of the doctor in words, while the server runs', async () => {
  const reelgate = await startReelgate()
  const { rows } = await (await signIn(reelgate)).get<Checks>('GET', '/system/checks')
  const names = rows.map(({ check }) => check)
  for (const check of ['data folder', 'free space', 'disk', 'ffmpeg', 'database', 'master key', 'backup', 'API keys'])
    expect(names).toContain(check)
  expect(rows.find(({ check }) => check === 'database')).toMatchObject({ state: 'ok' })
  expect(rows.find(({ check }) => check === 'backup')).toMatchObject({
    state: 'warning',
    says: expect.stringContaining('no good backup'),
  })
  for (const { says } of rows) expect(says).toMatch(/^[A-Z0-9/f].*\.$/s)
})

test('an administrator sees the version, the disk and what waits', async () => {
  const reelgate = await startReelgate()
  const status = await (await signIn(reelgate)).get<Record<string, unknown>>('GET', '/system/status')
  expect(status).toMatchObject({
    version: packageJson.version,
    node: process.versions.node,
    dataFolder: reelgate.env.REELGATE_DATA,
    database: reelgate.databaseUrl === undefined ? 'SQLite' : 'PostgreSQL',
    chunks: { pending: 0, running: 0 },
    deliveries: 0,
    accounts: 1,
    lastBackup: null,
  })
  const { freeBytes, sizeBytes } = status.disk as { freeBytes: number; sizeBytes: number }
  expect(freeBytes).toBeGreaterThan(0)
  expect(sizeBytes).toBeGreaterThan(freeBytes)
})

test('F-267: an administrator sees where the files are, and how far a move of them is while it lasts', async () => {
  const proxy = await startFaultProxy(await storeEndpoint())
  const { env } = await bucketEnvironment(proxy.endpoint)
  const reelgate = await startReelgate({ video: await makeVideo({ seconds: 1 }), storage: 'folder', env })
  const admin = await signIn(reelgate)
  type Files = { place: string; move: { to: string; movedBytes: number; totalBytes: number } | null }
  const files = async () => (await admin.get<{ files: Files }>('GET', '/system/status')).files
  expect(await files()).toEqual({ place: expect.stringMatching(/^the data folder /), move: null })
  const held = Promise.withResolvers<boolean>()
  proxy.fault = ({ method, path }) => method === 'PUT' && path.includes(reelgate.videoId) && held.promise
  await sendCommand(dataPaths(reelgate.dataDir).controlSocket, 'storage move', { to: env.REELGATE_STORAGE_URL })
  expect(await files()).toMatchObject({
    place: expect.stringMatching(/^the data folder /),
    move: { to: expect.stringMatching(/^s3:/), movedBytes: 0, damagedCount: 0 },
  })
  await expect.poll(async () => (await files()).move?.totalBytes).toBeGreaterThan(0)
  proxy.fault = undefined
  held.resolve(false)
  await expect.poll(files).toEqual({ place: expect.stringMatching(/^s3:/), move: null })
})

test('an administrator sees where the master key comes from, whether a rotation is not finished, and when the last one was', async () => {
  const reelgate = await startReelgate()
  const admin = await signIn(reelgate)
  const masterKey = async () =>
    (await admin.get<{ masterKey: { isBeingRotated: boolean; rotatedAt: string | null } }>('GET', '/system/status')).masterKey
  expect(await masterKey()).toEqual({ place: 'REELGATE_MASTER_KEY_FILE', isBeingRotated: false, rotatedAt: null })
  const ids = (change: string) => changeRows(reelgate, `update setting set value = ${change} where name = 'master-key-id'`)
  ids(`value || ' ' || value`)
  expect(await masterKey()).toMatchObject({ isBeingRotated: true })
  ids('substr(value, 1, (length(value) - 1) / 2)')
  expect(await masterKey()).toMatchObject({ isBeingRotated: false })
  await sendCommand(dataPaths(reelgate.dataDir).controlSocket, 'key rotate-master', {})
  const { rotatedAt, isBeingRotated } = await masterKey()
  expect(isBeingRotated).toBe(false)
  expect(Math.abs(Date.parse(rotatedAt ?? '') - Date.now())).toBeLessThan(600_000)
})
