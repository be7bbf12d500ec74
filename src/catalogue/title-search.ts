import { setImmediate } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { Db } from '../db/database.ts'
import type { Counted, Slice } from '../db/dialect.ts'
import type { Write } from '../db/write.ts'
import { createTitleIndex, type TitleIndex, type TitleTerm } from './title-index.ts'
import { findTitleState, listTitleChanges, listTitles, removeOldTitleChanges } from './title-search-store.ts'

// Searches in the titles of accounts that search: in memory, brought up to date before each search.

export type TitleSearch = {
  /**
   * As `findPositions`, for a search by nothing but ids and titles. Undefined: the database has to search, because the account's
   * titles are not in memory (from the first search on they are being read), or the search compares too many of them.
   */
  find(accountId: string, terms: readonly TitleTerm[], slice: Slice): Promise<Counted | undefined>
}

type Held = {
  /** Undefined: the account's titles are too long together. */
  index: TitleIndex | undefined
  /** Titles that were replaced leave something behind: an index that has grown to twice its size is built again. */
  maxChars: number
  /** Up to which change of the account it is up to date. */
  changeNumber: number
  /** One search after the other brings it up to date, so that an older title never replaces a newer one. */
  latest: Promise<boolean>
}

/** Of all accounts together: some 70 000 videos, which take 25 MB. */
const MAX_CHARS = 5_000_000
/** What an index takes besides its characters. */
const EMPTY_CHARS = 2_000
const MAX_UNUSED_MS = 600_000
/** Titles that are read in one turn of the event loop: a millisecond. */
const BATCH_SIZE = 100
/** With more changes than this an index is built again. */
const MAX_CHANGES = 100
/** Changes that are kept, in numbers of an account's changes. */
const KEPT_CHANGES = 1_000

/** @param deps.slowQueryDb reads the titles of a whole account */
export function createTitleSearch({ db, slowQueryDb }: { db: Db; slowQueryDb: Db }): TitleSearch {
  const held = new LRUCache<string, Held>({
    maxSize: MAX_CHARS,
    sizeCalculation: ({ index }) => EMPTY_CHARS + (index?.sizeChars() ?? 0),
    ttl: MAX_UNUSED_MS,
    ttlAutopurge: true,
    updateAgeOnGet: true,
  })
  let isBuilding = false

  /** One account at a time, in small parts: other requests do not wait for it. */
  async function build(accountId: string): Promise<void> {
    if (isBuilding) return
    isBuilding = true
    try {
      const changeNumber = (await findTitleState(db, accountId))?.changeNumber ?? 0 // before the titles are read
      const index = await readAll(accountId)
      const maxChars = 2 * (EMPTY_CHARS + (index?.sizeChars() ?? 0))
      held.set(accountId, { index, maxChars, changeNumber, latest: Promise.resolve(true) })
    } finally {
      isBuilding = false
    }
  }

  async function readAll(accountId: string): Promise<TitleIndex | undefined> {
    const index = createTitleIndex()
    for (let after = 0; ; ) {
      const rows = await listTitles(slowQueryDb, accountId, after, BATCH_SIZE)
      for (const { position, ...video } of rows) index.set(position, video)
      if (index.sizeChars() > MAX_CHARS - EMPTY_CHARS) return undefined
      const last = rows.at(-1)
      if (!last || rows.length < BATCH_SIZE) return index
      after = last.position
      await setImmediate()
    }
  }

  /** @returns false when the index has to be built again */
  async function bringUpToDate(accountId: string, index: TitleIndex, of: Held): Promise<boolean> {
    const changeNumber = (await findTitleState(db, accountId))?.changeNumber ?? 0
    if (changeNumber === of.changeNumber) return true
    const isKnown = changeNumber > of.changeNumber && changeNumber <= of.changeNumber + KEPT_CHANGES // older changes are removed
    const changes = isKnown ? await listTitleChanges(db, accountId, of.changeNumber, MAX_CHANGES) : []
    if (!isKnown || changes.length === MAX_CHANGES || !changes.every((change) => apply(index, change))) return false
    of.changeNumber = changeNumber
    return index.sizeChars() <= of.maxChars
  }

  async function find(accountId: string, terms: readonly TitleTerm[], slice: Slice): Promise<Counted | undefined> {
    const account = held.get(accountId)
    if (!account) {
      build(accountId).catch(() => undefined) // the database reports by itself that it is unavailable; the next search tries again
      return undefined
    }
    const { index } = account
    if (!index) return undefined
    const update = () => bringUpToDate(accountId, index, account)
    account.latest = account.latest.then(update, update)
    if (await account.latest) return index.search(terms, slice)
    if (held.peek(accountId) === account) held.delete(accountId)
    return undefined
  }

  return { find }
}

function apply(
  index: TitleIndex,
  { position, id, title }: { position: number; id: string | null; title: string | null },
): boolean {
  if (id !== null && title !== null) return index.set(position, { id, title })
  index.remove(position)
  return true
}

/** Removes the changes that no index needs any more. */
export async function pruneTitleChanges({ write }: { write: Write }): Promise<void> {
  while ((await write((tx) => removeOldTitleChanges(tx, KEPT_CHANGES, PRUNED_AT_ONCE))) > 0);
}

const PRUNED_AT_ONCE = 500
