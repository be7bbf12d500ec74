import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createTitleIndex, type IndexedVideo, type TitleTerm } from '../../src/catalogue/title-index.ts'
import type { Slice } from '../../src/db/dialect.ts'

// The titles of an account in memory, against a plain filter over the same videos.

/** Mostly two, so that titles share trigrams; the last two have the same number in the index's trigrams. */
const letters = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('a', 'b') },
  { weight: 1, arbitrary: fc.constantFrom('x', '%', ' ', 'é', '🎬', '\u0401', String.fromCharCode(0x401 + 1021)) },
)
const texts = (maxLength: number) => fc.array(letters, { maxLength }).map((parts) => parts.join(''))
const ids = fc.oneof(
  { weight: 4, arbitrary: fc.array(fc.constantFrom('a', 'b', 'c', '1'), { minLength: 4, maxLength: 6 }) },
  fc.array(fc.constantFrom('x', 'y', 'a'), { minLength: 4, maxLength: 4 }),
)

const video = fc.record({ id: ids.map((parts) => parts.join('')), title: texts(8) })
const made = fc.array(video, { maxLength: 12 })
/** A number chooses among the videos and the next one. */
const changes = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ nth: fc.nat(20), becomes: video }) },
    { weight: 1, arbitrary: fc.record({ nth: fc.nat(20), becomes: fc.constant(undefined) }) },
  ),
  { maxLength: 20 },
)
const columns = fc.constantFrom<(readonly ('id' | 'title')[])[]>(['id', 'title'], ['title'], ['id'])
const terms = fc.array(fc.record({ columns, part: texts(5) }), { minLength: 1, maxLength: 2 })
const slices = fc.record({ limit: fc.nat(5), offset: fc.nat(4), below: fc.option(fc.nat(60), { nil: undefined }) })

test('a search finds and counts the same videos as a comparison of each, newest first, after any changes', () => {
  fc.assert(
    fc.property(made, changes, fc.array(fc.tuple(terms, slices), { minLength: 1, maxLength: 8 }), (first, later, searches) => {
      const index = createTitleIndex()
      const videos = new Map<number, IndexedVideo>()
      let count = 0
      for (const each of first) set(count++, each)
      for (const { nth, becomes } of later) {
        const place = nth % (count + 1)
        if (becomes) {
          set(place, becomes)
          count = Math.max(count, place + 1)
        } else {
          index.remove(2 * place)
          videos.delete(2 * place)
        }
      }
      for (const [sought, slice] of searches) expect(index.search(sought, slice)).toEqual(plainSearch(videos, sought, slice))

      function set(place: number, each: IndexedVideo): void {
        expect(index.set(2 * place, each)).toBe(true)
        videos.set(2 * place, each)
      }
    }),
    { numRuns: 2_000 },
  )
})

test('a video between the others is refused, unless it was there before', () => {
  const index = createTitleIndex()
  for (const position of [3, 5]) index.set(position, { id: 'a', title: 'a title' })
  index.remove(3)
  expect([3, 4, 5, 6].map((position) => index.set(position, { id: 'a', title: 'a title' }))).toEqual([true, false, true, true])
})

function plainSearch(videos: ReadonlyMap<number, IndexedVideo>, sought: readonly TitleTerm[], slice: Slice) {
  const matches = (video: IndexedVideo) =>
    sought.every((term) => term.columns.some((column) => video[column].includes(term.part)))
  const all = [...videos].filter(([, video]) => matches(video)).map(([position]) => position)
  const older = all.toSorted((a, b) => b - a).filter((position) => position < (slice.below ?? Number.POSITIVE_INFINITY))
  return { count: all.length, positions: older.slice(slice.offset, slice.offset + slice.limit) }
}

test('a search that would compare more than ten thousand videos is left to the database', () => {
  const index = createTitleIndex()
  for (let position = 1; position <= 10_001; position++) index.set(position, { id: `${position}`, title: `lecture ${position}` })
  const search = (part: string) => index.search([{ columns: ['title'], part }], { limit: 1, offset: 0 })
  expect(search('lecture')).toBeUndefined()
  expect(search('e')).toBeUndefined()
  expect(search('re 10001')).toEqual({ count: 1, positions: [10_001] })
  expect(search('xyz')).toEqual({ count: 0, positions: [] })
})
