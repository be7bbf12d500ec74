import { setInterval } from 'node:timers'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { addAccount } from '../../src/accounts/account.ts'
import { insertVideo } from '../../src/catalogue/video-store.ts'
import { parseMasterKey } from '../../src/crypto/master-key.ts'
import { newId } from '../../src/crypto/secret.ts'
import type { DeliveryRow, WebhookRow } from '../../src/db/tables.ts'
import { insertClaim } from '../../src/jobs/claim-store.ts'
import type { Claims } from '../../src/jobs/claims.ts'
import { createOutboundPolicy } from '../../src/outbound/policy.ts'
import { createSignals } from '../../src/signals/signals.ts'
import { pruneDeliveries } from '../../src/webhooks/batch-jobs.ts'
import { replayDeliveries } from '../../src/webhooks/delivery-log.ts'
import {
  claimDelivery,
  type DeliveryKind,
  failPendingBatch,
  otherKind,
  releaseDeliveries,
  replayFailedBatch,
  settleDelivery,
} from '../../src/webhooks/delivery-store.ts'
import { addVideoEvents } from '../../src/webhooks/outbox.ts'
import { retryDelayS } from '../../src/webhooks/schedule.ts'
import { startWebhookSender } from '../../src/webhooks/sender.ts'
import { createWebhook, rotateSecret, setWebhookEnabled } from '../../src/webhooks/webhook.ts'
import { beginReplay, disableWebhook } from '../../src/webhooks/webhook-store.ts'
import { openTestClaims } from '../claims.ts'
import { openOwnDatabase } from '../db/database.ts'
import { findFreePort } from '../free-port.ts'
import { sampleOf } from '../sample.ts'
import { rounds } from '../seeded-random.ts'
import { type Answer, type Receivers, startReceivers, verify } from './receiver.ts'

// Deliveries over days: a real database and real endpoints, and a clock that the test moves.

const DAY_S = 24 * 3600
let receivers: Receivers
let deadHost: string
beforeAll(async () => {
  receivers = await startReceivers()
  deadHost = `127.0.0.1:${await findFreePort()}`
})
afterAll(() => receivers.close())

/** An installation without its server: its endpoints, its events, and as many senders as the test starts. */
async function newOutbox() {
  const { db, slowQueryDb, write } = await openOwnDatabase()
  const clock = { nowS: Math.floor(Date.now() / 1000) }
  const nowS = () => clock.nowS
  const deps = {
    ...{ db, slowQueryDb, write, signals: createSignals(write), nowS, wallNowS: nowS, log: pino({ level: 'silent' }) },
    copy: { isPaused: () => false },
    masterKey: parseMasterKey(Buffer.alloc(32, 7)),
    outbound: createOutboundPolicy([receivers.host, deadHost]),
  }
  const newAccount = async () => {
    const switches = { mayUpload: true, mayImport: true }
    const { accountId } = await write((tx) =>
      addAccount(tx, { name: 'an owner', ...switches, createdAtS: nowS(), by: 'command-line' }),
    )
    const videoId = newId()
    await write((tx) => insertVideo(tx, accountId, { id: videoId, title: 'A video', uploadTimeS: nowS() }))
    return { accountId, videoId }
  }
  const { accountId, videoId } = await newAccount()
  const webhookRow = (id: string): Promise<WebhookRow> =>
    db.selectFrom('webhook').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  return {
    ...{ deps, db, write, clock, accountId, videoId, newAccount, webhookRow },
    target: (webhookId: string) => ({ accountId, by: 'command-line' as const, webhookId }),
    newWebhook: (url: string, owner = accountId) =>
      createWebhook(deps, { accountId: owner, by: 'command-line', url, event: undefined, isEnabled: true }),
    /** So many events of one video, whose webhooks all hear them. */
    happen: (times = 1, of = videoId) =>
      write(async (tx) => {
        for (let n = 0; n < times; n++) await addVideoEvents(tx, 'video:ready', [of])
      }),
    deliveries: (webhookId: string): Promise<DeliveryRow[]> =>
      db.selectFrom('delivery').selectAll().where('webhookId', '=', webhookId).orderBy('sequence').execute(),
    async start(readFrom = db) {
      const claims = await openTestClaims(deps, { webhook: releaseDeliveries })
      const noMore = Promise.withResolvers<void>()
      const claimNext: Claims['claimNext'] = async (work) => {
        const job = await claims.claimNext(work)
        if (!job) noMore.resolve()
        return job
      }
      const sending = startWebhookSender({ ...deps, db: readFrom, claims: { claimNext }, onDisabled: async () => undefined })
      let stopped: Promise<void> | undefined
      const stop = () => {
        stopped ??= sending.stop()
        return stopped
      }
      onTestFinished(stop)
      return { stop, hasFoundNoMore: noMore.promise }
    },
  }
}

type Outbox = Awaited<ReturnType<typeof newOutbox>>

const answering =
  (status: number, headers: Record<string, string> = {}): Answer =>
  (response) =>
    response.writeHead(status, headers).end()

/** Resolves with a delivery once an attempt at it has ended. */
async function afterAttempt({ deliveries }: Outbox, webhookId: string, attempts: number, sequence = 1): Promise<DeliveryRow> {
  const find = async () => (await deliveries(webhookId)).find((delivery) => delivery.sequence === sequence)
  await expect
    // Half a minute is promised: fifteen seconds for an attempt, and what the machine takes.
    .poll(async () => ((found) => found && [found.attempts, found.state !== 'sending'])(await find()))
    .toEqual([attempts, true])
  const found = await find()
  if (!found) throw new Error('there is no such delivery')
  return found
}

test('W04: the next attempt at an event has the same id and body, a new timestamp and a new signature', async () => {
  const outbox = await newOutbox()
  const receiver = receivers.newReceiver(answering(500))
  const webhook = await outbox.newWebhook(receiver.url)
  await outbox.start()
  await outbox.happen()
  await afterAttempt(outbox, webhook.id, 1)
  outbox.clock.nowS += 10
  receiver.answer(answering(204))
  const [first, second] = await receiver.until(2)
  expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id'])
  expect(second?.body).toBe(first?.body)
  for (const name of ['webhook-timestamp', 'webhook-signature']) expect(second?.headers[name]).not.toBe(first?.headers[name])
  for (const received of receiver.received) verify(webhook.secret, received)
  expect(await afterAttempt(outbox, webhook.id, 2)).toMatchObject({ state: 'delivered', status: 204, problem: null })
})

test('W16: while new events keep coming, what failed once is tried again: retries and new events take turns', async () => {
  const outbox = await newOutbox()
  const failing = rounds(8, 20)
  const seen = new Set<unknown>()
  const receiver = receivers.newReceiver((response, n) => {
    const { sequence } = receiver.received[n]?.event ?? { sequence: 0 }
    const isFirstFailure = sequence <= failing && !seen.has(sequence)
    seen.add(sequence)
    if (!isFirstFailure) void outbox.happen() // so that a new event always waits
    response.writeHead(isFirstFailure ? 500 : 204).end()
  })
  const webhook = await outbox.newWebhook(receiver.url)
  await outbox.happen(failing)
  await outbox.start()
  const clock = setInterval(() => {
    outbox.clock.nowS += 90 // over each back-off
  }, 20)
  onTestFinished(() => clearInterval(clock))
  const isDelivered = ({ sequence, state }: DeliveryRow) => sequence <= failing && state === 'delivered'
  await expect.poll(async () => (await outbox.deliveries(webhook.id)).filter(isDelivered).length).toBe(failing)
})

test('W16: the sender claims a due retry and a new event by turns', async () => {
  const outbox = await newOutbox()
  const { id } = await outbox.newWebhook('http://www.example.org/hook')
  await outbox.happen(6)
  const failed = { dueAtS: 5, attempts: 1 }
  await outbox.write((tx) => tx.updateTable('delivery').set(failed).where('sequence', 'in', [1, 2]).execute())
  const claimed: number[] = []
  for (let first: DeliveryKind = 'retry'; claimed.length < 6; ) {
    const next = await outbox.write(async (tx) => {
      const claim = await claimDelivery(tx, id, outbox.clock.nowS, first)
      if (claim) await settleDelivery(tx, claim.delivery, { state: 'delivered', finishedAtS: outbox.clock.nowS })
      return claim
    })
    if (!next) break
    claimed.push(next.delivery.sequence)
    first = otherKind(next.kind)
  }
  expect(claimed).toEqual([1, 3, 2, 4, 5, 6])
})

test('W05: for a day after a rotation both secrets verify what is sent, then the new one alone', async () => {
  const outbox = await newOutbox()
  const receiver = receivers.newReceiver()
  const webhook = await outbox.newWebhook(receiver.url)
  await outbox.start()
  const rotated = await rotateSecret(outbox.deps, outbox.target(webhook.id))
  await outbox.happen()
  const [during] = await receiver.until(1)
  if (!during) throw new Error('nothing came')
  expect(String(during.headers['webhook-signature']).split(' ')).toHaveLength(2)
  for (const secret of [webhook.secret, rotated]) verify(secret, during)

  outbox.clock.nowS += DAY_S
  await outbox.happen()
  const after = (await receiver.until(2))[1]
  if (!after) throw new Error('nothing came')
  expect(String(after.headers['webhook-signature']).split(' ')).toHaveLength(1)
  expect(after.headers['webhook-signature']).not.toBe(during.headers['webhook-signature'])
})

const HANGS: Answer = () => {}
const DRIPS_HEADERS: Answer = ({ socket }) => drip('HTTP/1.1 200 OK\r\nX-Slow: ', socket)
const DRIPS_BODY: Answer = (response) => drip('', response.writeHead(200))
const ENDLESS: Answer = (response) => {
  response.writeHead(200, { 'Content-Length': String(10 * 2 ** 30) })
  const pour = () => {
    while (!response.destroyed && response.write(Buffer.alloc(65_536)));
  }
  response.on('drain', pour).on('error', () => {})
  pour()
}
const BREAKS_OFF: Answer = ({ socket }) => socket?.end('HTTP/1.1 200 O')

function drip(
  first: string,
  stream: { write(text: string): unknown; once(event: 'close', listener: () => void): unknown } | null,
) {
  stream?.write(first)
  const timer = setInterval(() => stream?.write('x'), 50)
  stream?.once('close', () => clearInterval(timer))
}

type ReceiverCase = [string, Answer, { state: string; status: number | null; problem: RegExp | null }]

/** Attempts at these end after fifteen seconds. */
const SLOW_RECEIVERS: readonly ReceiverCase[] = [
  ['hangs', HANGS, { state: 'waiting', status: null, problem: /did not answer in time|took too long/ }],
  [
    'sends one byte of its headers after the other',
    DRIPS_HEADERS,
    { state: 'waiting', status: null, problem: /too long|in time/ },
  ],
]
const RECEIVERS: readonly ReceiverCase[] = [
  ['closes in the middle of its headers', BREAKS_OFF, { state: 'waiting', status: null, problem: /connection failed/ }],
  ['sends one byte of its body after the other', DRIPS_BODY, { state: 'delivered', status: 200, problem: null }],
  ['sends a body of 10 GB', ENDLESS, { state: 'delivered', status: 200, problem: null }],
  ['answers 204', answering(204), { state: 'delivered', status: 204, problem: null }],
  ['answers 500', answering(500), { state: 'waiting', status: 500, problem: /^The endpoint returned 500\.$/ }],
  ['answers 404', answering(404), { state: 'waiting', status: 404, problem: /^The endpoint returned 404\.$/ }],
  [
    'answers 302 (W02)',
    answering(302, { Location: '/' }),
    { state: 'waiting', status: 302, problem: /redirects are not followed/ },
  ],
  ['answers 308 without saying where (W02)', answering(308), { state: 'waiting', status: 308, problem: /redirects are not/ }],
]

test.each([...sampleOf('slow receivers of webhooks', SLOW_RECEIVERS, 1), ...sampleOf('receivers of webhooks', RECEIVERS, 4)])(
  'W06: of a receiver that %s the outcome is known in half a minute, and its connection ends',
  async (_, answer, expected) => {
    const outbox = await newOutbox()
    const closed = Promise.withResolvers<void>()
    const receiver = receivers.newReceiver((response, n) => {
      response.socket?.once('close', () => closed.resolve())
      answer(response, n)
    })
    const webhook = await outbox.newWebhook(receiver.url)
    await outbox.start()
    await outbox.happen()
    const { state, status, problem } = await afterAttempt(outbox, webhook.id, 1)
    expect({ state, status }).toEqual({ state: expected.state, status: expected.status })
    if (expected.problem) expect(problem).toMatch(expected.problem)
    else expect(problem).toBeNull()
    await closed.promise
    expect(receiver.received).toHaveLength(1)
  },
)

const RETRY_AFTERS: readonly [string, number][] = [
  ['3600', 3600],
  ['an HTTP date in an hour', 3600],
  ['a year', DAY_S],
  ['-5', 5],
  ['soon', 5],
]

test.each(sampleOf('values of Retry-After', RETRY_AFTERS, 2))(
  'W06: a Retry-After of %s leaves the endpoint alone for as long, for a day at most',
  async (asked, waitS) => {
    const outbox = await newOutbox()
    const { clock } = outbox
    const text = asked.includes('date')
      ? new Date((clock.nowS + 3600) * 1000).toUTCString()
      : asked === 'a year'
        ? String(365 * DAY_S)
        : asked
    const receiver = receivers.newReceiver((response, n) =>
      answering(n % 2 === 0 ? 429 : 503, { 'Retry-After': text })(response, n),
    )
    const witness = receivers.newReceiver()
    const webhook = await outbox.newWebhook(receiver.url)
    await outbox.newWebhook(witness.url)
    await outbox.start()
    await outbox.happen()
    const { dueAtS } = await afterAttempt(outbox, webhook.id, 1)
    expect(Math.abs(dueAtS - clock.nowS - waitS)).toBeLessThanOrEqual(1)
    await outbox.happen() // what comes meanwhile waits, too
    const { nextAttemptAtS } = await outbox.webhookRow(webhook.id)
    expect(nextAttemptAtS).toBeGreaterThanOrEqual(waitS > 5 ? dueAtS : clock.nowS + 1)
    clock.nowS = nextAttemptAtS - 1
    await outbox.happen()
    await witness.until(3)
    expect(receiver.received).toHaveLength(1)
    clock.nowS = dueAtS
    await receiver.until(2)
  },
)

test('W06: 410 disables an endpoint immediately; waiting and later deliveries are listed as failed', async () => {
  const outbox = await newOutbox()
  const receiver = receivers.newReceiver(answering(410))
  const webhook = await outbox.newWebhook(receiver.url)
  await outbox.happen(3)
  await outbox.start()
  await expect.poll(async () => (await outbox.webhookRow(webhook.id)).disabledReason).toMatch(/410/)
  await outbox.happen()
  const found = async () => (await outbox.deliveries(webhook.id)).map(({ state, attempts }) => [state, attempts])
  await expect.poll(found).toEqual([
    ['failed', 1],
    ['failed', 0],
    ['failed', 0],
    ['failed', 0],
  ])
  expect(receiver.received).toHaveLength(1)
})

/** How many of an endpoint's deliveries are in each state, and why. */
async function states({ db }: Outbox, webhookId: string) {
  const rows = await db
    .selectFrom('delivery')
    .select(({ fn }) => ['state', 'problem', fn.countAll<number>().as('count')])
    .where('webhookId', '=', webhookId)
    .groupBy(['state', 'problem'])
    .orderBy('state')
    .execute()
  return rows.map(({ state, problem, count }) => [state, problem, count])
}

test('I9: disabling an endpoint that a kill interrupts continues at the next start: all waiting deliveries are listed as failed', async () => {
  const outbox = await newOutbox()
  const receiver = receivers.newReceiver()
  const { id } = await outbox.newWebhook(receiver.url)
  await outbox.happen(600)
  await outbox.write((tx) => disableWebhook(tx, id, 'Enough.'))
  await outbox.write((tx) => failPendingBatch(tx, id, outbox.clock.nowS, 250))
  expect(await states(outbox, id)).toEqual([
    ['failed', 'Enough.', 250],
    ['waiting', null, 350],
  ])
  await outbox.start()
  await pruneDeliveries(outbox.deps)
  expect(await states(outbox, id)).toEqual([['failed', 'Enough.', 600]])
  expect(receiver.received).toEqual([])
})

test('an endpoint that is switched on again is sent what comes, and nothing of what waited when it went off', async () => {
  const outbox = await newOutbox()
  const receiver = receivers.newReceiver()
  const { id } = await outbox.newWebhook(receiver.url)
  await outbox.happen(600)
  await outbox.write((tx) => disableWebhook(tx, id, 'Enough.'))
  await setWebhookEnabled(outbox.deps, outbox.target(id), true)
  await outbox.start()
  await outbox.happen()
  expect((await receiver.until(1)).map(({ event }) => event.sequence)).toEqual([601])
  await expect
    .poll(() => states(outbox, id))
    .toEqual([
      ['delivered', null, 1],
      ['failed', 'Enough.', 600],
    ])
  for (const isOn of [false, true]) await setWebhookEnabled(outbox.deps, outbox.target(id), isOn)
  expect(await replayDeliveries(outbox.deps, outbox.target(id))).toBe(600)
})

test('I9: a replay that a kill interrupts continues at the next start, each delivery once; disabling the endpoint ends it', async () => {
  const outbox = await newOutbox()
  const { id } = await outbox.newWebhook(receivers.newReceiver().url)
  await outbox.happen(600)
  const setOn = (isOn: boolean) => setWebhookEnabled(outbox.deps, outbox.target(id), isOn)
  const beginAndStop = () =>
    outbox.write(async (tx) => {
      await beginReplay(tx, id)
      await replayFailedBatch(tx, id, 250)
    })
  await setOn(false)
  await setOn(true)
  await beginAndStop()
  expect((await outbox.deliveries(id)).map(({ state }) => state).lastIndexOf('waiting')).toBe(249)
  await outbox.write((tx) => claimDelivery(tx, id, outbox.clock.nowS, 'new'))
  await pruneDeliveries(outbox.deps)
  const all = (await outbox.deliveries(id)).map(({ state }) => state)
  expect([all[0], new Set(all.slice(1))]).toEqual(['sending', new Set(['waiting'])])

  await setOn(false)
  await setOn(true)
  await beginAndStop()
  await setOn(false)
  await pruneDeliveries(outbox.deps)
  expect(new Set((await outbox.deliveries(id)).slice(1).map(({ state }) => state))).toEqual(new Set(['failed']))
})

test('an event is tried ten times in three days, further and further apart, then listed as failed, and sent once more by a replay', async () => {
  const outbox = await newOutbox()
  const { clock } = outbox
  const receiver = receivers.newReceiver(answering(500))
  const webhook = await outbox.newWebhook(receiver.url)
  await outbox.start()
  await outbox.happen()
  const startedAtS = clock.nowS
  const gapsS: number[] = []
  for (let attempts = 1; attempts < 10; attempts++) {
    const { state, dueAtS } = await afterAttempt(outbox, webhook.id, attempts)
    expect(state).toBe('waiting')
    gapsS.push(dueAtS - clock.nowS)
    clock.nowS = dueAtS
  }
  expect(await afterAttempt(outbox, webhook.id, 10)).toMatchObject({
    state: 'failed',
    status: 500,
    problem: 'The endpoint returned 500.',
  })
  // Each is spread by a tenth, so that of two long ones the shorter may come out longer.
  const middlesS = gapsS.map((_, index) => retryDelayS(index + 1, () => 0.5) ?? 0)
  expect(middlesS).toEqual([...middlesS].sort((a, b) => a - b))
  for (const [index, gapS] of gapsS.entries()) expect(Math.abs(gapS / (middlesS[index] ?? 0) - 1)).toBeLessThan(0.2)
  const days = (clock.nowS - startedAtS) / DAY_S
  expect(days).toBeGreaterThan(2.5)
  expect(days).toBeLessThan(4)
  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1)

  receiver.answer(answering(204))
  expect(await replayDeliveries(outbox.deps, outbox.target(webhook.id))).toBe(1)
  clock.nowS += 60 // the endpoint rests after its failures
  await receiver.until(11)
  expect(await afterAttempt(outbox, webhook.id, 1)).toMatchObject({ state: 'delivered' })
})

test('waits are spread by a tenth either way, so that a crowd does not come back as one', () => {
  for (let attempts = 1; attempts < 10; attempts++) {
    const [least = 0, most = 0] = [retryDelayS(attempts, () => 0), retryDelayS(attempts, () => 1)]
    const middle = retryDelayS(attempts, () => 0.5) ?? 0
    expect(Math.abs(least - 0.9 * middle)).toBeLessThanOrEqual(1)
    expect(Math.abs(most - 1.1 * middle)).toBeLessThanOrEqual(1)
  }
  expect(retryDelayS(10)).toBeUndefined()
})

test('W08: ten thousand events to an endpoint that hangs hold up no other, of the same account or another', async () => {
  const outbox = await newOutbox()
  const hanging = receivers.newReceiver(HANGS)
  const webhook = await outbox.newWebhook(hanging.url)
  for (let n = 0; n < 20; n++) await outbox.happen(500)
  const other = await outbox.newAccount()
  const [near, far] = [receivers.newReceiver(), receivers.newReceiver()]
  await outbox.newWebhook(near.url)
  await outbox.newWebhook(far.url, other.accountId)
  await outbox.start()
  await hanging.until(1)
  await outbox.happen(50)
  await outbox.happen(50, other.videoId)
  await near.until(50)
  await far.until(50)
  for (const { received } of [near, far]) {
    const numbers = received.map(({ event }) => event.sequence)
    expect(numbers).toEqual(numbers.map((_, n) => n + 1))
  }
  expect(hanging.received.length).toBeLessThanOrEqual(2) // one at a time
  expect((await outbox.deliveries(webhook.id)).length).toBe(10_050)
})

test('W08: as many hanging endpoints as there are owners leave room for those that answer', async () => {
  const outbox = await newOutbox()
  const hanging = receivers.newReceiver(HANGS)
  for (let account = 0; account < 6; account++) {
    const { accountId, videoId } = await outbox.newAccount()
    for (let n = 0; n < 20; n++) await outbox.newWebhook(`${hanging.url}`, accountId)
    await outbox.happen(2, videoId)
  }
  // They have failed before: what hangs for the first time may have every place for the length of one attempt.
  await outbox.write((tx) =>
    tx.updateTable('webhook').set({ consecutiveFailures: 3, failingSinceS: outbox.clock.nowS }).execute(),
  )
  await outbox.start()
  await hanging.until(16)
  const receiver = receivers.newReceiver()
  await outbox.newWebhook(receiver.url)
  await outbox.happen(20)
  await receiver.until(20)
  expect(hanging.received.length).toBe(16)
})

test('W08: one account’s twenty endpoints that hang for the first time take eight places, and others are served', async () => {
  const outbox = await newOutbox()
  const hanging = receivers.newReceiver(HANGS)
  for (let n = 0; n < 20; n++) await outbox.newWebhook(hanging.url)
  await outbox.happen(2)
  await outbox.start()
  await hanging.until(8)
  const other = await outbox.newAccount()
  const receiver = receivers.newReceiver()
  await outbox.newWebhook(receiver.url, other.accountId)
  await outbox.happen(20, other.videoId)
  await receiver.until(20)
  expect(hanging.received.length).toBe(8)
})

test('W08: an endpoint dead for five days is switched off, on record, and everything that waits for it is listed as failed', async () => {
  const outbox = await newOutbox()
  const { clock } = outbox
  const webhook = await outbox.newWebhook(`http://${deadHost}/`)
  for (let n = 0; n < 20; n++) await outbox.happen(500)
  await outbox.start()
  const startedAtS = clock.nowS
  const attemptsADay = rounds(2, 4)
  for (let failures = 1; (await outbox.webhookRow(webhook.id)).disabledReason === null; failures++) {
    await expect.poll(async () => (await outbox.webhookRow(webhook.id)).consecutiveFailures).toBe(failures)
    expect(failures).toBeLessThan(30)
    clock.nowS += DAY_S / attemptsADay
  }
  expect(clock.nowS - startedAtS).toBeGreaterThanOrEqual(5 * DAY_S)
  expect(await outbox.webhookRow(webhook.id)).toMatchObject({ disabledReason: 'No successful delivery for five days.' })
  await expect.poll(async () => new Set((await states(outbox, webhook.id)).map(([state]) => state))).toEqual(new Set(['failed']))
  const act = await outbox.db.selectFrom('auditEvent').selectAll().where('kind', '=', 'hook:disabled').executeTakeFirstOrThrow()
  expect(act).toMatchObject({ accountId: outbox.accountId, actor: 'server', subject: webhook.id })
})

test('C01: a clock that jumps ten years switches no endpoint off that failed once', async () => {
  const outbox = await newOutbox()
  const receiver = receivers.newReceiver(answering(500))
  const webhook = await outbox.newWebhook(receiver.url)
  await outbox.start()
  await outbox.happen()
  await afterAttempt(outbox, webhook.id, 1)
  outbox.clock.nowS += 3650 * DAY_S
  await afterAttempt(outbox, webhook.id, 2)
  expect((await outbox.webhookRow(webhook.id)).disabledReason).toBeNull()
})

test('an event that a receiver never takes holds up none that come after it', async () => {
  const outbox = await newOutbox()
  const receiver = receivers.newReceiver()
  receiver.answer((response, n) => answering(receiver.received[n]?.event.sequence === 1 ? 500 : 204)(response, n))
  const webhook = await outbox.newWebhook(receiver.url)
  await outbox.happen(5)
  await outbox.start()
  await afterAttempt(outbox, webhook.id, 1)
  outbox.clock.nowS += 3
  await receiver.until(5)
  expect(receiver.received.map(({ event }) => event.sequence)).toEqual([1, 2, 3, 4, 5])
})

test('W12: two senders on one database send each event once', async () => {
  const outbox = await newOutbox()
  const list = [receivers.newReceiver(), receivers.newReceiver(), receivers.newReceiver()]
  for (const { url } of list) await outbox.newWebhook(url)
  await outbox.start()
  await outbox.start()
  for (let n = 0; n < 10; n++) await outbox.happen(10)
  for (const receiver of list) await receiver.until(100)
  const openOnes = () => outbox.db.selectFrom('delivery').select('sequence').where('finishedAtS', 'is', null).execute()
  await expect.poll(openOnes).toEqual([])
  for (const { received } of list)
    expect(new Set(received.map(({ headers }) => headers['webhook-id'])).size).toBe(received.length)
})

test('W12: what a sender took and never settled is sent again when its lease has ended, and nothing else to its endpoint before', async () => {
  const outbox = await newOutbox()
  const [taken, other] = [receivers.newReceiver(), receivers.newReceiver()]
  const webhook = await outbox.newWebhook(taken.url)
  await outbox.newWebhook(other.url)
  const { nowS } = outbox.clock
  await outbox.write(async (tx) => {
    await addVideoEvents(tx, 'video:ready', [outbox.videoId])
    await insertClaim(tx, { kind: 'webhook', subject: webhook.id, id: 'gone', server: 'gone', endsAtS: nowS + 60 }, nowS)
    await claimDelivery(tx, webhook.id, nowS, 'new')
  })
  await outbox.start()
  await outbox.happen()
  await other.until(2)
  expect(taken.received).toEqual([])
  outbox.clock.nowS += 60
  await taken.until(2)
  expect(taken.received.map(({ event }) => event.sequence)).toEqual([1, 2])
})

test('F-79: two servers together send to eight endpoints of an account, and to each of them one event', async () => {
  const outbox = await newOutbox()
  const hanging = Array.from({ length: 12 }, () => receivers.newReceiver(HANGS))
  for (const { url } of hanging) await outbox.newWebhook(url)
  const { accountId, videoId } = await outbox.newAccount()
  const other = receivers.newReceiver()
  await outbox.newWebhook(other.url, accountId)
  await outbox.happen(2)
  await outbox.start()
  await outbox.start()
  const received = () => hanging.map((receiver) => receiver.received.length)
  await expect.poll(() => received().filter((count) => count > 0)).toHaveLength(8)
  await outbox.happen(20, videoId)
  await other.until(20) // while both look for more
  expect(received().sort()).toEqual([0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1])
})

test.each([
  { limited: 'an account', most: 8, owners: 1, failures: 0 },
  { limited: 'all endpoints that fail', most: 16, owners: 3, failures: 1 },
])('F-101: what a server claims between two reads of another counts towards the limit of $limited', async (queue) => {
  const outbox = await newOutbox()
  const owners = await Promise.all(Array.from({ length: queue.owners }, outbox.newAccount))
  for (const { accountId, videoId } of owners) {
    for (let n = 0; n < 10; n++) await outbox.newWebhook(receivers.newReceiver(HANGS).url, accountId)
    await outbox.happen(1, videoId)
  }
  await outbox.write((tx) => tx.updateTable('webhook').set({ consecutiveFailures: queue.failures }).execute())
  // One server reads where deliveries are sent to, and then waits before it reads which are due.
  const [hasRead, mayContinue] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const waiting = outbox.db.withPlugin({
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      hasRead.resolve()
      await mayContinue.promise
      return result
    },
  })
  const one = await outbox.start(waiting)
  await hasRead.promise
  const other = await outbox.start()
  await other.hasFoundNoMore
  mayContinue.resolve()
  await one.hasFoundNoMore
  expect(await outbox.db.selectFrom('claim').select('subject').execute()).toHaveLength(queue.most)
})

test('F-09: a stop in the middle of a delivery is immediate and costs no attempt, and the next start sends it', async () => {
  const outbox = await newOutbox()
  const receiver = receivers.newReceiver(HANGS)
  const webhook = await outbox.newWebhook(receiver.url)
  const first = await outbox.start()
  await outbox.happen()
  await receiver.until(1)
  await first.stop()
  expect(await outbox.deliveries(webhook.id)).toMatchObject([{ state: 'waiting', attempts: 0, dueAtS: 0 }])
  expect(await outbox.webhookRow(webhook.id)).toMatchObject({ consecutiveFailures: 0 })
  receiver.answer(answering(204))
  await outbox.start()
  await receiver.until(2)
})

test('a delivery is forgotten a month after its end, one that still waits is not', async () => {
  const outbox = await newOutbox()
  const { clock, deps } = outbox
  const webhooks = [
    await outbox.newWebhook(receivers.newReceiver().url),
    await outbox.newWebhook(receivers.newReceiver(answering(500)).url),
  ]
  const [arrives = '', waits = ''] = webhooks.map(({ id }) => id)
  const sender = await outbox.start()
  await outbox.happen()
  await afterAttempt(outbox, arrives, 1)
  await afterAttempt(outbox, waits, 1)
  await sender.stop()
  const left = async () => [(await outbox.deliveries(arrives)).length, (await outbox.deliveries(waits)).length]
  clock.nowS += 30 * DAY_S
  await pruneDeliveries(deps)
  expect(await left()).toEqual([1, 1])
  clock.nowS += 1
  await pruneDeliveries(deps)
  expect(await left()).toEqual([0, 1])
})
