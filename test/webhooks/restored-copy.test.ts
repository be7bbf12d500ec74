import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { ensureDistinctTimes, fileIdentity } from '../../src/storage/identity.ts'
import { RESTORED_COPY, whyCopy } from '../../src/webhooks/restored-copy.ts'
import { createOwner, type Owner } from '../client.ts'
import { type Reelgate, startReelgate } from '../in-process.ts'
import { makeDatabase } from '../postgres.ts'
import { runCli } from '../reelgate.ts'
import { changeRows } from '../rows.ts'
import { type Receivers, startReceivers, webhooksOf } from './receiver.ts'

const run = promisify(execFile)

let receivers: Receivers
beforeAll(async () => {
  receivers = await startReceivers()
})
afterAll(() => receivers.close())

test('F-46: a restored copy calls no webhook before it is resumed; its deliveries wait and lose no try, and every start, the doctor and /readyz say so', async () => {
  const { live, webhook, receiver, videoId } = await startWithWebhook('sqlite')
  const { copy, owner } = await startCopy(live)
  await owner.delete([videoId])
  await copy.stop()
  await copy.restart()
  expect(copy.output()).toMatch(
    /"why":"This data folder is a copy of another one[^"]*npx reelgate webhook resume","msg":"webhook: held"/,
  )
  expect(await readiness(copy)).toMatchObject([200, { status: 'ready', checks: { webhooks: 'held' } }])
  expect(await doctor(copy)).toMatchObject([{ state: 'warning', says: expect.stringContaining('npx reelgate webhook resume') }])
  expect((await webhooksOf(owner).deliveries(webhook)).rows).toMatchObject([{ state: 'waiting', attempts: 0 }])
  expect(receiver.received).toEqual([])

  expect(await resume(copy)).toEqual({ resumed: true })
  const [received] = await receiver.until(1)
  expect(received?.event).toMatchObject({ event: 'video:deleted', payload: { id: videoId } })
  expect(await webhooksOf(owner).untilNewest(webhook, 'delivered')).toMatchObject({ attempts: 1 })
  await copy.stop()
  expect([await resume(copy), await doctor(copy)]).toEqual([{ resumed: false }, []])
})

test('F-46: on PostgreSQL a restored copy is known by its data folder', async () => {
  const { live, webhook, receiver, videoId } = await startWithWebhook('postgres')
  await live.restart()
  expect(live.output()).not.toContain('webhook: held')
  await live.stop()
  const { copy, owner } = await startCopy(live)
  expect(copy.output()).toContain('webhook: held')
  await owner.delete([videoId])
  expect(await resume(copy)).toEqual({ resumed: true })
  expect(await webhooksOf(owner).untilNewest(webhook, 'delivered')).toMatchObject({ attempts: 1 })
  expect(receiver.received).toHaveLength(1)
})

const ENV = () => ({ REELGATE_OUTBOUND_ALLOW: receivers.host })

/** A stopped installation with a webhook and a video. */
async function startWithWebhook(database: 'sqlite' | 'postgres') {
  const live = await startReelgate({ database, env: ENV() })
  const receiver = receivers.newReceiver()
  const { uuid: webhook } = await webhooksOf(live.owner).create(receiver.url)
  const { videoId } = await live.owner.credentials('A video')
  await live.stop()
  return { live, webhook, receiver, videoId }
}

/** As an operator restores a backup of a stopped server, or clones it for a test. */
async function startCopy(live: Reelgate): Promise<{ copy: Reelgate; owner: Owner }> {
  const folder = `${live.dataDir}-copy`
  await run('cp', ['-a', live.dataDir, folder])
  onTestFinished(() => rm(folder, { recursive: true }))
  const made = await makeDatabase({ database: live.databaseUrl ? 'postgres' : 'sqlite', copyOf: live.databaseUrl })
  onTestFinished(made.remove)
  const location = { REELGATE_DATA: folder, REELGATE_MASTER_KEY_FILE: live.masterKeyFile, ...made.env }
  const copy = await startReelgate({ database: 'sqlite', env: { ...ENV(), ...location } })
  return { copy: Object.assign(copy, { env: location }), owner: createOwner(copy.url, live.owner.apiKey) }
}

test('F-46: a restart, another owner, a move within the file system and VACUUM make no copy of an installation', async () => {
  const live = await startReelgate({ database: 'sqlite' })
  await live.stop()
  await live.restart()
  expect(live.output()).not.toContain('webhook: held')
  await live.stop()
  await run('chown', ['-R', '1:1', live.dataDir])
  changeRows(live, 'vacuum')
  const moved = `${live.dataDir}-moved`
  await rename(live.dataDir, moved)
  onTestFinished(() => rm(moved, { recursive: true }))
  const again = await startReelgate({
    database: 'sqlite',
    env: { REELGATE_DATA: moved, REELGATE_MASTER_KEY_FILE: live.masterKeyFile },
  })
  expect(again.output()).not.toContain('webhook: held')
  expect((await readiness(again))[1]).not.toMatchObject({ checks: { webhooks: 'held' } })
})

test.each([
  ['cp', 'cp -a "$0" "$1"'],
  ['tar', 'mkdir "$1" && tar -C "$0" -c . | tar -C "$1" -xp'],
  ['rsync', 'rsync -aHAX "$0/" "$1"'],
])('F-46: a copy by %s is known by its file', async (_, copy) => {
  const [folder, name] = [await mkdtemp(join(tmpdir(), 'reelgate-copy-')), join('original', 'file')]
  onTestFinished(() => rm(folder, { recursive: true }))
  const original = { setting: 'database-file', path: join(folder, name) } as const
  await mkdir(join(folder, 'original'))
  await writeFile(original.path, 'rows')
  ensureDistinctTimes(original.path)
  const identity = fileIdentity(original.path)
  await run('sh', ['-c', copy, join(folder, 'original'), join(folder, 'copy')])
  ensureDistinctTimes(join(folder, 'copy/file'))
  const readSetting = async (name: string) => (name === RESTORED_COPY ? undefined : identity)
  expect(await whyCopy(readSetting, [original])).toBeUndefined()
  expect(await whyCopy(readSetting, [{ ...original, path: join(folder, 'copy/file') }])).toMatch(/^This data folder is a copy/)
})

test('F-46: where the file system knows no time of birth nothing is taken for a copy', async () => {
  const file = { setting: 'database-file', path: '/proc/version' } as const
  const readSetting = async (name: string) => (name === RESTORED_COPY ? undefined : '12 1795394191000000000')
  expect(await whyCopy(readSetting, [file])).toBeUndefined()
})

async function readiness({ url }: Reelgate): Promise<unknown[]> {
  const response = await fetch(`${url}/readyz`)
  return [response.status, await response.json()]
}

/** What it says of webhooks. */
async function doctor({ env }: Reelgate): Promise<unknown[]> {
  const { stdout } = await runCli(['doctor', '--json'], env)
  return JSON.parse(stdout).filter(({ check }: { check: string }) => check === 'webhooks')
}

async function resume({ env }: Reelgate): Promise<unknown> {
  const { stdout, stderr } = await runCli(['webhook', 'resume', '--json'], env)
  expect(stderr).toBe('')
  return JSON.parse(stdout)
}
