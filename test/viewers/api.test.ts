import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Reelgate, startReelgate } from '../in-process.ts'
import { listTables, readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { type Receivers, startReceivers, webhooksOf } from '../webhooks/receiver.ts'
import { haveWatched } from './watched.ts'

let receivers: Receivers
beforeAll(async () => {
  receivers = await startReceivers()
})
afterAll(() => receivers.close())

type Row = { userId: string; video: string; watchedS: number; intervals: number[][]; completedAt: string | null }

async function rowsOf({ owner }: Reelgate, path: string): Promise<Row[]> {
  const response = await owner.call('GET', path)
  expect(response.status).toBe(200)
  return ((await response.json()) as { rows: Row[] }).rows
}

test('an owner lists what a viewer watched, who watched a video, and the seconds of each day as CSV', async () => {
  const reelgate = await startReelgate({ video: await makeVideo() })
  const { videoId } = reelgate
  for (const userId of ['ann', 'bob', 'cid']) haveWatched(reelgate, userId, 2)
  expect(await rowsOf(reelgate, '/api/viewers/ann')).toMatchObject([
    {
      userId: 'ann',
      video: videoId,
      title: (await reelgate.owner.video(videoId)).title,
      watchedS: 2,
      intervals: [[0, 2]],
      completedAt: null,
    },
  ])
  expect(await rowsOf(reelgate, '/api/viewers/nobody')).toEqual([])
  const first = await reelgate.owner.call('GET', `/api/videos/${videoId}/viewers?limit=2`)
  expect(((await first.json()) as { rows: Row[] }).rows.map(({ userId }) => userId)).toEqual(['cid', 'bob'])
  const [, next = ''] = /<http:\/\/[^/]+([^>]+)>; rel="next"/.exec(first.headers.get('Link') ?? '') ?? []
  expect((await rowsOf(reelgate, next)).map(({ userId }) => userId)).toEqual(['ann'])
  const today = new Date().toISOString().slice(0, 10)
  const csv = await reelgate.owner.call('GET', `/api/viewers?from=${today}&to=${today}`)
  expect(csv.headers.get('Content-Type')).toBe('text/csv; charset=utf-8')
  expect((await csv.text()).split('\r\n').slice(0, 2)).toEqual([
    'date,userId,video,watchedS,name,email',
    `${today},ann,${videoId},2,,`,
  ])
  expect((await reelgate.owner.call('GET', '/api/viewers?from=today&to=2026-11-21')).status).toBe(400)

  const other = await reelgate.newOwner('another account')
  expect((await other.call('GET', `/api/videos/${videoId}/viewers`)).status).toBe(404)
  expect(await (await other.call('GET', '/api/viewers/ann')).json()).toEqual({ rows: [] })
})

test('P-20: what a viewer played is counted from beats and keys, 90 % of its whole seconds are an event, and erasing removes it all', async () => {
  const reelgate = await startReelgate({
    video: await makeVideo({ seconds: 10 }),
    env: { REELGATE_OUTBOUND_ALLOW: receivers.host },
  })
  expect((await reelgate.owner.video(reelgate.videoId)).length).toBeGreaterThan(10) // its sound ends in a whole frame of AAC
  const receiver = receivers.newReceiver()
  await webhooksOf(reelgate.owner).create(receiver.url, 'viewer:completed')
  haveWatched(reelgate, 'ann', 8)
  const viewer = reelgate.newViewer()
  await viewer.redeem(await reelgate.owner.issueOtp(reelgate.videoId, { userId: 'ann' }))
  expect((await viewer.key(0)).status).toBe(200)
  const beat = (positionS: number) =>
    viewer.call('beat', undefined, JSON.stringify({ state: 'playing', positionS, rate: 1, bufferS: 5 }))
  for (const position of [8, 9.2]) expect((await beat(position)).status).toBe(200)
  const [{ event } = { event: undefined }] = await receiver.until(1)
  expect(event).toMatchObject({ event: 'viewer:completed', payload: { id: reelgate.videoId, userId: 'ann', watchedS: 9 } })
  expect(await rowsOf(reelgate, '/api/viewers/ann')).toMatchObject([
    { watchedS: 9, lengthS: 10, completedAt: expect.any(String) },
  ])

  const other = await reelgate.newOwner('another account')
  expect(await (await other.call('DELETE', '/api/viewers/ann')).json()).toEqual({ message: 'Erased', videos: 0, sessions: 0 })
  const erased = await reelgate.owner.call('DELETE', '/api/viewers/ann')
  expect(await erased.json()).toEqual({ message: 'Erased', videos: 1, sessions: 1 })
  expect(await rowsOf(reelgate, '/api/viewers/ann')).toEqual([])
  expect((await viewer.key(0)).status).toBe(403)
})

test('U38: a viewer whose OTPs bring a name has it in every list, next to the id, until the viewer is erased', async () => {
  const reelgate = await startReelgate({ video: await makeVideo() })
  const { owner, videoId } = reelgate
  for (const userId of ['ann', 'bob']) haveWatched(reelgate, userId, 2)
  const otp = await owner.issueOtp(videoId, { userId: 'ann', viewer: { name: '=Ann, of Bonn', email: 'ann@example.org' } })
  const [viewer, stranger] = [reelgate.newViewer(), reelgate.newViewer()]
  await viewer.redeem(otp)
  expect((await viewer.key(0)).status).toBe(200)
  await stranger.redeem(otp) // refused
  // A later one that brings only a name changes that alone.
  await reelgate.newViewer().redeem(await owner.issueOtp(videoId, { userId: 'ann', viewer: { name: 'Ann Lee' } }))
  const today = new Date().toISOString().slice(0, 10)
  const days = `from=${today}&to=${today}`
  const lists = ['/api/sessions', '/api/refusals', '/api/viewers/ann', `/api/videos/${videoId}/viewers`, `/api/watched?${days}`]
  const namesIn = async (path: string) => {
    const rows = (await rowsOf(reelgate, path)) as unknown as { userId: string; viewer: unknown }[]
    return new Map(rows.map(({ userId, viewer: name }) => [userId, name]))
  }
  const ann = { name: 'Ann Lee', email: 'ann@example.org' }
  for (const path of lists) expect.soft((await namesIn(path)).get('ann'), path).toEqual(ann)
  expect((await namesIn(`/api/watched?${days}`)).get('bob')).toBeNull()
  const csv = await (await owner.call('GET', `/api/viewers?${days}`)).text()
  expect(csv.split('\r\n').toSorted()).toContain(`${today},ann,${videoId},2,Ann Lee,ann@example.org`)
  const sessions = await (await owner.call('GET', '/api/sessions?format=csv')).text()
  expect(sessions).toContain(',ann,Ann Lee,ann@example.org,')

  const other = await reelgate.newOwner('another account')
  expect(await (await other.call('GET', '/api/viewers/ann')).json()).toEqual({ rows: [] })
  await owner.call('DELETE', '/api/viewers/ann')
  expect(readRows(reelgate, 'select * from viewer')).toEqual([])
  expect(await (await owner.call('GET', '/api/viewers/ann')).json()).toEqual({ rows: [] })
})

test('erasing a viewer leaves the name in no row but those of webhook deliveries, also after what was in memory is saved', async () => {
  const reelgate = await startReelgate({ video: await makeVideo(), env: { REELGATE_OUTBOUND_ALLOW: receivers.host } })
  const { owner, videoId } = reelgate
  await webhooksOf(owner).create(receivers.newReceiver().url, 'session:suspicious')
  const [userId, email] = ['ann-7f3a9c', 'ann-7f3a9c@example.org']
  const options = { userId, streamLimit: 2, annotate: [{ type: 'rtext', text: '{email}' }], viewer: { email } }
  const [otp, unspent, other] = [
    await owner.issueOtp(videoId, options),
    await owner.issueOtp(videoId, options),
    await owner.issueOtp(videoId, { userId: 'ben' }),
  ]
  const viewer = reelgate.newViewer()
  await viewer.redeem(otp)
  await reelgate.newViewer().redeem(otp) // an alert, an audit event and a delivery
  const beat = (positionS: number) =>
    viewer.call('beat', undefined, JSON.stringify({ state: 'playing', positionS, rate: 1, bufferS: 5 }))
  const watch = async () => {
    await viewer.download('1')
    for (const position of [0, 1.5]) expect((await beat(position)).status).toBe(200)
  }
  await watch()
  const tablesOf = (text: string) =>
    listTables(reelgate).filter((table) => JSON.stringify(readRows(reelgate, `select * from ${table}`)).includes(text))
  const stored = ['alert', 'delivery', 'key_budget', 'otp', 'playback_session', 'stream_slot', 'video_usage', 'viewer', 'viewing']
  await expect.poll(() => tablesOf(userId)).toEqual(expect.arrayContaining(stored))
  const sentBytes = () => readRows(reelgate, 'select sum(sent_bytes) as sent from video_usage')
  const before = sentBytes()
  await watch() // in memory alone
  expect((await reelgate.cli('session', 'stop', 'owner', '--user-id', userId)).code).toBe(0)

  expect((await reelgate.cli('viewer', 'erase', userId)).code).toBe(0)
  expect(tablesOf(userId)).toEqual(['delivery'])
  expect(Number(sentBytes()[0]?.sent)).toBeGreaterThan(Number(before[0]?.sent))
  expect((await reelgate.newViewer().redeem(unspent)).body).toMatchObject({ code: 'otp-unknown' })
  expect((await reelgate.newViewer().redeem(other)).playing).toBe(true)
  await reelgate.stop()
  expect(tablesOf(userId)).toEqual(['delivery'])
  expect(tablesOf('ben')).toContain('otp')
})
