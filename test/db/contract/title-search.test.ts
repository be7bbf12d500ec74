import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTitleSearch, pruneTitleChanges, type TitleSearch } from '../../../src/catalogue/title-search.ts'
import { insertVideo, restoreVideos, tombstoneVideos, updateVideo } from '../../../src/catalogue/video-store.ts'
import { newId } from '../../../src/crypto/secret.ts'
import type { Database } from '../../../src/db/database.ts'
import { rounds } from '../../seeded-random.ts'
import { openSharedDatabase } from '../database.ts'

// Searches in memory while videos are added, renamed, deleted and restored, against a plain filter.

let database: Database
let titleSearch: TitleSearch
beforeAll(async () => {
  database = await openSharedDatabase()
  titleSearch = createTitleSearch(database)
})
afterAll(() => database.close())

const PAGE = { limit: 1000, offset: 0 }
const titles = fc
  .array(fc.constantFrom('a', 'B', 'é', 'É', ' '), { minLength: 1, maxLength: 6 })
  .map((letters) => letters.join(''))
/** Numbers choose among what there is by then. */
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ what: fc.constant('add' as const), title: titles }) },
  { weight: 2, arbitrary: fc.record({ what: fc.constant('rename' as const), nth: fc.nat(20), title: titles }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('delete' as const), nth: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('restore' as const), nth: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('leave as it is' as const) }) },
)

type Video = { id: string; position: number; title: string; isDeleted: boolean }

test('each search finds what is there at that moment, whatever was changed before it', async () => {
  let inMemory = 0
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(step, titles), { minLength: 1, maxLength: 25 }), async (steps) => {
      const accountId = await newAccount()
      const videos: Video[] = []
      await held(accountId)
      for (const [change, part] of steps) {
        await apply(accountId, videos, change)
        const sought = part.slice(0, 3).toLowerCase()
        const found = await find(accountId, sought)
        if (found) inMemory++
        expect(found ?? (await held(accountId, sought))).toEqual(plain(videos, sought))
      }
    }),
    { numRuns: rounds(40, 400) },
  )
  expect(inMemory).toBeGreaterThan(rounds(200, 2_000)) // otherwise this has tested nothing
})

test('concurrent searches and changes leave the titles up to date', async () => {
  const accountId = await newAccount()
  const videos: Video[] = []
  for (let i = 0; i < 10; i++) await apply(accountId, videos, { what: 'add', title: 'a' })
  await held(accountId)
  for (let round = 0; round < 10; round++) {
    await Promise.all(
      videos.flatMap((_, nth) => [
        apply(accountId, videos, { what: 'rename', nth, title: (nth + round) % 3 === 0 ? 'b' : 'a' }),
        find(accountId, 'b'),
        find(accountId, 'a'),
      ]),
    )
    expect(await held(accountId, 'b')).toEqual(plain(videos, 'b'))
  }
})

test('after more changes than are kept, and after many at once, the titles are read again', async () => {
  const accountId = await newAccount()
  const videos: Video[] = []
  await apply(accountId, videos, { what: 'add', title: 'before' })
  expect(await held(accountId, 'before')).toMatchObject({ count: 1 })
  await apply(accountId, videos, { what: 'rename', nth: 0, title: 'after' })
  await database.write((tx) =>
    tx
      .updateTable('account')
      .set((account) => ({ changeNumber: account('changeNumber', '+', 5_000) }))
      .where('id', '=', accountId)
      .execute(),
  )
  await pruneTitleChanges(database)
  expect(await database.db.selectFrom('titleChange').selectAll().where('accountId', '=', accountId).execute()).toEqual([])
  expect(await held(accountId, 'before')).toEqual({ count: 0, positions: [] })
  expect(await held(accountId, 'after')).toEqual(plain(videos, 'after'))

  await database.write(async (tx) => {
    for (let i = 0; i < 150; i++) await insertVideo(tx, accountId, { id: newId(), title: `after ${i}`, uploadTimeS: 1 })
  })
  expect(await find(accountId, 'after')).toBeUndefined()
  expect(await held(accountId, 'after')).toMatchObject({ count: 151 })
})

test('another account’s titles are never found', async () => {
  const [ours, theirs] = [await newAccount(), await newAccount()]
  const [videos, others]: [Video[], Video[]] = [[], []]
  await apply(ours, videos, { what: 'add', title: 'shared' })
  await apply(theirs, others, { what: 'add', title: 'shared' })
  await held(ours)
  await apply(theirs, others, { what: 'add', title: 'shared' })
  expect(await held(ours, 'shared')).toEqual(plain(videos, 'shared'))
  expect(await held(theirs, 'shared')).toEqual(plain(others, 'shared'))
})

const find = (accountId: string, part: string) => titleSearch.find(accountId, [{ columns: ['title'], part }], PAGE)

/** Searches until the account's titles are in memory. */
async function held(accountId: string, part = '') {
  for (;;) {
    const found = await find(accountId, part)
    if (found) return found
    await turn()
  }
}

function plain(videos: readonly Video[], part: string) {
  const matching = videos.filter(({ title, isDeleted }) => !isDeleted && title.toLowerCase().includes(part))
  const positions = matching.map(({ position }) => position).toSorted((a, b) => b - a)
  return { count: positions.length, positions }
}

type Change = { what: 'add'; title: string } | { what: 'rename'; nth: number; title: string } | OnOne
type OnOne = { what: 'delete' | 'restore'; nth: number } | { what: 'leave as it is' }

async function apply(accountId: string, videos: Video[], change: Change): Promise<void> {
  if (change.what === 'leave as it is') return
  if (change.what === 'add') {
    const id = newId()
    const position = await database.write(async (tx) => {
      await insertVideo(tx, accountId, { id, title: change.title, uploadTimeS: 1 })
      return (await tx.selectFrom('video').select('position').where('id', '=', id).executeTakeFirstOrThrow()).position
    })
    videos.push({ id, position, title: change.title, isDeleted: false })
    return
  }
  const among = videos.filter(({ isDeleted }) => isDeleted === (change.what === 'restore'))
  const video = among[change.nth % among.length]
  if (!video) return
  await database.write(async (tx) => {
    if (change.what === 'rename') await updateVideo(tx, accountId, video.id, { title: change.title })
    else if (change.what === 'delete') await tombstoneVideos(tx, accountId, [video.id], 1)
    else await restoreVideos(tx, accountId, [video.id])
  })
  if (change.what === 'rename') video.title = change.title
  else video.isDeleted = change.what === 'delete'
}

async function newAccount(): Promise<string> {
  const id = newId()
  await database.write((tx) =>
    tx.insertInto('account').values({ id, name: 'a', createdAtS: 1, mayUpload: 1, mayImport: 1 }).execute(),
  )
  return id
}
