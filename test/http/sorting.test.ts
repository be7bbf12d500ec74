import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Owner } from '../client.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { changeRows } from '../rows.ts'

// Lists of videos in other orders than newest first.

let reelgate: Reelgate & { remove(): Promise<void> }
let owner: Owner
const VIDEOS = [
  { title: 'pear', length: 30, size: 5, uploadTime: 40, views: 0 },
  { title: 'Apple', length: 20, size: 7, uploadTime: 10, views: 3 },
  { title: 'apple', length: 20, size: 9, uploadTime: 20, views: 9 },
  { title: 'Zebra', length: 10, size: 1, uploadTime: 30, views: 1 },
] as const
beforeAll(async () => {
  reelgate = await startSharedReelgate()
  owner = reelgate.owner
  const ids: string[] = []
  for (const { title, length, size, uploadTime, views } of VIDEOS) {
    const { videoId } = await owner.credentials(title)
    const sql = 'update video set duration_s = ?, total_size_bytes = ?, upload_time_s = ? where id = ?'
    changeRows(reelgate, sql, length, size, uploadTime, videoId)
    if (views > 0) changeRows(reelgate, 'insert into view_total (video_id, view_count) values (?, ?)', videoId, views)
    ids.push(videoId)
  }
  await owner.call('POST', '/api/videos/tags', { body: { videos: ids.slice(1), tags: ['tagged'] } })
  await (await reelgate.newOwner('Another')).credentials('aardvark of another account')
})
afterAll(() => reelgate?.remove())

const titles = async (query: string) => (await owner.list(query)).rows.map(({ title }) => title)

describe('a list', () => {
  test.each([
    ['title', ['Apple', 'apple', 'pear', 'Zebra']],
    ['-title', ['Zebra', 'pear', 'apple', 'Apple']],
    ['upload_time', ['Apple', 'apple', 'Zebra', 'pear']],
    ['-length', ['pear', 'apple', 'Apple', 'Zebra']],
    ['size', ['Zebra', 'pear', 'Apple', 'apple']],
    ['-views', ['apple', 'Apple', 'Zebra', 'pear']],
    ['', ['Zebra', 'apple', 'Apple', 'pear']],
  ])('sorted by "%s"', async (sort, sorted) => {
    expect(await titles(`?sort=${sort}`)).toEqual(sorted)
  })

  test('is searched and filtered in that order, too, with the number of all matches', async () => {
    expect(await owner.list('?sort=-size&tag=tagged&limit=2')).toMatchObject({
      count: 3,
      rows: [{ title: 'apple' }, { title: 'Apple' }],
    })
    expect(await titles('?sort=-size&q=apple')).toEqual(['apple', 'Apple'])
    expect(await titles('?sort=title&status=PRE-Upload&tag=tagged')).toEqual(['Apple', 'apple', 'Zebra'])
    expect(await owner.list('?sort=title&q=nothing')).toEqual({ count: 0, rows: [] })
  })

  test('is read page by page', async () => {
    const read: string[] = []
    for (let path: string | undefined = '/api/videos?sort=title&limit=3'; path; ) {
      const response = await owner.call('GET', path)
      read.push(...((await response.json()) as { rows: { title: string }[] }).rows.map(({ title }) => title))
      path = /<[^>]*?(\/api\/videos[^>]*)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1]
    }
    expect(read).toEqual(['Apple', 'apple', 'pear', 'Zebra'])
    expect(await titles('?sort=title&page=1000000000000')).toEqual([])
  })

  test('shows new views, although they change nothing else', async () => {
    expect((await titles('?sort=-views'))[0]).toBe('apple')
    changeRows(reelgate, "update view_total set view_count = 99 where video_id = (select id from video where title = 'Zebra')")
    expect((await titles('?sort=-views'))[0]).toBe('Zebra')
  })
})

test('any other order is newest first, as clients of the contract expect', async () => {
  for (const sort of ['colour', '--title', 'title,size', '-id']) expect(await titles(`?sort=${sort}`)).toEqual(await titles(''))
})

test('a position to read on from belongs to the order newest first alone', async () => {
  expect((await owner.call('GET', '/api/videos?sort=title&after=AAAAAAAAAAAAAAAAAAAAAA')).status).toBe(400)
})
