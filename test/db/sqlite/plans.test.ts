import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { sumStorage } from '../../../src/accounts/storage-store.ts'
import { ALWAYS, ONCE_ANALYZED, SMALL } from '../calls.ts'
import { ACCOUNTS, fillLarge } from '../large.ts'
import { openOwnSqlite } from './database.ts'
import { connectExplaining, type Explained } from './explained.ts'

// How SQLite would carry out what the stores ask. It holds everybody up meanwhile: one statement runs after the other.

/** Indexes of nothing but what is under way. */
const UNDER_WAY = new Set([
  'video_unplanned',
  'generation_unfinished',
  'chunk_pending',
  'chunk_open',
  'chunk_by_age',
  'caption_unmade',
  'dub_waiting',
  'mp4_unmade',
  'delivery_open',
])
/** What a statement brings with it, or finds step by step. */
const LISTS = new Set(['json_each', 'above', 'below'])

test('queries use an index, and no long list is sorted', async () => {
  const { path } = await openOwnSqlite()
  const { db, explain } = connectExplaining(path)
  await sql`begin`.execute(db)
  await fillLarge(db)
  await sql`commit`.execute(db)
  for (const [what, , ask] of [...ALWAYS, ...ONCE_ANALYZED]) {
    const done = await explain(ask)
    expect.soft(done.length, what).toBeGreaterThan(0)
    for (const statement of done) expect.soft(tooLong(statement), `${what}: ${statement.text}`).toEqual([])
  }
})

test('what an account stores, which each of its uploads asks for, is summed from an index alone', async () => {
  const { path } = await openOwnSqlite()
  const { db, explain } = connectExplaining(path)
  const [stored, trashed] = await explain(() => sumStorage(db, ACCOUNTS.large))
  expect(stored?.steps).toEqual(['SEARCH video USING COVERING INDEX video_by_size (account_id=?)'])
  expect(trashed?.steps.filter(isRead)).toEqual([
    'SEARCH video USING INDEX sqlite_autoindex_video_1 (id=?)',
    'SEARCH trashed_video USING COVERING INDEX trashed_video_in_order (account_id=?)',
  ])
})

/** Steps that take longer the more there is of a large table, whatever is found. */
function tooLong({ text, steps }: Explained): string[] {
  const isSlice = /\blimit\b/i.test(text) && !steps.some(isSort)
  return steps.filter((step) => {
    if (/\bAUTOMATIC\b/.test(step)) return true
    if (isSort(step)) return !steps.filter(isRead).every(isShort)
    if (isScan(step)) return !isShort(step) && !(isSlice && !/\bwhere\b/i.test(text))
    return !isSlice && isAllOfAnOwner(step)
  })
}

const isSort = (step: string) => step.startsWith('USE TEMP B-TREE')
const isRead = (step: string) => /^(?:SCAN|SEARCH) /.test(step)
const isScan = (step: string) => step.startsWith('SCAN ')

function isAllOfAnOwner(step: string): boolean {
  const [, table = ''] = /^SEARCH (\w+) .*\((?:account_id|webhook_id)=\?\)$/.exec(step) ?? []
  return table !== '' && !SMALL.has(table)
}

/** Of a small table, of what is under way, of texts that match, or of what is named by its id, or its video's. */
function isShort(step: string): boolean {
  const [, table = '', index = ''] = /^(?:SCAN|SEARCH) (\w+)(?: USING (?:COVERING )?INDEX (\w+))?/.exec(step) ?? []
  return (
    SMALL.has(table) ||
    LISTS.has(table) ||
    UNDER_WAY.has(index) ||
    / VIRTUAL TABLE INDEX \d+:M/.test(step) ||
    /^SEARCH .*\b(?:id|video_id|rowid)=\?\)/.test(step)
  )
}
