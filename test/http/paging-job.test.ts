import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Owner } from '../client.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { sampleOf } from '../sample.ts'

// A scheduled job that reads all of an account while others add, delete, tag and move: threat Q09.

let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  reelgate = await startSharedReelgate()
})
afterAll(() => reelgate.remove())

type Page = { count: number; rows: { id: string; title: string }[] }

/** Follows the Link headers as HTTP clients do, and calls back after each page. @returns the ids in the order in which they came */
async function readAll(owner: Owner, query: string, afterPage: () => Promise<unknown>): Promise<string[]> {
  const ids: string[] = []
  let next: string | undefined = `${reelgate.url}/api/videos${query}`
  while (next) {
    const response = await fetch(next, { headers: { Authorization: `Apisecret ${owner.apiKey}` } })
    expect(response.status).toBe(200)
    const { rows } = (await response.json()) as Page
    ids.push(...rows.map(({ id }) => id))
    next = /^<([^>]+)>; rel="next"$/.exec(response.headers.get('link') ?? '')?.[1]
    await afterPage()
  }
  return ids
}

const QUERIES = ['?', '?limit=7&q=video', '?limit=7&tag=all', '?limit=7&folderId=FOLDER', '?limit=4&folderId=FOLDER&tag=all&q=de']

test.each(sampleOf('queries of a job', QUERIES, 2))(
  'Q09: a job that reads %s page after page sees each video that stays once, in order, while others come and go',
  async (query) => {
    const owner = await reelgate.newOwner('with a job')
    const made = await owner.call('POST', '/api/videos/folders', { body: { name: 'a' } })
    const { id: folderId } = (await made.json()) as { id: string }
    const add = async (number: number) => {
      const folder = number % 3 === 0 ? folderId : 'root'
      const answer = await owner.call('PUT', `/api/videos?title=Video+${number}&folderId=${folder}`)
      const { videoId } = (await answer.json()) as { videoId: string }
      await owner.call('POST', '/api/videos/tags', { body: { videos: [videoId], tags: ['all'] } })
      return { id: videoId, isInFolder: number % 3 === 0, goes: number % 4 === 3 }
    }
    const videos = []
    for (let number = 0; number < 120; number++) videos.push(await add(number))
    const wanted = videos.filter(({ goes, isInFolder }) => !goes && (isInFolder || !query.includes('FOLDER')))
    const going = videos.filter(({ goes }) => goes).map(({ id }) => id)

    let late = 120
    const seen = await readAll(owner, query.replace('FOLDER', folderId), async () => {
      await add(late++)
      await owner.delete([going.pop() ?? '', going.shift() ?? ''])
    })
    expect(new Set(seen).size).toBe(seen.length)
    const stays = new Set(wanted.map(({ id }) => id))
    expect(seen.filter((id) => stays.has(id))).toEqual([...stays].toReversed())
    expect(late).toBeGreaterThan(125)
  },
)

test('Q09: the row that a page ended with may be gone when the next is asked for', async () => {
  const owner = await reelgate.newOwner('losing its place')
  const ids: string[] = []
  for (let number = 0; number < 9; number++) ids.push((await owner.credentials(`Video ${number}`)).videoId)
  let page = 0
  const seen = await readAll(owner, '?limit=3', async () => {
    if (page++ === 0) await owner.delete(ids.splice(6, 1)) // the third row
  })
  expect(seen).toHaveLength(9)
  expect(page).toBe(3)
  expect((await owner.call('GET', '/api/videos?limit=8')).headers.get('link')).toBeNull()
})

test('Q09: the link to the next page is valid for this account alone, reveals no id, and is refused together with a page number', async () => {
  const owner = await reelgate.newOwner('with a cursor')
  const other = await reelgate.newOwner('with another')
  for (const each of [owner, other]) for (const title of ['One', 'Two', 'Three']) await each.credentials(title)
  const link = (await owner.call('GET', '/api/videos?limit=1&q=o&unknown=1')).headers.get('link') ?? ''
  const [, path = '', after = ''] =
    /^<http:\/\/[^/]+(\/api\/videos\?limit=1&q=o&after=([\w-]{22}))>; rel="next"$/.exec(link) ?? []
  expect((await (await owner.call('GET', path)).json()) as Page).toMatchObject({ count: 2, rows: [{ title: 'One' }] })
  const again = await owner.call('GET', '/api/videos?limit=1&q=o&unknown=1')
  expect(again.headers.get('link')).toBe(link)
  const statusOf = async (asker: Owner, query: string) => (await asker.call('GET', `/api/videos?${query}`)).status
  expect(await statusOf(other, `after=${after}`)).toBe(400)
  for (const bad of ['', 'x', '1', after.slice(1), `${after}A`, 'A'.repeat(22), "' or 1=1 --"])
    expect([bad, await statusOf(owner, `after=${encodeURIComponent(bad)}`)]).toEqual([bad, 400])
  expect(await statusOf(owner, `after=${after}&page=2`)).toBe(400)
})
