import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Owner } from '../client.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { changeRows, readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'

// What the charts of an account show: views and bytes by day, and how much of a video was watched.

let reelgate: Reelgate & { remove(): Promise<void> }
let owner: Owner
let videoId: string
beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeVideo() })
  owner = reelgate.owner
  videoId = reelgate.videoId
})
afterAll(() => reelgate?.remove())

const accountId = () =>
  readRows<{ id: string }>(reelgate, 'select account_id as id from video where id = ?', videoId)[0]?.id ?? ''

async function ask<Reply>(path: string, by = owner): Promise<Reply> {
  const response = await by.call('GET', path)
  expect([path, response.status]).toEqual([path, 200])
  return (await response.json()) as Reply
}

describe('views and bytes', () => {
  type Statistics = {
    days: { day: string; views: number; sentBytes: number; storageBytes: number | null }[]
    videos: unknown[]
  }

  function record(day: string, video: string, userId: string, sentBytes: number, views: number): void {
    const sql = 'insert into video_usage (day, account_id, video_id, user_id, sent_bytes, view_count) values (?, ?, ?, ?, ?, ?)'
    changeRows(reelgate, sql, day, accountId(), video, userId, sentBytes, views)
  }

  /** Recent ones: the server takes viewers' names out of old rows meanwhile. */
  const day = (daysAgo: number) => new Date(Date.now() - daysAgo * 86_400_000).toISOString().slice(0, 10)
  const [first, second, third, last] = [day(30), day(29), day(28), day(22)] as const

  test('are summed over viewers for each day of a period, days without any included, and for the most viewed videos', async () => {
    const gone = 'f'.repeat(32)
    record(first, videoId, 'ann', 5_000_000_000, 1)
    record(first, videoId, '', 7, 2)
    record(third, videoId, '', 3, 1)
    record(third, gone, '', 1, 9)
    record(last, videoId, '', 1_000, 50)
    const statistics = await ask<Statistics>(`/api/statistics?from=${first}&to=${third}`)
    expect(statistics).toEqual({
      days: [
        { day: first, views: 3, sentBytes: 5_000_000_007, storageBytes: null },
        { day: second, views: 0, sentBytes: 0, storageBytes: null },
        { day: third, views: 10, sentBytes: 4, storageBytes: null },
      ],
      videos: [
        { video: gone, title: null, views: 9, sentBytes: 1 },
        { video: videoId, title: 'A video', views: 4, sentBytes: 5_000_000_010 },
      ],
    })
    const ofOne = await ask<Statistics>(`/api/statistics?from=${third}&to=${third}&video=${videoId}`)
    expect(ofOne).toEqual({ days: [{ day: third, views: 1, sentBytes: 3, storageBytes: null }], videos: [] })
  })

  /** Such as `2026-11`. */
  const monthsAgo = (ago: number) =>
    new Date(Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth() - ago, 1)).toISOString().slice(0, 7)

  test('U37: are there by month and video, by day, and of a whole period, as CSV, too', async () => {
    const other = await reelgate.newOwner('With usage')
    const [account] = readRows<{ id: string }>(reelgate, `select id from account where name = 'With usage'`)
    const sql = 'insert into video_usage (day, account_id, video_id, user_id, sent_bytes, view_count) values (?, ?, ?, ?, ?, ?)'
    const gone = 'e'.repeat(32)
    const [before, month] = [2, 1].map((ago) => monthsAgo(ago))
    const rows: [string, string, string, number, number][] = [
      [`${before}-28`, gone, '', 5, 1],
      [`${month}-01`, gone, '', 1_000, 2],
      [`${month}-20`, gone, 'ann', 500, 1],
      [`${month}-20`, videoId, '', 7, 4],
    ]
    for (const [on, video, userId, bytes, views] of rows)
      changeRows(reelgate, sql, on, account?.id ?? '', video, userId, bytes, views)
    const period = `from=${before}-01&to=${month}-28`
    const usage = await ask<{ rows: unknown[] }>(`/api/usage?${period}`, other)
    expect(usage.rows).toEqual([
      { span: month, video: videoId, title: 'A video', views: 4, sentBytes: 7 },
      { span: month, video: gone, title: null, views: 3, sentBytes: 1_500 },
      { span: before, video: gone, title: null, views: 1, sentBytes: 5 },
    ])
    const days = await ask<{ rows: { span: string }[] }>(`/api/usage?${period}&by=day`, other)
    expect(days.rows.map(({ span }) => span)).toEqual([`${month}-20`, `${month}-20`, `${month}-01`, `${before}-28`])
    const csv = await (await other.call('GET', `/api/usage?${period}&by=all&format=csv`)).text()
    expect(csv).toBe(
      `span,video,title,views,sentBytes\r\n${before}-01/${month}-28,${gone},,4,1505\r\n${before}-01/${month}-28,${videoId},A video,4,7\r\n`,
    )
    expect(await ask(`/api/usage?${period}`, await reelgate.newOwner('Without usage'))).toEqual({ rows: [] })
    expect((await other.call('GET', '/api/usage?from=2026-11-01&to=2026-11-02&by=year')).status).toBe(400)
  })

  test('come with the storage that was measured on each day, and today with what is stored now, the trash included', async () => {
    const stored = 'insert into storage_day (day, account_id, size_bytes) values (?, ?, ?)'
    changeRows(reelgate, stored, day(9), accountId(), 6_000_000_000)
    changeRows(reelgate, stored, day(8), 'another account', 1)
    const { totalSizeBytes } = await owner.video(videoId)
    async function storage(video = '') {
      const { days } = await ask<Statistics>(`/api/statistics?from=${day(9)}&to=${day(-1)}${video && `&video=${video}`}`)
      return days.map(({ storageBytes }) => storageBytes)
    }
    const latest = async () => (await storage()).findLast((bytes) => bytes !== null)
    expect((await storage()).slice(0, 2)).toEqual([6_000_000_000, null])
    expect(totalSizeBytes).toBeGreaterThan(0)
    expect(await latest()).toBe(totalSizeBytes)
    await owner.call('DELETE', `/api/videos?videos=${videoId}&trash=1`)
    expect(await latest()).toBe(totalSizeBytes)
    await owner.call('POST', '/api/trash/restore', { body: { videos: [videoId] } })
    expect(new Set(await storage(videoId))).toEqual(new Set([null]))
  })

  test('of another account are not in them', async () => {
    const other = await reelgate.newOwner('Another')
    const { days } = await ask<Statistics>(`/api/statistics?from=${first}&to=${last}&video=${videoId}`, other)
    expect(days.every(({ views, sentBytes }) => views === 0 && sentBytes === 0)).toBe(true)
  })

  test.each([
    'from=2026-02-30&to=2026-03-01',
    'from=2026-03-02&to=2026-03-01',
    'from=2020-01-01&to=2026-01-01',
    'from=x&to=y',
    '',
  ])('of "%s", which is no period, are refused', async (query) => {
    expect((await owner.call('GET', `/api/statistics?${query}`)).status).toBe(400)
  })
})

describe('retention', () => {
  type Retention = {
    lengthS: number
    viewers: number
    completed: number
    averageWatchedS: number
    parts: { fromS: number; toS: number; viewers: number }[]
  }

  function watched(userId: string, intervals: string, watchedS: number, completedAtS: number | null): void {
    const columns = 'account_id, user_id, video_id, intervals, watched_s, position_s, began_at_s, last_at_s, completed_at_s'
    const values = [accountId(), userId, videoId, intervals, watchedS, 0, 1, 1, completedAtS]
    changeRows(reelgate, `insert into viewing (${columns}) values (?, ?, ?, ?, ?, ?, ?, ?, ?)`, ...values)
  }

  test('is how many viewers watched each part of the video, whatever they skipped', async () => {
    const path = `/api/videos/${videoId}/retention`
    const before = await ask<Retention>(path)
    expect(before).toMatchObject({ viewers: 0, averageWatchedS: 0 })
    const seconds = Math.floor(before.lengthS) // what is watched is whole seconds, so the rest is in no part
    expect(seconds).toBeGreaterThanOrEqual(2)
    watched('ann', `0 ${seconds}`, seconds, 1)
    watched('bob', '0 1', 1, null)
    watched('cid', `1 ${seconds + 5}`, seconds - 1, null) // the length may have been measured again
    const after = await ask<Retention>(path)
    expect(after).toMatchObject({ viewers: 3, completed: 1, averageWatchedS: Math.round((20 * seconds) / 3) / 10 })
    expect(after.parts).toHaveLength(seconds)
    expect(after.parts.map(({ viewers }) => viewers)).toEqual([2, ...Array(seconds - 1).fill(2)])
    expect(after.parts.at(-1)?.toS).toBe(seconds)
  })

  test('of another account’s video does not exist', async () => {
    const other = await reelgate.newOwner('A third')
    expect((await other.call('GET', `/api/videos/${videoId}/retention`)).status).toBe(404)
    expect((await other.call('GET', `/api/videos/${videoId}/history`)).status).toBe(404)
  })
})

test('the account says what its videos take on the disk, in the trash and not', async () => {
  type Account = { usage: { storedBytes: number; trashedBytes: number }; retention: Record<string, number> }
  const { totalSizeBytes } = await owner.video(videoId)
  const before = await ask<Account>('/api/account')
  expect(before.usage).toEqual({ storedBytes: totalSizeBytes, trashedBytes: 0 })
  expect(before.retention).toEqual({ trashDays: 7, auditLogDays: 366, viewerDataDays: 90, statisticsDays: 400 })
  await owner.call('DELETE', `/api/videos?videos=${videoId}&trash=1`)
  expect((await ask<Account>('/api/account')).usage).toEqual({ storedBytes: 0, trashedBytes: totalSizeBytes })
  await owner.call('POST', '/api/trash/restore', { body: { videos: [videoId] } })
})
