import { openAsBlob } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { untilFinished } from '../data-folder.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { newFolder } from '../pipeline/videos.ts'
import { makeVideo } from '../videos.ts'
import { type Received, type Receivers, startReceivers, verify, webhooksOf } from './receiver.ts'

// What owners receive about their videos, by a server as it is shipped.

let receivers: Receivers
let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  receivers = await startReceivers()
  reelgate = await startSharedReelgate({
    env: { REELGATE_OUTBOUND_ALLOW: receivers.host, REELGATE_TRUSTED_PROXIES: '127.0.0.1' },
  })
})
afterAll(async () => {
  await reelgate.remove()
  await receivers.close()
})

function viewerAt(address: string) {
  const viewer = reelgate.newViewer()
  viewer.state.headers['X-Forwarded-For'] = address
  return viewer
}

const namesOf = (received: readonly Received[]) => received.map(({ event }) => event.event)

test('W03, W09, W11: a video’s owner gets ready, readyall and deleted, in order, signed and with the payload of the contract', async () => {
  const owner = await reelgate.newOwner('hears all')
  const receiver = receivers.newReceiver()
  const webhook = await webhooksOf(owner).create(receiver.url)
  const before = Date.now()
  const upload = await owner.credentials('A video of ü')
  const { videoId } = upload
  await owner.call('POST', '/api/videos/tags', { body: { videos: [videoId], tags: ['news', 'b'] } })
  await owner.send(upload, await openAsBlob(await makeVideo({ seconds: 6 })))
  await untilFinished(reelgate, videoId)
  const { length } = await owner.video(videoId)
  await receiver.until(2)
  await owner.delete([videoId])
  const received = await receiver.until(3)

  expect(namesOf(received)).toEqual(['video:ready', 'video:readyall', 'video:deleted'])
  expect(received.map(({ event }) => event.sequence)).toEqual([1, 2, 3])
  const { upload_time } = received[0]?.event.payload ?? {}
  for (const { event, headers, body } of received) {
    expect(Object.keys(event)).toEqual(['hookId', 'event', 'time', 'sequence', 'payload'])
    expect(event.hookId).toBe(webhook.uuid)
    expect(event.time).toBeGreaterThanOrEqual(before)
    expect(event.time).toBeLessThanOrEqual(Date.now())
    expect(event.payload).toEqual({
      id: videoId,
      title: 'A video of ü',
      upload_time,
      tags: ['news', 'b'],
      length,
      status: 'ready',
    })
    expect(headers['content-type']).toBe('application/json')
    expect(verify(webhook.secret, { body, headers })).toEqual(event)
    expect(() => verify(webhook.secret, { body: body.replace('video', 'vIdeo'), headers })).toThrow()
    expect(() => verify(`whsec_${Buffer.alloc(32).toString('base64')}`, { body, headers })).toThrow()
  }
  expect(upload_time).toBeGreaterThanOrEqual(Math.floor(before / 1000) - 1)
  expect(new Set(received.map(({ headers }) => headers['webhook-id'])).size).toBe(3)
})

test('an owner gets an event for a failed video, and a webhook for one event gets no other', async () => {
  const owner = await reelgate.newOwner('hears of failures')
  const [all, failures, deletions] = [receivers.newReceiver(), receivers.newReceiver(), receivers.newReceiver()]
  await webhooksOf(owner).create(all.url, '*')
  await webhooksOf(owner).create(failures.url, 'video:failed')
  await webhooksOf(owner).create(deletions.url, 'video:deleted')
  const text = join(await newFolder(), 'video.mp4')
  await writeFile(text, 'no video at all')
  const videoId = await owner.upload('No video', text)
  await failures.until(1)
  await owner.delete([videoId])
  await deletions.until(1)
  await all.until(2)
  expect(namesOf(all.received)).toEqual(['video:failed', 'video:deleted'])
  expect(namesOf(failures.received)).toEqual(['video:failed'])
  expect(namesOf(deletions.received)).toEqual(['video:deleted'])
  expect(failures.received[0]?.event.payload).toMatchObject({ id: videoId, status: 'Not a media file', length: 0, tags: [] })
})

test('otp:reused comes once per OTP, with both addresses, and says nothing that plays', async () => {
  const owner = await reelgate.newOwner('hears of reuse')
  const receiver = receivers.newReceiver()
  const videoId = await owner.readyVideo(await makeVideo({ seconds: 6 }))
  await webhooksOf(owner).create(receiver.url, 'otp:reused')
  const otps = [await owner.issueOtp(videoId, { userId: 'ann' }), await owner.issueOtp(videoId)]
  const viewers = otps.map(() => viewerAt('198.51.100.1'))
  for (const [n, otp] of otps.entries()) {
    await viewers[n]?.redeem(otp)
    await viewers[n]?.redeem(otp) // the same browser: no reuse
    for (const address of ['203.0.113.1', '203.0.113.2', '203.0.113.3'])
      expect((await viewerAt(address).redeem(otp)).body).toMatchObject({ code: 'otp-used' })
  }
  const received = await receiver.until(2)
  await owner.delete([videoId])
  expect(namesOf(received)).toEqual(['otp:reused', 'otp:reused'])
  expect(received[0]?.event.payload).toMatchObject({ id: videoId, userId: 'ann', addresses: ['198.51.100.1', '203.0.113.1'] })
  expect(received[1]?.event.payload.userId).toBeNull()
  const secrets = [...otps, ...viewers.map(({ state }) => state.session), owner.apiKey]
  for (const { body } of received) for (const secret of secrets) expect(body).not.toContain(secret)
})

test('W09: a delivery stays below 20 kB whatever the video is called and however many tags it has', async () => {
  const owner = await reelgate.newOwner('many tags')
  const receiver = receivers.newReceiver()
  const { videoId } = await owner.credentials('\u0001'.repeat(500))
  const tags = Array.from({ length: 200 }, (_, n) => `${n} ${'😀'.repeat(200)}`)
  for (let first = 0; first < tags.length; first += 100) {
    const answer = await owner.call('POST', '/api/videos/tags', {
      body: { videos: [videoId], tags: tags.slice(first, first + 100) },
    })
    expect(answer.status).toBe(200)
  }
  await webhooksOf(owner).create(receiver.url)
  await owner.delete([videoId])
  const [received] = await receiver.until(1)
  expect(Buffer.byteLength(received?.body ?? '')).toBeLessThan(20_000)
  expect(received?.event.payload.title).toBe('\u0001'.repeat(500))
  expect(received?.event.payload.tags).toEqual(tags.slice(0, received?.event.payload.tags.length))
  expect(received?.event.payload.tags.length).toBeGreaterThan(10)
})

test('a deletion of many videos is as many events, numbered without a gap', async () => {
  const owner = await reelgate.newOwner('deletes many')
  const receiver = receivers.newReceiver()
  const videoIds: string[] = []
  for (let n = 0; n < 30; n++) videoIds.push((await owner.credentials(`Video ${n}`)).videoId)
  await webhooksOf(owner).create(receiver.url)
  await owner.delete([...videoIds, 'f'.repeat(32)])
  const received = await receiver.until(30)
  expect(received.map(({ event }) => event.sequence)).toEqual(videoIds.map((_, n) => n + 1))
  expect(received.map(({ event }) => event.payload.id)).toEqual(videoIds)
})

test('the webhooks of one account receive nothing of another’s videos', async () => {
  const [one, other] = [await reelgate.newOwner('one'), await reelgate.newOwner('other')]
  const [mine, theirs] = [receivers.newReceiver(), receivers.newReceiver()]
  await webhooksOf(one).create(mine.url)
  const webhook = await webhooksOf(other).create(theirs.url)
  const { videoId } = await one.credentials('Mine')
  await one.delete([videoId])
  await mine.until(1)
  expect(await webhooksOf(other).deliveries(webhook.uuid)).toEqual({ count: 0, rows: [] })
  expect(theirs.received).toEqual([])
})

test('the events of a video that came by an upload token have the reference of the token, and no other event has one', async () => {
  const owner = await reelgate.newOwner('has a page')
  const receiver = receivers.newReceiver()
  await webhooksOf(owner).create(receiver.url)
  const body = { origin: 'https://school.example', title: 'Homework', reference: 'student 4711' }
  const made = await owner.call('POST', '/api/upload-tokens', { body })
  const form = new FormData()
  form.append('token', ((await made.json()) as { token: string }).token)
  form.append('file', new Blob(['This is no video. ']), 'a.mp4')
  const headers = { Origin: body.origin }
  const sent = await fetch(`${reelgate.url}/upload`, { method: 'POST', body: form, headers })
  const videoId = sent.headers.get('Reelgate-Video-Id') ?? ''
  await receiver.until(1)
  await owner.delete([videoId, (await owner.credentials('Another way')).videoId])
  const payloads = (await receiver.until(3)).map(({ event }) => [event.event, event.payload.title, event.payload.reference])
  expect(payloads).toEqual([
    ['video:failed', 'Homework', 'student 4711'],
    ['video:deleted', 'Homework', 'student 4711'],
    ['video:deleted', 'Another way', undefined],
  ])
})
