import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findPositions, type VideoFilter } from '../../../src/catalogue/search-store.ts'
import { insertTags } from '../../../src/catalogue/tag-store.ts'
import { insertVideo, tombstoneVideos, updateVideo } from '../../../src/catalogue/video-store.ts'
import { newId } from '../../../src/crypto/secret.ts'
import type { Database } from '../../../src/db/database.ts'
import type { Slice } from '../../../src/db/dialect.ts'
import { openSharedDatabase } from '../database.ts'

// Search, counters and paging against a plain filter over the same videos.

let database: Database
beforeAll(async () => {
  database = await openSharedDatabase()
})
afterAll(() => database.close())

/** Few letters, so that parts are often found; those that mean something to SQL, LIKE, GLOB and FTS5 among them. */
const letters = fc.constantFrom(
  'a',
  'b',
  'A',
  'B',
  'é',
  'É',
  'e\u0301',
  'Σ',
  'ς',
  '%',
  '_',
  '*',
  '"',
  "'",
  '\\',
  '(',
  ':',
  '^',
  ' ',
  '🎬',
  '-',
)
/** With characters that stand in no text, and must find nothing without an error. */
const queryLetters = fc.oneof({ weight: 40, arbitrary: letters }, fc.constantFrom('\0', '\u{10FFFF}'))
const texts = (maxLength: number, of: fc.Arbitrary<string> = letters) =>
  fc.array(of, { minLength: 1, maxLength }).map((parts) => parts.join(''))
/** A few letters, many, or more than any text has. */
const queries = fc.oneof({ weight: 30, arbitrary: texts(5, queryLetters) }, texts(60), fc.constant('a'.repeat(2001)))
const tagNames = fc.uniqueArray(fc.constantFrom('x', 'y', 'z'), { maxLength: 3 })
/** Pairs of metadata; the long value is in no index. */
const pairs = fc.record(
  { x: fc.constantFrom('1', '2', 'l'.repeat(256)), 'é "\\ ’': fc.constantFrom('1', '', 'ü"\n') },
  { requiredKeys: [] },
)
const searchedPairs = pairs.map(
  (all): Record<string, string> => Object.fromEntries(Object.entries(all).filter(([, value]) => value.length < 256)),
)
const videos = fc.array(
  fc.record({ title: texts(8), tags: tagNames, metadata: pairs, fate: fc.constantFrom('stays', 'stays', 'deleted', 'renamed') }),
  {
    maxLength: 12,
  },
)

/** Independent of db/fold-case.ts in form: what the docs say of comparing. */
const compared = (text: string) => text.normalize('NFC').toLowerCase().replace(/ς/g, 'σ')

test('every filter finds and counts the same videos as a comparison of each, newest first', async () => {
  await fc.assert(
    fc.asyncProperty(
      videos,
      queries,
      tagNames,
      searchedPairs,
      fc.boolean(),
      fc.boolean(),
      async (made, part, tags, metadata, byText, isAlone) => {
        const accountId = newId()
        if (isAlone) await deleteAllVideos()
        const kept = await fill(accountId, made)
        const filter: VideoFilter = { tags, metadata, ...(byText ? { text: part } : {}) }
        const wanted = kept
          .filter((video) => !byText || compared(video.title).includes(compared(part)) || video.id.includes(compared(part)))
          .filter((video) => tags.every((tag) => video.tags.includes(tag)))
          .filter((video) =>
            Object.entries(metadata).every(([name, value]) => new Map(Object.entries(video.metadata)).get(name) === value),
          )
          .map((video) => video.position)
          .toReversed()
        for (const db of [database.db, database.slowQueryDb]) {
          const found = (slice: Slice) => findPositions(db, accountId, filter, slice)
          const count = wanted.length
          const below = wanted[1] ?? 0
          const slices: [Slice, number[]][] = [
            [{ limit: 100, offset: 0 }, wanted],
            [{ limit: 2, offset: 1 }, wanted.slice(1, 3)],
            [{ limit: 2, offset: 1000 }, []],
            [{ limit: 2, offset: 1e40 }, []],
            [{ limit: 2, offset: 0, below }, wanted.filter((position) => position < below).slice(0, 2)],
          ]
          for (const [slice, positions] of slices) {
            expect(await found(slice)).toEqual({ count, positions })
            for (const countUpTo of [1, 3, 10_000])
              expect(await found({ ...slice, countUpTo })).toEqual({ count: Math.min(count, countUpTo), positions })
          }
        }
      },
    ),
    { numRuns: 60 },
  )
})

/** Most installations have one account with videos: its searches are planned differently. */
async function deleteAllVideos() {
  await database.write(async (tx) => {
    const rows = await tx.selectFrom('video').select(['accountId', 'id']).where('deletedAtS', 'is', null).execute()
    for (const [accountId, found] of Map.groupBy(rows, (row) => row.accountId))
      await tombstoneVideos(
        tx,
        accountId,
        found.map(({ id }) => id),
        1,
      )
  })
}

async function fill(
  accountId: string,
  made: readonly { title: string; tags: readonly string[]; metadata: object; fate: string }[],
) {
  return database.write(async (tx) => {
    await tx.insertInto('account').values({ id: accountId, name: 'a', createdAtS: 1, mayUpload: 1, mayImport: 1 }).execute()
    const kept: { id: string; position: number; title: string; tags: readonly string[]; metadata: object }[] = []
    for (const { title, tags, metadata, fate } of made) {
      const id = newId()
      const json = JSON.stringify(metadata)
      const before = fate === 'renamed' ? { title: `before ${title}`, metadata: '{"x":"1"}' } : { title, metadata: json }
      await insertVideo(tx, accountId, { id, ...before, uploadTimeS: 1 })
      const { position } = await tx.selectFrom('video').select('position').where('id', '=', id).executeTakeFirstOrThrow()
      await insertTags(tx, accountId, [position], tags)
      if (fate === 'renamed') await updateVideo(tx, accountId, id, { title, metadata: json })
      if (fate === 'deleted') await tombstoneVideos(tx, accountId, [id], 1)
      else kept.push({ id, position, title, tags, metadata })
    }
    return kept
  })
}
