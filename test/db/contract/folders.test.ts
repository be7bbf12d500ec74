import fc from 'fast-check'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  createFolder,
  deleteFolder,
  editFolder,
  openFolder,
  ROOT_FOLDER_ID,
  searchFolders,
} from '../../../src/catalogue/folder.ts'
import { createTitleSearch } from '../../../src/catalogue/title-search.ts'
import { editVideo, findVideos } from '../../../src/catalogue/video.ts'
import { insertVideo, tombstoneVideos } from '../../../src/catalogue/video-store.ts'
import { newId } from '../../../src/crypto/secret.ts'
import type { Database } from '../../../src/db/database.ts'
import { Failure } from '../../../src/errors.ts'
import { openSharedDatabase } from '../database.ts'

// Folders, their counters and their lists, compared with a plain map of their contents.

let database: Database
beforeAll(async () => {
  database = await openSharedDatabase()
})
afterAll(() => database.close())

/** Numbers choose among what there is by then. */
const step = fc.oneof(
  fc.record({ what: fc.constant('make' as const), a: fc.nat(9), b: fc.nat(9) }),
  fc.record({ what: fc.constant('move' as const), a: fc.nat(9), b: fc.nat(9) }),
  fc.record({ what: fc.constant('delete' as const), a: fc.nat(9), b: fc.nat(9) }),
  fc.record({ what: fc.constant('add video' as const), a: fc.nat(9), b: fc.nat(9) }),
  fc.record({ what: fc.constant('move video' as const), a: fc.nat(9), b: fc.nat(9) }),
  fc.record({ what: fc.constant('delete video' as const), a: fc.nat(9), b: fc.nat(9) }),
)

test('after any changes each folder shows, counts and finds what it contains', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const { deps, accountId } = await newAccount()
      const parents = new Map<string, string>()
      const names = new Map<string, string>()
      const videos = new Map<string, string>()
      const pick = (ids: Iterable<string>, n: number) => [...ids].at(n % Math.max(1, [...ids].length))
      const isWithin = (id: string | undefined, outer: string): boolean =>
        id !== undefined && (id === outer || isWithin(parents.get(id), outer))

      for (const { what, a, b } of steps) {
        const chosen = pick(parents.keys(), a)
        const target = pick([ROOT_FOLDER_ID, ...parents.keys()], b) ?? ROOT_FOLDER_ID
        const video = pick(videos.keys(), a)
        if (what === 'make') {
          const name = `${'ab'[a % 2]}${b}`
          const { id } = await createFolder(deps, accountId, 'command-line', { name, parentId: target })
          parents.set(id, target)
          names.set(id, name)
        } else if (what === 'move' && chosen) {
          const moved = editFolder(deps, { accountId, by: 'command-line', folderId: chosen, changes: { parentId: target } })
          if (isWithin(target, chosen)) await expect(moved).rejects.toMatchObject({ kind: 'conflict' })
          else await moved.then(() => parents.set(chosen, target))
        } else if (what === 'delete' && chosen) {
          await deleteFolder(deps, accountId, 'server', chosen)
          const parent = parents.get(chosen) ?? ROOT_FOLDER_ID
          parents.delete(chosen)
          names.delete(chosen)
          for (const map of [parents, videos]) for (const [id, at] of map) if (at === chosen) map.set(id, parent)
        } else if (what === 'add video') {
          const id = newId()
          await deps.write((tx) => insertVideo(tx, accountId, { id, title: 'x', uploadTimeS: 1, folderId: target }))
          videos.set(id, target)
        } else if (what === 'move video' && video) {
          await editVideo(deps, { accountId, by: 'command-line', videoId: video, changes: { folderId: target } })
          videos.set(video, target)
        } else if (what === 'delete video' && video) {
          await deps.write((tx) => tombstoneVideos(tx, accountId, [video], 1))
          videos.delete(video)
        }
      }

      for (const id of [ROOT_FOLDER_ID, ...parents.keys()]) {
        const inIt = (map: Map<string, string>) => [...map].flatMap(([each, at]) => (at === id ? [each] : []))
        const opened = await openFolder(deps, accountId, id)
        const byName = inIt(parents).toSorted((x, y) => `${names.get(x)} ${x}`.localeCompare(`${names.get(y)} ${y}`))
        expect(opened.folders.map((each) => each.id)).toEqual(byName)
        expect(opened.folder).toMatchObject({ videoCount: inIt(videos).length, folderCount: inIt(parents).length })
        expect(opened.parent?.id).toBe(id === ROOT_FOLDER_ID ? undefined : parents.get(id))
        const listed = await findVideos(deps, accountId, { folderId: id }, { page: 1, limit: 100 })
        expect(listed.videos.map((each) => each.id)).toEqual(inIt(videos).toReversed().sort(byPosition(listed.videos)))
        expect(listed.count).toBe(inIt(videos).length)
      }
      const found = await searchFolders(deps, accountId, { name: 'A', isWhole: false })
      expect(found.map(({ id }) => id).sort()).toEqual([...names].flatMap(([id, name]) => (name[0] === 'a' ? [id] : [])).sort())
      for (const { id, path } of found) expect(path.map((each) => each.id)).toEqual(above(id))

      function above(id: string): string[] {
        const parent = parents.get(id)
        return parent === undefined || parent === ROOT_FOLDER_ID ? [] : [parent, ...above(parent)]
      }
    }),
    { numRuns: 40 },
  )
})

function byPosition(videos: readonly { id: string; position: number }[]) {
  const at = new Map(videos.map(({ id, position }) => [id, position]))
  return (a: string, b: string) => (at.get(b) ?? 0) - (at.get(a) ?? 0)
}

test('an account has at most 20 000 folders, and a folder with ten thousand folders can be listed and deleted', async () => {
  const { deps, accountId } = await newAccount()
  const full = await createFolder(deps, accountId, 'command-line', { name: 'full', parentId: ROOT_FOLDER_ID })
  await addFolders(accountId, full.id, 10_000)
  const opened = await openFolder(deps, accountId, full.id)
  expect(opened.folders).toHaveLength(10_000)
  expect(opened.folders.map(({ name }) => name)).toEqual(opened.folders.map(({ name }) => name).toSorted())
  expect(await searchFolders(deps, accountId, { name: 'many', isWhole: false })).toHaveLength(1_000)
  await addFolders(accountId, ROOT_FOLDER_ID, 9_999)
  const one = createFolder(deps, accountId, 'command-line', { name: 'one too many', parentId: ROOT_FOLDER_ID })
  await expect(one).rejects.toBeInstanceOf(Failure)
  await deleteFolder(deps, accountId, 'server', full.id)
  expect((await openFolder(deps, accountId, ROOT_FOLDER_ID)).folder.folderCount).toBe(19_999)
  await createFolder(deps, accountId, 'command-line', { name: 'one again', parentId: ROOT_FOLDER_ID })
})

async function newAccount() {
  const accountId = newId()
  await database.write((tx) =>
    tx.insertInto('account').values({ id: accountId, name: 'a', createdAtS: 1, mayUpload: 1, mayImport: 1 }).execute(),
  )
  return { deps: { ...database, wallNowS: () => 1, titleSearch: createTitleSearch(database) }, accountId }
}

async function addFolders(accountId: string, parentId: string, count: number): Promise<void> {
  await database.write((tx) =>
    sql`insert into folder (account_id, id, parent_id, name, folded_name, created_at_s)
      with recursive n (i) as (select 1 union all select i + 1 from n where i < ${count})
      select ${accountId}, ${newId()} || i, ${parentId}, 'many ' || (10000 + i), 'many ' || (10000 + i), 1 from n`.execute(tx),
  )
}
