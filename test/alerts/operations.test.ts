import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { watchBucket } from '../../src/alerts/bucket-away.ts'
import { checkOperations } from '../../src/alerts/operations.ts'
import { addSize, insertVideo } from '../../src/catalogue/video-store.ts'
import { openOwnDatabase } from '../db/database.ts'
import { type Reelgate, startReelgate } from '../in-process.ts'
import { changeRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { type Receivers, startReceivers, webhooksOf } from '../webhooks/receiver.ts'

let receivers: Receivers
beforeAll(async () => {
  receivers = await startReceivers()
})
afterAll(() => receivers.close())

const DAY_S = 24 * 3600

type Listed = {
  cause: string
  video: string | null
  videos: { id: string; title: string }[]
  count: number
  numbers: Record<string, unknown>
}

/** Without the sandbox, which a machine of tests may lack. */
async function list({ owner }: Reelgate): Promise<Listed[]> {
  const response = await owner.call('GET', '/api/alerts')
  const { rows } = (await response.json()) as { rows: Listed[] }
  return rows.filter(({ cause }) => cause !== 'sandbox-missing').sort((a, b) => a.cause.localeCompare(b.cause))
}

test('a backup that is old and a key that is about to end are alerts of a start, once a day, and events of the owner', async () => {
  const env = { REELGATE_OUTBOUND_ALLOW: receivers.host }
  const reelgate = await startReelgate({ video: await makeVideo(), env })
  const receiver = receivers.newReceiver()
  const webhooks = webhooksOf(reelgate.owner)
  const { uuid } = await webhooks.create(receiver.url, 'alert')
  const nowS = Math.floor(Date.now() / 1000)
  await reelgate.stop()
  changeRows(reelgate, 'update api_key set expires_at_s = ?', Math.floor(nowS + 5.5 * DAY_S))
  changeRows(
    reelgate,
    'insert into setting (name, value) values (?, ?)',
    'last-backup',
    `{"name":"x","atS":${Math.floor(nowS - 9.5 * DAY_S)}}`,
  )
  await reelgate.restart()
  const expected = [
    { cause: 'api-key-ends', video: null, numbers: { daysLeft: 5 } },
    { cause: 'backup-old', video: null, numbers: { ageDays: 9 } },
  ]
  await expect.poll(() => list(reelgate)).toMatchObject(expected)
  await reelgate.stop()
  await reelgate.restart()
  await expect.poll(async () => (await list(reelgate)).map(({ count }) => count)).toEqual([2, 2])
  const others = (causes: unknown[]) => causes.filter((cause) => cause !== 'sandbox-missing').sort()
  // A stop during a delivery sends it once more, under the same id.
  const received = () => new Map(receiver.received.map(({ headers, event }) => [headers['webhook-id'], event.payload.cause]))
  await expect.poll(() => others([...received().values()])).toEqual(['api-key-ends', 'backup-old'])
  const { rows } = await webhooks.deliveries(uuid)
  expect(others(rows.map(({ body }) => JSON.parse(body).payload.cause))).toEqual(['api-key-ends', 'backup-old'])
})

test('a video that cannot be encoded is an alert, one a day however many there are', async () => {
  const reelgate = await startReelgate()
  const path = join(reelgate.dataDir, 'no.mp4')
  await writeFile(path, 'no video')
  const { owner } = reelgate
  const first = await owner.upload('no video', path)
  await owner.until(first, 'Not a media file')
  await owner.until(await owner.upload('nor this', path), 'Not a media file')
  expect(await list(reelgate)).toMatchObject([{ cause: 'encode-failed', video: first, count: 2 }])
})

test('F-66: imports that fail are one alert of the day with their number, which names each video', async () => {
  const reelgate = await startReelgate({ env: { REELGATE_OUTBOUND_ALLOW: receivers.host } })
  const titles = ['First', 'Second', 'Third', 'Fourth']
  for (const title of titles) {
    const body = { url: `http://${receivers.host}/no-such-file.mp4`, title }
    expect((await reelgate.owner.call('PUT', '/api/videos/importUrl', { body })).status).toBe(200)
  }
  await expect.poll(() => list(reelgate)).toMatchObject([{ cause: 'encode-failed', count: titles.length }])
  const [alert] = await list(reelgate)
  expect(alert?.videos.map(({ title }) => title).sort()).toEqual(titles.toSorted())
  expect(alert?.videos[0]?.id).toBe(alert?.video)
  expect(alert?.numbers.reason).toMatch(/404/)
})

test('a webhook that says 410 is switched off, which is an alert', async () => {
  const reelgate = await startReelgate({ video: await makeVideo(), env: { REELGATE_OUTBOUND_ALLOW: receivers.host } })
  const gone = receivers.newReceiver((response) => response.writeHead(410).end())
  const { uuid } = await webhooksOf(reelgate.owner).create(gone.url, 'video:deleted')
  await reelgate.owner.call('DELETE', `/api/videos?videos=${reelgate.videoId}`)
  await expect.poll(() => list(reelgate)).toMatchObject([{ cause: 'webhook-disabled', numbers: { webhook: uuid } }])
})

test('a disk with little space and a missing sandbox are alerts of the first account', async () => {
  const { db, write } = await openOwnDatabase()
  const account = { mayUpload: 1, mayImport: 1 }
  await write((tx) =>
    tx
      .insertInto('account')
      .values([
        { ...account, id: 'b', name: 'later', createdAtS: 5 },
        { ...account, id: 'a', name: 'first', createdAtS: 4 },
      ])
      .execute(),
  )
  const deps = {
    db,
    write,
    nowS: () => 10,
    wallNowS: () => 10,
    areWebhooksHeld: () => false,
    findLastBackupS: async () => undefined,
  }
  await checkOperations({ ...deps, isDiskLow: async () => true, isSandboxMissing: true })
  const rows = await db.selectFrom('alert').select(['accountId', 'cause']).orderBy('cause').execute()
  expect(rows).toEqual([
    { accountId: 'a', cause: 'disk-nearly-full' },
    { accountId: 'a', cause: 'sandbox-missing' },
  ])
})

test('an account that has used nine tenths of its storage is an alert of that account; one below, or without a limit, is none', async () => {
  const { db, write } = await openOwnDatabase()
  const accounts = [
    { id: 'nearly', storageLimitBytes: 1000, stored: 900 },
    { id: 'below', storageLimitBytes: 1000, stored: 899 },
    { id: 'unlimited', storageLimitBytes: null, stored: 2 ** 41 },
  ]
  await write(async (tx) => {
    for (const { id, storageLimitBytes, stored } of accounts) {
      await tx
        .insertInto('account')
        .values({ id, name: id, storageLimitBytes, createdAtS: 4, mayUpload: 1, mayImport: 1 })
        .execute()
      await insertVideo(tx, id, { id: `video of ${id}`, title: 'A video', uploadTimeS: 1 })
      await addSize(tx, `video of ${id}`, stored)
    }
  })
  const deps = {
    db,
    write,
    nowS: () => 10,
    wallNowS: () => 10,
    areWebhooksHeld: () => false,
    findLastBackupS: async () => undefined,
  }
  await checkOperations({ ...deps, isDiskLow: async () => false, isSandboxMissing: false })
  expect(await db.selectFrom('alert').select(['accountId', 'cause', 'numbers']).execute()).toEqual([
    { accountId: 'nearly', cause: 'storage-nearly-used', numbers: '{"storedBytes":900,"limitBytes":1000}' },
  ])
})

test('W17: a retry that has been due for more than an hour is an alert of its account, once a day; not while webhooks are held', async () => {
  const { db, write } = await openOwnDatabase()
  const nowS = 1_000_000
  const webhooks = [
    { id: 'late', dueAtS: nowS - 3601 },
    { id: 'in time', dueAtS: nowS - 3600 },
    { id: 'new events alone', dueAtS: 0 },
  ]
  await write(async (tx) => {
    await tx.insertInto('account').values({ id: 'a', name: 'a', createdAtS: 4, mayUpload: 1, mayImport: 1 }).execute()
    for (const { id, dueAtS } of webhooks) {
      const webhook = { id, accountId: 'a', url: 'https://www.example.org', wrappedSecret: Buffer.alloc(1), createdAtS: 4 }
      await tx.insertInto('webhook').values(webhook).execute()
      const delivery = {
        webhookId: id,
        sequence: 1,
        event: 'video:ready',
        timeMs: 1,
        body: '{}',
        state: 'waiting',
        dueAtS,
      } as const
      await tx.insertInto('delivery').values(delivery).execute()
    }
  })
  const deps = { db, write, nowS: () => nowS, wallNowS: () => 10, findLastBackupS: async () => undefined }
  const check = (areWebhooksHeld: boolean) =>
    checkOperations({
      ...deps,
      isDiskLow: async () => false,
      isSandboxMissing: false,
      areWebhooksHeld: () => areWebhooksHeld,
    })
  const alerts = () => db.selectFrom('alert').select(['accountId', 'cause', 'numbers', 'occurrenceCount']).execute()
  await check(true)
  expect(await alerts()).toEqual([])
  for (const occurrenceCount of [1, 2]) {
    await check(false)
    const numbers = '{"webhook":"late","dueForS":3601}'
    expect(await alerts()).toEqual([{ accountId: 'a', cause: 'webhook-retries-late', numbers, occurrenceCount }])
  }
})

test('F-235: a bucket that is away for five minutes is an alert, and its end another one, also after a restart; a shorter outage is none', async () => {
  const { db, write } = await openOwnDatabase()
  await write((tx) =>
    tx.insertInto('account').values({ id: 'a', name: 'a', createdAtS: 4, mayUpload: 1, mayImport: 1 }).execute(),
  )
  let now = 1_000_000
  let away: { reason: string; forS: number } | undefined
  const start = () => watchBucket({ db, write, nowS: () => now, outage: () => away })
  const alerts = () => db.selectFrom('alert').select(['accountId', 'cause', 'numbers']).orderBy('id').execute()
  let look = await start()
  away = { reason: 'no answer', forS: 299 }
  await look()
  away = undefined
  await look()
  expect(await alerts()).toEqual([])
  away = { reason: 'no answer', forS: 300 }
  await look()
  away.forS = 310
  await look()
  const first = { accountId: 'a', cause: 'bucket-away', numbers: '{"reason":"no answer","sinceS":999700}' }
  expect(await alerts()).toEqual([first])
  look = await start()
  away = undefined
  now += 60
  await look()
  await look()
  expect(await alerts()).toEqual([first, { accountId: 'a', cause: 'bucket-back', numbers: '{"awayS":360}' }])
  away = { reason: 'again', forS: 400 }
  now += 1000
  await look()
  expect((await alerts()).map(({ cause }) => cause)).toEqual(['bucket-away', 'bucket-back', 'bucket-away'])
})
