import type { Db } from './database.ts'
import { isCommitOutcomeUnknown, type Write } from './write.ts'

// What changes with many requests is changed in memory and written every few seconds, so that no request waits for a write. The rows
// are the truth: where another server may write them, too, each has a version, and a save names the one that it started from.

/** How the items of one kind are written. */
type Kind<Item, Change> = {
  /** What is to be written of an item now, as a copy; undefined: nothing. */
  toChange(item: Item): Change | undefined
  /**
   * Writes a change, unless its row has another version than the change started from.
   * @returns then what merges that row into the item, which is written again; undefined: it is written, or there is nothing to write to
   */
  write(tx: Db, change: Change): Promise<Merge<Item> | undefined>
  /** The change is durable. */
  onWritten(item: Item, change: Change): void
  /** The change may be durable. It is written again, except for what this takes out of the item. */
  onUnknown?(item: Item, change: Change): void
  /** An item that is written is dropped from memory when it was not used for so long. 300 unless given. */
  forgetAfterS?: number
}

/** Adds what a row has to an item. */
export type Merge<Item> = (item: Item) => void

/** Items in memory, by their names. One that is asked for by its name is used. */
export type WriteBehind<Item> = {
  readonly size: number
  get(name: string): Item | undefined
  /** Does not count as a use. */
  peek(name: string): Item | undefined
  has(name: string): boolean
  values(): Iterable<Item>
  /** The item with this name, made if it is not in memory. */
  getOrMake(name: string, make: () => Item): Item
  /** The same for an item that is loaded: once, however many ask for it meanwhile. */
  getOrLoad(name: string, load: () => Promise<Item>): Promise<Item>
  /** Writes all that changed before the call, and drops what was not used for a while. What cannot be written is kept. */
  save(): Promise<void>
  /** Drops what was not used for a while, and writes nothing: for items whose rows are written elsewhere. */
  dropUnused(): void
  /** Drops items with what is not written of them. */
  forget(matches: (item: Item) => boolean): void
}

type Entry<Item> = { item: Item; usedAtS: number }

const FORGET_AFTER_S = 300
/** Changes written in one transaction, which delays other writes by a few milliseconds. */
const BATCH_SIZE = 250
/** How often one save merges what other servers write meanwhile; then the next one does. */
const MAX_ROUNDS = 3

export function createWriteBehind<Item extends object, Change>(
  { write, nowS }: { write: Write; nowS(): number },
  kind: Kind<Item, Change>,
): WriteBehind<Item> {
  const { forgetAfterS = FORGET_AFTER_S } = kind
  const entries = new Map<string, Entry<Item>>()
  const loading = new Map<string, Promise<Item>>()
  let saving: Promise<void> = Promise.resolve()

  function get(name: string): Item | undefined {
    const entry = entries.get(name)
    if (entry) entry.usedAtS = nowS()
    return entry?.item
  }

  function getOrMake(name: string, make: () => Item): Item {
    const known = get(name)
    if (known) return known
    const item = make()
    entries.set(name, { item, usedAtS: nowS() })
    return item
  }

  async function getOrLoad(name: string, load: () => Promise<Item>): Promise<Item> {
    const known = get(name)
    if (known) return known
    const promise = loading.get(name) ?? load().finally(() => loading.delete(name))
    loading.set(name, promise)
    const loaded = await promise
    return getOrMake(name, () => loaded)
  }

  async function saveAll(): Promise<void> {
    let items = [...values()]
    for (let round = 0; items.length > 0 && round < MAX_ROUNDS; round++) items = await saveItems(items)
    dropUnused((item) => kind.toChange(item) === undefined)
  }

  function dropUnused(mayDrop: (item: Item) => boolean): void {
    const unusedSinceS = nowS() - forgetAfterS
    for (const [name, { item, usedAtS }] of entries) if (usedAtS <= unusedSinceS && mayDrop(item)) entries.delete(name)
  }

  /** @returns those that were merged with their rows instead */
  async function saveItems(items: readonly Item[]): Promise<Item[]> {
    const changes = items.flatMap((item) => {
      const change = kind.toChange(item)
      return change === undefined ? [] : [{ item, change }]
    })
    const merged: Item[] = []
    for (let first = 0; first < changes.length; first += BATCH_SIZE) {
      const batch = changes.slice(first, first + BATCH_SIZE)
      const merges = await writeBatch(batch)
      for (const [n, { item, change }] of batch.entries()) {
        const merge = merges[n]
        if (merge) {
          merge(item)
          merged.push(item)
        } else kind.onWritten(item, change)
      }
    }
    return merged
  }

  async function writeBatch(batch: readonly { item: Item; change: Change }[]): Promise<(Merge<Item> | undefined)[]> {
    try {
      return await write(async (tx) => {
        const merges: (Merge<Item> | undefined)[] = []
        for (const { change } of batch) merges.push(await kind.write(tx, change))
        return merges
      })
    } catch (error) {
      if (isCommitOutcomeUnknown(error)) for (const { item, change } of batch) kind.onUnknown?.(item, change)
      throw error
    }
  }

  const values = () => entries.values().map(({ item }) => item)

  return {
    get size() {
      return entries.size
    },
    get,
    peek: (name) => entries.get(name)?.item,
    has: (name) => entries.has(name),
    values,
    getOrMake,
    getOrLoad,
    save() {
      saving = saving.catch(() => undefined).then(saveAll)
      return saving
    },
    dropUnused: () => dropUnused(() => true),
    forget(matches) {
      for (const [name, { item }] of entries) if (matches(item)) entries.delete(name)
    },
  }
}
