import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Owner } from '../client.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { makeVideo } from '../videos.ts'

// Viewers who were refused, as their owner sees them.

let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeVideo() })
})
afterAll(() => reelgate?.remove())

type Refusal = {
  reason: string
  message: string
  userId: string | null
  video: string
  title: string
  rule: string | null
  count: number
}

async function read(by: Owner = reelgate.owner, path = '/api/refusals'): Promise<{ rows: Refusal[]; next: string | undefined }> {
  const response = await by.call('GET', path)
  expect(response.status).toBe(200)
  const [, next] = /<http:\/\/[^/]+([^>]+)>; rel="next"/.exec(response.headers.get('link') ?? '') ?? []
  return { ...((await response.json()) as { rows: Refusal[] }), next }
}

test('an owner sees who was refused and why, the newest first, page by page; another account sees none of it', async () => {
  const { owner, videoId } = reelgate
  const used = await owner.issueOtp(videoId, { userId: 'ann' })
  expect(await reelgate.newViewer().redeem(used)).toMatchObject({ playing: true })
  expect(await reelgate.newViewer().redeem(used)).toMatchObject({ playing: false })
  const elsewhere = await owner.issueOtp(videoId, { userId: 'bob', ipGeo: { block: ['127.0.0.1'] } })
  expect(await reelgate.newViewer().redeem(elsewhere)).toMatchObject({ playing: false })

  const { rows } = await read()
  expect(rows).toMatchObject([
    { reason: 'place-not-allowed', userId: 'bob', video: videoId, title: 'A video', rule: expect.any(String), count: 1 },
    { reason: 'otp-used', userId: 'ann', message: expect.stringContaining('already used'), rule: null, count: 1 },
  ])
  const first = await read(owner, '/api/refusals?limit=1')
  expect(first.rows).toEqual(rows.slice(0, 1))
  expect((await read(owner, first.next)).rows).toEqual(rows.slice(1))
  expect((await read(owner, `/api/refusals?video=${'0'.repeat(32)}`)).rows).toEqual([])
  expect((await read(await reelgate.newOwner('Another'))).rows).toEqual([])
})

test('U39: a link that is opened directly, or on another site, is listed as refused by its rule, and is an alert', async () => {
  const owner = await reelgate.newOwner('With a site')
  const { videoId } = await owner.credentials('A lesson')
  const otp = await owner.issueOtp(videoId, { userId: 'eva', whitelisthref: 'school.example' })
  const open = (headers: Record<string, string>) => fetch(`${reelgate.url}/player/?otp=${otp}`, { headers })
  expect((await open({ Referer: 'https://lessons.school.example/' })).status).toBe(200)
  expect((await read(owner)).rows).toEqual([])
  expect((await open({ 'Sec-Fetch-Dest': 'document', 'User-Agent': 'A browser' })).status).toBe(403)
  expect((await open({ Referer: 'https://elsewhere.example/' })).status).toBe(403)
  const refused = { reason: 'site-not-allowed', userId: 'eva', video: videoId, rule: 'whitelisthref', count: 1 }
  expect((await read(owner)).rows).toMatchObject([
    { ...refused, site: 'elsewhere.example' },
    { ...refused, site: null, userAgent: 'A browser', address: '127.0.0.1' },
  ])
  expect(await (await owner.call('GET', '/api/alerts?cause=rule-refused')).json()).toMatchObject({
    rows: [{ userId: 'eva', video: videoId, count: 2, numbers: { rule: 'whitelisthref' } }],
  })
})

test('the attempts on one OTP are twenty rows and a count, however often it is tried', async () => {
  const otp = await reelgate.owner.issueOtp(reelgate.videoId, { userId: 'cid', ipGeo: { block: ['127.0.0.1'] } })
  for (let attempt = 0; attempt < 23; attempt++) await reelgate.newViewer().redeem(otp)
  const rows = (await read()).rows.filter(({ userId }) => userId === 'cid')
  expect(rows).toHaveLength(20)
  expect(rows[0]?.count).toBe(4)
})
