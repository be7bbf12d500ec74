import { type MediaFolder, ofMediaFolders } from '../config/data-paths.ts'
import type { BlobStore } from '../storage/blob-store.ts'
import { copyBlob, type FileCheck } from '../storage/copy.ts'
import type { Bucket } from '../storage/s3/bucket.ts'
import type { MovedBlobs } from './moved-blob-store.ts'

// Blobs that move from one place to another while they are used. New ones are written to the new place and listed there before their
// caller commits the row that names them; one that is copied is listed after it. So a name says where its blob is at every moment, and
// nothing is searched for. The old place keeps what was copied out of it.
// A move that is turned round goes on from the same list, backwards: new blobs go to the old place, what is listed is copied there and leaves
// the list.

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
  /** Whether the move was turned round: all goes back to where it was. */
  isTurnedRound(): boolean
  /** Where new blobs go, and during a move all. */
  receiving(): Place
  /** During a move: what it takes files out of. */
  leaving(): Place
  /** From now on new blobs go there. */
  begin(target: Place): void
  /** From now on new blobs go to the old place again. */
  turnRound(): void
  /** Copies a blob to where it is to be, and lists that. @param signal aborts it */
  copy(folder: MediaFolder, name: string, check: FileCheck | undefined, signal: AbortSignal): Promise<CopyOutcome>
  /** Resolves when no call is at work any more that writes to the place that is left, or uses a path in it. */
  untilUnused(): Promise<void>
  /** Everything is where it is to be. */
  end(): void
}

/** `at`: what is not listed; `to`: what is. */
type State = { at: Place; to: Place | undefined; isTurnedRound: boolean }

export function openPlaces(at: Place, to: Place | undefined, moved: MovedBlobs, isTurnedRound = false): Places {
  let state: State = { at, to, isTurnedRound }
  /** Calls, and the place that they are at. */
  const uses = new Map<Promise<unknown>, Place>()
  const copies = new Map<string, { ending: AbortController; ended: Promise<unknown> }>()
  const removals = new Set<{ below: string }>()

  function track<T>(place: Place, call: Promise<T>): Promise<T> {
    const use = call.catch(() => undefined).finally(() => uses.delete(use))
    uses.set(use, place)
    return call
  }

  const receiving = () => (state.isTurnedRound ? state.at : (state.to ?? state.at))
  const leaving = () => (state.isTurnedRound ? (state.to ?? state.at) : state.at)

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
    const { to, isTurnedRound } = state
    const [source, target] = [leaving(), receiving()]
    const key = `${folder}/${name}`
    if (!to) throw new Error('there is no move')
    if (copies.has(key) || [...removals].some(({ below }) => isBelow(key, below))) return 'removed'
    const ending = new AbortController()
    async function run(): Promise<CopyOutcome> {
      const options = { signal: AbortSignal.any([signal, ending.signal]) }
      const copied = await copyBlob(source.files[folder], target.files[folder], name, check, options)
      if (!copied) return 'lost'
      const stored = await target.files[folder].stat(name)
      if (stored?.sizeBytes !== copied.sizeBytes) throw new Error(`${key} was not stored whole in ${target.name}`)
      await (isTurnedRound ? moved.remove(key) : moved.add(key))
      return 'copied'
    }
    const running = run().catch((error: unknown): CopyOutcome => {
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
      const { to, isTurnedRound } = state
      const place = receiving()
      async function writeAndList(): Promise<T> {
        const written = await write(place.files[folder])
        if (to && isWritten(written)) await (isTurnedRound ? moved.remove(key(name)) : moved.add(key(name)))
        return written
      }
      return track(place, writeAndList())
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
        return track(place, appended)
      },
      async finish(name, countedBytes) {
        const place = await find(name)
        const finished = place.files[folder].finish(name, countedBytes)
        return track(place, finished)
      },
      async withLocalCopy(name, use, newCheck) {
        const place = await find(name)
        const used = place.files[folder].withLocalCopy(name, use, newCheck)
        return track(place, used)
      },
      mayCopy: (sizeBytes) => both().every((store) => store.mayCopy(sizeBytes)),
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
    isTurnedRound: () => state.isTurnedRound,
    receiving,
    leaving,
    begin(target) {
      state = { at: state.at, to: target, isTurnedRound: false }
    },
    turnRound() {
      state = { ...state, isTurnedRound: true }
    },
    copy,
    async untilUnused() {
      const left = leaving()
      const those = () => [...uses].flatMap(([use, place]) => (place === left ? [use] : []))
      while (those().length > 0) await Promise.all(those())
    },
    end() {
      state = { at: receiving(), to: undefined, isTurnedRound: false }
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
