import { type MediaFolder, ofMediaFolders } from '../config/data-paths.ts'
import type { BlobStore } from '../storage/blob-store.ts'
import { copyBlob, type FileCheck } from '../storage/copy.ts'
import type { Bucket } from '../storage/s3/bucket.ts'
import type { MovedBlobs } from './moved-blob-store.ts'

// Blobs that move from one place to another while they are used. New ones are written to the new place and listed there before their
// caller commits the row that names them; one that is copied is listed after it. So a name says where its blob is at every moment, and
// nothing is searched for. The old place keeps what was copied out of it.

type StoredFiles = Readonly<Record<MediaFolder, BlobStore>>

/** The data folder, or a bucket. */
export type Place = {
  /** The id in the bucket’s marker; empty: the data folder. */
  id: string
  /** For messages, without secrets. */
  name: string
  bucket: Bucket | undefined
  files: StoredFiles
}

/** `removed`: another call removes or has removed it. `lost`: the old place does not have it, or not as it was published. */
type CopyOutcome = 'copied' | 'lost' | 'removed'

export type Places = {
  /** The blobs, wherever they are. */
  files: StoredFiles
  /** Where all are, or during a move those that are not listed as moved. */
  current(): Place
  /** During a move: where they go. */
  target(): Place | undefined
  /** From now on new blobs go there. */
  begin(target: Place): void
  /** Copies a blob to the new place, and lists it. @param signal aborts it */
  copy(folder: MediaFolder, name: string, check: FileCheck | undefined, signal: AbortSignal): Promise<CopyOutcome>
  /** Resolves when no call is at work any more that writes to the old place or uses a path in it. */
  untilUnused(): Promise<void>
  /** The new place has everything. */
  end(): void
}

type State = { at: Place; to: Place | undefined }

export function openPlaces(at: Place, to: Place | undefined, moved: MovedBlobs): Places {
  let state: State = { at, to }
  /** Calls at the old place, or at the only one. */
  const uses = new Set<Promise<unknown>>()
  const copies = new Map<string, { ending: AbortController; ended: Promise<unknown> }>()
  const removals = new Set<{ below: string }>()

  function track<T>(call: Promise<T>): Promise<T> {
    const use = call.catch(() => undefined).finally(() => uses.delete(use))
    uses.add(use)
    return call
  }

  /** Ends copies of what is removed first: otherwise they would bring it back. */
  async function remove(below: string, from: (place: Place) => Promise<void>): Promise<void> {
    const removal = { below }
    removals.add(removal)
    try {
      for (const [key, { ending, ended }] of copies) {
        if (!isBelow(key, below)) continue
        ending.abort()
        await ended
      }
      for (const place of [state.to, state.at]) if (place) await from(place)
    } finally {
      removals.delete(removal)
    }
  }

  async function copy(
    folder: MediaFolder,
    name: string,
    check: FileCheck | undefined,
    signal: AbortSignal,
  ): Promise<CopyOutcome> {
    const { at, to } = state
    const key = `${folder}/${name}`
    if (!to) throw new Error('there is no move')
    if (copies.has(key) || [...removals].some(({ below }) => isBelow(key, below))) return 'removed'
    const ending = new AbortController()
    async function run(target: Place): Promise<CopyOutcome> {
      const options = { signal: AbortSignal.any([signal, ending.signal]) }
      const copied = await copyBlob(at.files[folder], target.files[folder], name, check, options)
      if (!copied) return 'lost'
      const stored = await target.files[folder].stat(name)
      if (stored?.sizeBytes !== copied.sizeBytes) throw new Error(`${key} was not stored whole in ${target.name}`)
      await moved.add(key)
      return 'copied'
    }
    const running = run(to).catch((error: unknown): CopyOutcome => {
      if (ending.signal.aborted) return 'removed'
      throw error
    })
    copies.set(key, { ending, ended: running.catch(() => undefined) })
    return running.finally(() => copies.delete(key))
  }

  function storeOf(folder: MediaFolder): BlobStore {
    const key = (name: string) => `${folder}/${name}`
    const both = () => [state.at, state.to].flatMap((place) => place?.files[folder] ?? [])

    async function isMoved(name: string): Promise<boolean> {
      return (await moved.find([key(name)])).size > 0
    }

    /** Where a blob is. */
    async function find(name: string): Promise<Place> {
      const seen = state
      if (!seen.to) return seen.at
      const found = (await isMoved(name)) ? seen.to : seen.at
      return state === seen ? found : find(name) // the list is emptied after a move
    }

    const storeWith = async (name: string) => (await find(name)).files[folder]

    /** Writes a new blob. @param write @returns false: it has not */
    async function add<T>(name: string, write: (store: BlobStore) => Promise<T>, isWritten = (_: T) => true): Promise<T> {
      const { at, to } = state
      if (!to) return track(write(at.files[folder]))
      const written = await write(to.files[folder])
      if (isWritten(written)) await moved.add(key(name))
      return written
    }

    return {
      put: (name, bytes, options) => add(name, (store) => store.put(name, bytes, options)),
      adopt: (name, from) =>
        add(
          name,
          (store) => store.adopt(name, from),
          (isAdopted) => isAdopted,
        ),
      read: async (name) => (await storeWith(name)).read(name),
      open: async (name) => (await storeWith(name)).open(name),
      stat: async (name) => (await storeWith(name)).stat(name),
      remove: (name) => remove(key(name), (place) => place.files[folder].remove(name)),
      removeAll: (below) => remove(key(below), (place) => place.files[folder].removeAll(below)),
      retire: (name) => remove(key(name), (place) => place.files[folder].retire(name)),
      retireAll: (below) => remove(key(below), (place) => place.files[folder].retireAll(below)),
      async *listRetired() {
        for (const store of both()) yield* store.listRetired()
      },
      async endRetirement(retired) {
        for (const store of both()) await store.endRetirement(retired)
      },
      /** During a move each name is asked for: the table says where it is. */
      get listStats() {
        return state.to ? undefined : state.at.files[folder].listStats
      },
      list: (below, after) => merge(both().map((store) => store.list(below, after))),
      async appendPart(name, countedBytes, bytes) {
        const isContinued = countedBytes > 0 || (await isMoved(name))
        if (!isContinued) return add(name, (store) => store.appendPart(name, 0, bytes))
        const place = await find(name)
        const appended = place.files[folder].appendPart(name, countedBytes, bytes)
        return place === state.at ? track(appended) : appended
      },
      async finish(name, countedBytes) {
        const place = await find(name)
        const finished = place.files[folder].finish(name, countedBytes)
        return place === state.at ? track(finished) : finished
      },
      async withLocalCopy(name, use) {
        const place = await find(name)
        const used = place.files[folder].withLocalCopy(name, use)
        return place === state.at ? track(used) : used
      },
      async removeUnfinished(sinceS) {
        let removed = 0
        for (const store of both()) removed += await store.removeUnfinished(sinceS)
        return removed
      },
      /** A bucket’s clock is read in whole seconds. */
      nowS: async () => Math.floor(Math.min(...(await Promise.all(both().map((store) => store.nowS()))))) + 1,
      async check() {
        for (const store of both()) await store.check()
      },
    }
  }

  return {
    files: ofMediaFolders(storeOf),
    current: () => state.at,
    target: () => state.to,
    begin(target) {
      state = { at: state.at, to: target }
    },
    copy,
    async untilUnused() {
      while (uses.size > 0) await Promise.all(uses)
    },
    end() {
      if (state.to) state = { at: state.to, to: undefined }
    },
  }
}

function isBelow(key: string, folder: string): boolean {
  return key === folder || key.startsWith(`${folder}/`)
}

/** Lists in one order, each name once. */
async function* merge(lists: readonly AsyncGenerator<string>[]): AsyncGenerator<string> {
  const heads = await Promise.all(lists.map((list) => list.next()))
  for (;;) {
    const names = heads.flatMap(({ done, value }) => (done === true ? [] : [value]))
    const first = names.reduce<string | undefined>(
      (least, name) => (least === undefined || name < least ? name : least),
      undefined,
    )
    if (first === undefined) return
    yield first
    for (const [i, head] of heads.entries()) {
      const list = lists[i]
      if (list && head.done !== true && head.value === first) heads[i] = await list.next()
    }
  }
}
