import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../reelgate.ts'
import { changeRows, readRows } from '../rows.ts'
import { newChance, rounds } from '../seeded-random.ts'
import { type Receivers, startReceivers, verify, webhooksOf } from './receiver.ts'

// W07, I7: the server is killed where an event could be lost. `test/crash` does the same before each of its system calls.

let receivers: Receivers
let reelgate: Reelgate & { remove(): Promise<void> }
const chance = newChance('killed deliveries')
beforeAll(async () => {
  receivers = await startReceivers()
  reelgate = await startSharedReelgate({ env: { REELGATE_OUTBOUND_ALLOW: receivers.host } })
})
afterAll(async () => {
  await reelgate.remove()
  await receivers.close()
})

test('W07, F-27: killed between sending and recording, a delivery comes again under the same id', async () => {
  const { owner } = reelgate
  const killed = Promise.withResolvers<void>()
  const receiver = receivers.newReceiver((response, n) => {
    if (n > 0) return void response.writeHead(204).end()
    reelgate.kill().then(killed.resolve, killed.reject) // it is here, and no client will ever know
  })
  const webhook = await webhooksOf(owner).create(receiver.url)
  const { videoId } = await owner.credentials('A video')
  await owner.delete([videoId]).catch(() => undefined) // the kill may come before its answer
  await killed.promise
  await reelgate.restart()
  const [first, second] = await receiver.until(2)
  expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id'])
  expect(second?.body).toBe(first?.body)
  if (second) verify(webhook.secret, second)
  expect(await webhooksOf(owner).untilNewest(webhook.uuid, 'delivered')).toMatchObject({ attempts: 2 })
  await webhooksOf(owner).remove(webhook.uuid)
})

test('W07, I7: killed at any moment after a change was acknowledged, its event arrives after the restart', async () => {
  const { owner } = reelgate
  const receiver = receivers.newReceiver()
  const { uuid } = await webhooksOf(owner).create(receiver.url)
  const deleted: string[] = []
  for (let round = 0; round < rounds(2, 40); round++) {
    const videoIds: string[] = []
    for (let n = 0; n < 5; n++) videoIds.push((await owner.credentials('A video')).videoId)
    await owner.delete(videoIds)
    deleted.push(...videoIds)
    const arrived = receiver.received.length + Math.floor(chance.between(0, 5))
    await receiver.until(arrived)
    await reelgate.kill()
    await reelgate.restart()
  }
  const received = () => new Set(receiver.received.map(({ event }) => event.payload.id))
  await expect.poll(() => deleted.filter((id) => !received().has(id))).toEqual([])
  await webhooksOf(owner).untilNewest(uuid, 'delivered')
  const rows = readRows<{ sequence: number }>(
    reelgate,
    'select sequence from delivery where webhook_id = ? order by sequence',
    uuid,
  )
  expect(rows.map(({ sequence }) => sequence)).toEqual(deleted.map((_, n) => n + 1))
})

test('I9: killed while an endpoint with thousands of deliveries is switched off, none of them waits in the end and none is sent', async () => {
  const { owner } = reelgate
  const receiver = receivers.newReceiver()
  const { uuid } = await webhooksOf(owner).create(receiver.url)
  await reelgate.kill()
  changeRows(
    reelgate,
    `with recursive numbers (value) as (select 1 union all select value + 1 from numbers where value < 5000)
    insert into delivery (webhook_id, sequence, event, body, time_ms, state, due_at_s)
    select ?, value, 'video:ready', '{}', 0, 'waiting', 99999999999 from numbers`,
    uuid,
  )
  changeRows(reelgate, 'update webhook set last_sequence = 5000 where id = ?', uuid)
  await reelgate.restart()
  const failed = () => readRows(reelgate, "select 1 from delivery where webhook_id = ? and state = 'failed'", uuid).length
  const switching = webhooksOf(owner)
    .set(uuid, 0)
    .catch(() => undefined) // cut off
  await expect.poll(failed, { interval: 1 }).toBeGreaterThan(0)
  await reelgate.kill()
  await switching
  await reelgate.restart()
  await expect.poll(failed).toBe(5000)
  expect(receiver.received).toEqual([])
  await webhooksOf(owner).remove(uuid)
})

test('W07: killed between the answer of a receiver and its record, nothing but a repetition can come of it', async () => {
  const { owner } = reelgate
  const killed = Promise.withResolvers<void>()
  const receiver = receivers.newReceiver((response, n) =>
    response.writeHead(204).end(() => n === 0 && reelgate.kill().then(killed.resolve, killed.reject)),
  )
  const { uuid } = await webhooksOf(owner).create(receiver.url)
  const { videoId } = await owner.credentials('A video')
  // The event may be sent, and the server killed, before the deletion is answered.
  await Promise.allSettled([owner.delete([videoId])])
  await killed.promise
  await reelgate.restart()
  await webhooksOf(owner).untilNewest(uuid, 'delivered')
  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
})
