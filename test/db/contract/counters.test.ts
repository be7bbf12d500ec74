import fc from 'fast-check'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newId } from '../../../src/crypto/secret.ts'
import type { Database, Db } from '../../../src/db/database.ts'
import { rounds } from '../../seeded-random.ts'
import { openSharedDatabase } from '../database.ts'

// Whatever statement changes rows, one of them or many, of one account or two: what is counted of them is what there is.

let database: Database
beforeAll(async () => {
  database = await openSharedDatabase()
})
afterAll(() => database.close())

/** Numbers choose among what there is by then; `which` is a set. */
const step = fc.record({
  what: fc.constantFrom('folders', 'videos', 'tags', 'files'),
  how: fc.constantFrom('add', 'add', 'change', 'remove', 'move and change'),
  which: fc.nat(255),
  where: fc.nat(9),
})
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** What there is to choose among. */
const FIRST: readonly Step[] = [
  { what: 'folders', how: 'add', which: 7, where: 0 },
  { what: 'videos', how: 'add', which: 255, where: 0 },
  { what: 'tags', how: 'add', which: 255, where: 0 },
  { what: 'files', how: 'add', which: 255, where: 0 },
]

test('counters, the search index and sizes are right after statements that change any number of rows', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 15 }), async (steps) => {
      const accountIds = [newId(), newId()]
      await database.write((tx) => addAccounts(tx, accountIds))
      for (const each of [...FIRST, ...steps]) {
        const before = await shownTo(accountIds)
        await database.write(async (tx) => change(tx, each, accountIds, await thereIs(tx, accountIds)))
        expect(await miscounted(accountIds), JSON.stringify(each)).toEqual([])
        for (const [i, after] of (await shownTo(accountIds)).entries())
          if (after.lists !== before[i]?.lists) expect(after.changeNumber).toBeGreaterThan(before[i]?.changeNumber ?? 0)
      }
    }),
    { numRuns: rounds(20, 200) },
  )
})

async function addAccounts(tx: Db, accountIds: readonly string[]): Promise<unknown> {
  const account = { name: 'a', createdAtS: 1, mayUpload: 1, mayImport: 1 } as const
  return tx
    .insertInto('account')
    .values(accountIds.map((id) => ({ ...account, id })))
    .execute()
}

/** Both accounts have folders of the same ids. */
async function thereIs(db: Db, accountIds: readonly string[]) {
  const folders = await db
    .selectFrom('folder')
    .select('id')
    .distinct()
    .where('accountId', 'in', accountIds)
    .orderBy('id')
    .execute()
  const videos = await db
    .selectFrom('video')
    .select(['id', 'accountId', 'position'])
    .where('accountId', 'in', accountIds)
    .orderBy('position')
    .execute()
  const files = await db
    .selectFrom('file')
    .select('id')
    .where(
      'videoId',
      'in',
      videos.map(({ id }) => id),
    )
    .orderBy('id')
    .execute()
  return { folderIds: folders.map(({ id }) => id), videos, fileIds: files.map(({ id }) => id) }
}

/** One statement. */
async function change(
  tx: Db,
  { what, how, which, where }: Step,
  accountIds: readonly string[],
  there: Awaited<ReturnType<typeof thereIs>>,
) {
  const some = <T>(list: readonly T[]) => list.filter((_, i) => (which >> (i % 8)) & 1)
  const folderAt = (i: number) => there.folderIds[i % there.folderIds.length] ?? 'root'
  const accountAt = (i: number) => accountIds[i % 2] ?? ''
  const [folderIds, videos, fileIds] = [
    some(there.folderIds.filter((id) => id !== 'root')),
    some(there.videos),
    some(there.fileIds),
  ]
  const videoIds = videos.map(({ id }) => id)
  const added = some([0, 1, 2, 3, 4, 5, 6, 7])
  if (how === 'add' && added.length === 0) return

  const statements = {
    folders: {
      add: () =>
        tx.insertInto('folder').values(
          added.flatMap((i) => {
            const folder = { id: newId(), parentId: folderAt(where + i), name: 'f', foldedName: 'f', createdAtS: 1 }
            return accountIds.map((accountId) => ({ ...folder, accountId }))
          }),
        ),
      change: () => tx.updateTable('folder').set({ name: 'g' }).where('id', 'in', folderIds),
      remove: () => tx.deleteFrom('folder').where('accountId', 'in', accountIds).where('id', 'in', folderIds),
      'move and change': () =>
        tx
          .updateTable('folder')
          .set({ name: 'h', parentId: folderAt(where) })
          .where('id', 'in', folderIds),
    },
    videos: {
      add: () =>
        tx.insertInto('video').values(
          added.map((i) => ({
            id: newId(),
            accountId: accountAt(where + (i >> 1)),
            title: `Video ${i}`,
            description: '',
            fileName: '',
            uploadTimeS: 1,
            status: 'ready',
            folderId: folderAt(where + i),
          })),
        ),
      change: () =>
        tx
          .updateTable('video')
          .set({ title: `Video NEW ${where}`, public: 0 })
          .where('id', 'in', videoIds),
      remove: () =>
        tx
          .updateTable('video')
          .set({ deletedAtS: 1, folderId: folderAt(where) })
          .where('id', 'in', videoIds.slice(0, 3)),
      'move and change': () =>
        tx
          .updateTable('video')
          .set({
            folderId: sql`case position % 2 when 0 then ${folderAt(where)} else ${folderAt(where + 1)} end`,
            fileName: `${where}`,
          })
          .where('id', 'in', videoIds),
    },
    tags: {
      add: () =>
        sql`insert into video_tag (account_id, name, position, ordinal)
          select account_id, ${`t${where % 4}`} || (position % 2), position, 1 from video
          where id in (${sql.join(['', ...videoIds])}) and deleted_at_s is null on conflict do nothing`,
      change: () => tx.deleteFrom('videoTag').where('name', '=', `t${where % 4}0`),
      remove: () =>
        tx.deleteFrom('videoTag').where(
          'position',
          'in',
          videos.map(({ position }) => position),
        ),
      'move and change': () =>
        tx.deleteFrom('videoTag').where('accountId', '=', accountAt(where)).where('name', 'in', ['t00', 't11', 't20']),
    },
    files: {
      add: () =>
        sql`insert into file (video_id, type, created_at_s, size_bytes) select id, 'caption', 1, 10 + position from video
          where id in (${sql.join(['', ...videoIds])})`,
      change: () => tx.updateTable('file').set({ enabled: 0 }).where('id', 'in', fileIds),
      remove: () => tx.deleteFrom('file').where('id', 'in', fileIds),
      'move and change': () => tx.updateTable('file').set({ sizeBytes: where }).where('id', 'in', fileIds),
    },
  }
  await statements[what][how]().execute(tx)
}

/** What an account's lists show, and its change number, by which an answer is kept. */
async function shownTo(accountIds: readonly string[]): Promise<{ changeNumber: number; lists: string }[]> {
  const { db } = database
  return Promise.all(
    accountIds.map(async (id) => {
      const account = await db.selectFrom('account').select('changeNumber').where('id', '=', id).executeTakeFirstOrThrow()
      const videos = db.selectFrom('video').selectAll().where('accountId', '=', id).where('deletedAtS', 'is', null)
      const tags = db.selectFrom('videoTag').selectAll().where('accountId', '=', id)
      const lists = [await videos.orderBy('position').execute(), await tags.orderBy('position').orderBy('name').execute()]
      return { ...account, lists: JSON.stringify(lists) }
    }),
  )
}

/** Counters and search texts, next to the rows that they are made from. */
async function miscounted(accountIds: readonly string[]): Promise<unknown[]> {
  const own = sql.join(accountIds)
  const wrong = [
    sql`select 'videos in a folder' as what, id as of, video_count as counted from folder where account_id in (${own}) and video_count <>
      (select count(*) from video where video.account_id = folder.account_id and folder_id = folder.id and deleted_at_s is null)`,
    sql`select 'folders in a folder', id, folder_count from folder where account_id in (${own}) and folder_count <>
      (select count(*) from folder as inner_one where inner_one.account_id = folder.account_id and inner_one.parent_id = folder.id)`,
    sql`select 'folders', id, folder_count from account where id in (${own}) and folder_count <>
      (select count(*) from folder where account_id = account.id and parent_id is not null)`,
    sql`select 'videos with a tag', name, video_count from tag where account_id in (${own}) and video_count <>
      (select count(*) from video_tag where video_tag.account_id = tag.account_id and video_tag.name = tag.name)`,
    sql`select 'no counter', name, 0 from video_tag where account_id in (${own}) and not exists
      (select 1 from tag where tag.account_id = video_tag.account_id and tag.name = video_tag.name)`,
    sql`select 'a counter of nothing', name, 0 from tag where account_id in (${own}) and video_count = 0`,
    sql`select 'tag of a deleted video', name, 0 from video_tag where position in
      (select position from video where account_id in (${own}) and deleted_at_s is not null)`,
    sql`select 'not found', title, 0 from video where account_id in (${own}) and deleted_at_s is null and not exists
      (select 1 from video_text where rowid = position and video_text.title = lower(video.title)
        and video_text.file_name = video.file_name)`,
    sql`select 'size', id, total_size_bytes from video where account_id in (${own}) and deleted_at_s is null and total_size_bytes <>
      (select coalesce(sum(size_bytes), 0) from file where video_id = video.id)`,
  ]
  const { rows } = await sql`${sql.join(wrong, sql` union all `)}`.execute(database.db)
  return rows
}
