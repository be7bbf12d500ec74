import type { KyselyPlugin } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { insertTags } from '../../../src/catalogue/tag-store.ts'
import { findVideos, getVideo } from '../../../src/catalogue/video.ts'
import { insertVideo, listPositions, tombstoneVideos } from '../../../src/catalogue/video-store.ts'
import { newId } from '../../../src/crypto/secret.ts'
import type { Database, Db } from '../../../src/db/database.ts'
import { openSharedDatabase } from '../database.ts'

let database: Database
beforeAll(async () => {
  database = await openSharedDatabase()
})
afterAll(() => database.close())

/** Statements of which one reading consists, and some more. */
const STATEMENTS = 6

type Read = (db: Db, accountId: string, videoId: string) => Promise<string[] | undefined>

test.each<[string, Read]>([
  [
    'a list',
    async (db, accountId) =>
      (
        await findVideos(
          { db, slowQueryDb: db, titleSearch: { find: async () => undefined } },
          accountId,
          {},
          { page: 1, limit: 9 },
        )
      ).videos[0]?.tags,
  ],
  ['one', async (db, accountId, videoId) => (await getVideo({ db }, accountId, videoId).catch(() => undefined))?.tags],
])('in %s, a video that is deleted between any two statements has its tags or is missing', async (_, read) => {
  const seen = []
  for (let after = 1; after <= STATEMENTS; after++) {
    const [accountId, videoId] = [newId(), newId()]
    await database.write(async (tx) => {
      await tx.insertInto('account').values({ id: accountId, name: 'a', createdAtS: 1, mayUpload: 1, mayImport: 1 }).execute()
      await insertVideo(tx, accountId, { id: videoId, title: 'A video', uploadTimeS: 1 })
      await insertTags(tx, accountId, await listPositions(tx, accountId, [videoId]), ['news'])
    })
    const remove = () => database.write((tx) => tombstoneVideos(tx, accountId, [videoId], 2))
    seen.push(await read(database.db.withPlugin(thatActs(after, remove)), accountId, videoId))
  }
  for (const tags of seen) expect([undefined, ['news']]).toContainEqual(tags)
  expect(seen).toContainEqual(['news'])
  expect(seen).toContain(undefined)
})

/** Does something as soon as so many statements have been answered. */
function thatActs(after: number, act: () => Promise<unknown>): KyselyPlugin {
  let answered = 0
  return {
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      if (++answered === after) await act()
      return result
    },
  }
}
