import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import type { Db } from '../../src/db/database.ts'
import { openBatches } from '../../src/db/postgres/batches.ts'
import { toPublicError } from '../../src/db/postgres/failures.ts'
import { Failure } from '../../src/errors.ts'
import { savePlayback } from '../../src/playback/open.ts'
import type { PlaybackDeps } from '../../src/playback/playback-deps.ts'
import { findSession } from '../../src/playback/sessions/session-store.ts'
import { stopSessions } from '../../src/playback/sessions/stop.ts'
import { countViews, openUsage } from '../../src/usage/usage.ts'
import { openDatabaseAt } from '../db/database.ts'
import { connectTo, openOwnPostgres } from '../db/postgres/database.ts'
import { makeLocation } from '../installation-folder.ts'
import { startPostgres } from '../postgres.ts'
import { sampledTests } from '../sample.ts'
import { rounds } from '../seeded-random.ts'
import type { Viewer } from '../viewer.ts'
import { outcomeOf } from './playback-deps.ts'
import { openSharedPlayback } from './shared-servers.ts'

// Several servers on one PostgreSQL, each request of a session on any of them: what one server promises, all of them keep together.

const { test, draw } = sampledTests('sessions of several servers', 7)

/** Three servers for most tests, whose viewers have nothing in common. */
let shared: Awaited<ReturnType<typeof openSharedPlayback>>
let databaseUrl = ''
const closing = new AsyncDisposableStack()
beforeAll(async () => {
  const location = await makeLocation({ database: 'postgres' })
  closing.defer(() => location.remove())
  const database = await openDatabaseAt(location)
  closing.defer(() => database.close())
  databaseUrl = location.databaseUrl ?? ''
  shared = await openSharedPlayback({ ...database, url: databaseUrl }, { durationS: 3600, servers: 3 })
  closing.defer(() => shared.close())
})
afterAll(() => closing.disposeAsync())

let viewerCount = 0
/** A name that no other viewer has. */
const newUserId = () => `viewer ${viewerCount++}`
/** An address in a network that no other viewer has. */
const newAddress = () => `2001:db8:${(viewerCount++).toString(16)}::1`

function countOf(outcomes: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const outcome of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1
  return counts
}

const stop = (deps: PlaybackDeps, accountId: string, sessionId: string) =>
  stopSessions({ ...deps, suspicions: undefined }, { accountId, by: 'server', target: { sessionId } })

async function ownAccount(): Promise<string> {
  const { id } = await shared.db.selectFrom('account').select('id').executeTakeFirstOrThrow()
  return id
}

test('P29: a proof that is sent to all servers at the same time works at one of them', async () => {
  const viewers = [await shared.newViewer(), await shared.newViewer({ userId: newUserId() })]
  for (let round = 0; round < rounds(10, 300); round++) {
    const requests = viewers.flatMap((viewer) =>
      (['playlist', 'beat', 'key'] as const).map((operation) =>
        shared.sign(viewer, operation, { argument: operation === 'key' ? '0' : '' }),
      ),
    )
    const sent = requests.map((request) => Promise.all(shared.servers.map((server) => outcomeOf(shared.send(request, server)))))
    for (const outcomes of await Promise.all(sent)) expect(countOf(outcomes)).toEqual({ allowed: 1, 'proof-replayed': 2 })
  }
})

test('P30: of pages that are opened at several servers the newest plays, and a replaced one never returns', async () => {
  const viewer = await shared.newViewer()
  const first = { ...viewer.state }
  viewer.newPage()
  await shared.send(shared.sign(viewer, 'page'))
  const second = { ...viewer.state }
  for (const server of shared.servers) {
    Object.assign(viewer.state, { pageId: first.pageId, seq: first.seq++ + 1 })
    expect(await outcomeOf(shared.send(shared.sign(viewer, 'beat'), server))).toBe('page-replaced')
    Object.assign(viewer.state, { pageId: first.pageId, seq: first.seq++ + 1 })
    expect(await outcomeOf(shared.send(shared.sign(viewer, 'page'), server))).toBe('page-replaced')
    Object.assign(viewer.state, { pageId: second.pageId, seq: second.seq++ + 1 })
    expect(await outcomeOf(shared.send(shared.sign(viewer, 'beat'), server))).toBe('allowed')
  }
})

test('P31: servers together release no more keys than one', async () => {
  const userId = newUserId()
  const viewers = await Promise.all([1, 2, 3].map(() => shared.newViewer({ userId })))
  const ask = (windows: readonly number[]) =>
    Promise.all(windows.map((window, n) => outcomeOf(shared.key(viewers[n % 3] as Viewer, window))))
  const windows = Array.from({ length: 70 }, (_, n) => n)
  // An hour of video starts with 600 s, in windows of 12 s.
  const outcomes = await ask(windows)
  expect(countOf(outcomes)).toEqual({ allowed: 50, 'key-pace': 20 })
  const released = windows.filter((window) => outcomes[window] === 'allowed')
  shared.passS(18)
  // 18 s at 5/3 of the speed are 30 s.
  expect(countOf(await ask(windows.map((window) => 100 + window)))).toEqual({ allowed: 2, 'key-pace': 68 })
  expect(countOf(await ask(released))).toEqual({ allowed: 50 }) // free
})

test('P31: sessions without a userId share the budget of their address at all servers', async () => {
  const address = newAddress()
  const viewers = await Promise.all(Array.from({ length: 4 }, () => shared.newViewer()))
  const outcomes = await Promise.all(
    Array.from({ length: 80 }, (_, n) => outcomeOf(shared.key(viewers[n % 4] as Viewer, n, address))),
  )
  expect(countOf(outcomes)).toEqual({ allowed: 50, 'key-pace': 30 })
})

test('P31: a class of thirty behind one address waits for nothing at several servers', async () => {
  const address = newAddress()
  const viewers = await Promise.all(Array.from({ length: 30 }, () => shared.newViewer()))
  for (let window = 0; window < rounds(6, 60); window++) {
    const outcomes = await Promise.all(viewers.map((viewer) => outcomeOf(shared.key(viewer, window, address))))
    expect(countOf(outcomes)).toEqual({ allowed: 30 })
    shared.passS(12)
  }
})

test('P32: a viewer never has more streams than allowed, however many servers are asked', async () => {
  const userId = newUserId()
  const viewers = await Promise.all(Array.from({ length: 8 }, () => shared.newViewer({ userId, streamLimit: 2 })))
  for (let round = 0; round < rounds(5, 60); round++) {
    const outcomes = await Promise.all(viewers.map((viewer) => outcomeOf(shared.beat(viewer))))
    expect(countOf(outcomes)).toEqual({ allowed: 2, 'stream-limit': 6 })
    const slots = await shared.db.selectFrom('streamSlot').selectAll().where('userId', '=', userId).execute()
    expect(slots.map(({ n }) => n).sort()).toEqual([1, 2])
    const [holder] = viewers.filter((_, n) => outcomes[n] === 'allowed')
    if (holder) await shared.send(shared.sign(holder, 'leave'))
  }
})

test('P32: the oldest stream is stopped once, at every server, where an account wants that', async () => {
  await shared.write((tx) => tx.updateTable('account').set({ streamLimitPolicy: 'stop-oldest' }).execute())
  const userId = newUserId()
  const viewers = await Promise.all(Array.from({ length: 4 }, () => shared.newViewer({ userId, streamLimit: 1 })))
  for (const viewer of viewers) {
    expect(await outcomeOf(shared.beat(viewer))).toBe('allowed')
    shared.passS(1)
  }
  const later = await Promise.all(viewers.flatMap((viewer) => [1, 2, 3].map(() => outcomeOf(shared.beat(viewer)))))
  expect(countOf(later)).toEqual({ allowed: 3, 'session-ended: taken': 9 })
})

test('P33: once a stop is answered no server gives the session a key', async () => {
  const accountId = await ownAccount()
  for (let round = 0; round < rounds(5, 100); round++) {
    const userId = newUserId()
    const viewer = await shared.newViewer({ userId, streamLimit: 1 })
    const before = [1, 2, 3, 4].map((window) => outcomeOf(shared.key(viewer, window)))
    await stop(shared.anyServer(), accountId, viewer.state.session)
    const after = await Promise.all(
      shared.servers.map((server) => outcomeOf(shared.send(shared.sign(viewer, 'key', { argument: '0' }), server))),
    )
    expect(countOf(after)).toEqual({ 'session-ended: stopped': 3 })
    for (const outcome of await Promise.all(before)) expect(['allowed', 'session-ended: stopped', 'key-pace']).toContain(outcome)
    expect((await shared.rowOf(viewer))?.endReason).toBe('stopped')
    expect(await shared.db.selectFrom('streamSlot').selectAll().where('userId', '=', userId).execute()).toEqual([])
  }
})

test('F-310: what is in memory is saved while a request is decided on, without its session, and waits for nothing', async () => {
  const viewer = await shared.newViewer({ userId: newUserId() })
  const server = shared.anyServer()
  await shared.send(shared.sign(viewer, 'key', { argument: '0' }), server)
  const session = server.sessions.peek(viewer.state.session)
  const seenAtS = session?.lastSeenAtS ?? 0
  shared.passS(10)
  let outcome: Promise<string> | undefined
  await connectTo(databaseUrl)
    .transaction()
    .execute(async (tx) => {
      await tx.selectFrom('keyBudget').select('levelS').forUpdate().execute()
      outcome = outcomeOf(shared.send(shared.sign(viewer, 'key', { argument: '1' }), server))
      await expect.poll(() => session?.lastSeenAtS).toBe(seenAtS + 10) // decided on, and not written: its budget is locked
      await savePlayback(server)
    })
  expect(await outcome).toBe('allowed')
})

/** A session without a view, and what counts views of it. */
async function openUnviewed(server: ReturnType<typeof shared.anyServer>) {
  const batches = openBatches(databaseUrl, toPublicError)
  onTestFinished(() => batches.close())
  const viewer = await shared.newViewer({ userId: newUserId() })
  const row = await findSession(server.db, viewer.state.session)
  if (!row) throw new Error('there is no session')
  const newUsage = () => openUsage({ ...server, batches, servers: { isShared: () => true }, wallNowS: () => 1_800_000_000 })
  return { row, newUsage }
}

test('F-311: views are counted once, and no other write waits while a session to be marked as viewed is locked', async () => {
  const server = shared.anyServer()
  const { row, newUsage } = await openUnviewed(server)
  const countNow = async () => (await countViews(server, row.accountId, [row.videoId]))(row.videoId)
  const countBefore = await countNow()
  const usages = [newUsage(), newUsage()]
  for (const usage of usages) usage.recordView(row)
  let saved: Promise<unknown> | undefined
  await connectTo(databaseUrl)
    .transaction()
    .execute(async (tx) => {
      await tx.selectFrom('playbackSession').select('id').where('id', '=', row.id).forUpdate().execute()
      saved = Promise.all(usages.map((usage) => usage.save()))
      await server.write((own) => own.selectFrom('account').select('id').execute())
    })
  await saved
  expect(await countNow()).toBe(countBefore + 1)
})

test('F-313: a view is marked and counted in one commit, so that a crash between the two loses none', async () => {
  const server = shared.anyServer()
  const { row, newUsage } = await openUnviewed(server)
  const usage = newUsage()
  usage.recordView(row)
  const saveUntilSaved = (): Promise<void> => usage.save().catch(saveUntilSaved) // it waits for a lock for three seconds
  let saved: Promise<void> | undefined
  await connectTo(databaseUrl)
    .transaction()
    .execute(async (tx) => {
      const counter = { videoId: row.videoId, viewCount: 0 }
      await tx
        .insertInto('viewTotal')
        .values(counter)
        .onConflict((known) => known.column('videoId').doUpdateSet({ viewCount: 0 }))
        .execute()
      saved = saveUntilSaved()
      await expect.poll(() => isWaitedFor(tx)).toBe(true)
      expect((await findSession(tx, row.id))?.viewedAtS).toBeNull()
    })
  await saved
  expect((await countViews(server, row.accountId, [row.videoId]))(row.videoId)).toBe(1)
  expect((await findSession(shared.db, row.id))?.viewedAtS).toBe(1_800_000_000)
})

/** Whether another connection waits for a lock of this one. */
async function isWaitedFor(tx: Db): Promise<boolean> {
  const { rows } =
    await sql`select pid from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))`.execute(tx)
  return rows.length > 0
}

test('F-314: a stream that takes the slot of another one locks both sessions in one order', async () => {
  await shared.write((tx) => tx.updateTable('account').set({ streamLimitPolicy: 'stop-oldest' }).execute())
  const userId = newUserId()
  const pair = await Promise.all([1, 2].map(() => shared.newViewer({ userId, streamLimit: 1 })))
  const [oldest, newest] = pair.toSorted((a, b) => (a.state.session < b.state.session ? -1 : 1)) as [Viewer, Viewer]
  await shared.beat(oldest)
  const locking = (tx: Db, { state }: Viewer) =>
    tx.selectFrom('playbackSession').select('id').where('id', '=', state.session).forUpdate()
  let outcome: Promise<string> | undefined
  await connectTo(databaseUrl)
    .transaction()
    .execute(async (tx) => {
      await locking(tx, oldest).execute()
      outcome = outcomeOf(shared.beat(newest))
      await expect.poll(() => isWaitedFor(tx)).toBe(true)
      await locking(tx, newest).noWait().execute()
    })
  expect(await outcome).toBe('allowed')
  expect(await outcomeOf(shared.beat(oldest))).toBe('session-ended: taken')
})

test('P34: what a viewer watches is counted when each beat goes to another server', async () => {
  const userId = newUserId()
  const viewer = await shared.newViewer({ userId })
  for (let window = 0; window < 5; window++) await shared.key(viewer, window)
  for (let second = 0; second <= 48; second += 6) {
    await shared.beat(viewer, { positionS: second })
    shared.passS(6)
  }
  for (const { viewings } of shared.servers) await viewings.save()
  const viewing = await shared.db
    .selectFrom('viewing')
    .select(['watchedS', 'positionS'])
    .where('userId', '=', userId)
    .executeTakeFirst()
  expect(viewing).toEqual({ watchedS: 48, positionS: 48 })
})

test('P35: a session that was idle ends once, with its reason at every server', async () => {
  const viewer = await shared.newViewer()
  await shared.beat(viewer)
  shared.passS(3600)
  const outcomes = await Promise.all([1, 2, 3, 4].map(() => outcomeOf(shared.beat(viewer))))
  expect(countOf(outcomes)).toEqual({ 'session-ended: idle': 4 })
})

test('P36: of browsers that redeem one OTP at several servers at the same time one wins', async () => {
  const ROUND = 20
  for (let round = 0; round < rounds(1, 500); round++) {
    const otps = await Promise.all(Array.from({ length: ROUND }, () => shared.newOtp()))
    const redeems = otps.flatMap((otp) =>
      shared.servers.map((server) => outcomeOf(shared.redeemBy(shared.newBrowser(), otp, {}, server))),
    )
    expect(countOf(await Promise.all(redeems))).toEqual({ allowed: ROUND, 'otp-used': 2 * ROUND })
  }
})

test('F-300: after a crash of PostgreSQL all proofs from before it are stale, also those whose use it has lost; a clean restart loses nothing', async () => {
  const cluster = await startPostgres()
  const crashing = await openSharedPlayback(await openOwnPostgres(cluster))
  onTestFinished(() => crashing.close())
  const viewer = await crashing.newViewer()
  const endings: [() => void | Promise<void>, string][] = [
    [cluster.killProcess, 'proof-stale'],
    [cluster.crash, 'proof-stale'],
    [cluster.stop, 'proof-replayed'],
  ]
  for (const [end, outcome] of endings) {
    const used = crashing.sign(viewer, 'beat')
    await crashing.send(used)
    await end()
    await cluster.start()
    for (const server of crashing.servers) {
      const replayed = () => crashing.send(used, server)
      expect(await outcomeOf(onceAvailable(replayed))).toBe(outcome)
    }
    expect(await outcomeOf(onceAvailable(() => crashing.beat(viewer)))).toBe('allowed')
  }
})

/** Repeats what the database cannot answer yet. */
async function onceAvailable<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      await pause(20)
    }
  }
}

test('F-301: a server that was alone saves what it has in memory before another one answers, and its proofs are stale from then on', async () => {
  let share: (() => Promise<void>) | undefined
  const first = await shared.openServer({
    isShared: () => false,
    onShared(listener) {
      share = listener
    },
  })
  const userId = newUserId()
  const viewer = shared.newBrowser()
  await shared.redeemBy(viewer, await shared.newOtp(3600, { userId }), {}, first)
  const nonce = () => first.nonces.current()
  for (let window = 0; window < 50; window++)
    await shared.send(shared.sign(viewer, 'key', { argument: `${window}`, nonce: nonce() }), first)
  const used = shared.sign(viewer, 'key', { argument: '0', nonce: nonce() })
  const inFlight = shared.send(used, first)
  await share?.()
  await inFlight
  expect(await outcomeOf(shared.send(used))).toBe('proof-stale')
  expect(await outcomeOf(shared.send(used, first))).toBe('proof-stale')
  for (const server of [first, ...shared.servers]) {
    expect(await outcomeOf(shared.send(shared.sign(viewer, 'key', { argument: '49' }), server))).toBe('allowed')
    expect(await outcomeOf(shared.send(shared.sign(viewer, 'key', { argument: '50' }), server))).toBe('key-pace')
  }
})

draw()
