import type { KeyPair } from './proof.ts'

const KEPT_MS = 7 * 24 * 3600 * 1000 // no playback session lives longer

type Kept = { pair: KeyPair; keptAtMs: number }

export type KeyStore = {
  /** False: the browser denies storage; keys live as long as this page, and a reload needs a new OTP. */
  readonly lasts: boolean
  find(name: string): Promise<KeyPair | undefined>
  /** Keeps the pair unless another tab was first; returns the pair that is kept. */
  keep(name: string, pair: KeyPair): Promise<KeyPair>
}

/**
 * Key pairs by name (SHA-256 of an OTP, or a session's id). IndexedDB, because it alone holds a key that
 * no script can read; in memory where the browser denies it (sandboxed frames, blocked storage).
 */
export async function openKeyStore(): Promise<KeyStore> {
  try {
    const db = await openDatabase()
    await dropOld(db)
    return storedIn(db)
  } catch {
    return inMemory()
  }
}

function storedIn(db: IDBDatabase): KeyStore {
  return {
    lasts: true,
    async find(name) {
      const kept: Kept | undefined = await settled(db.transaction('keys').objectStore('keys').get(name))
      return kept?.pair
    },
    keep(name, pair) {
      return new Promise((resolve) => {
        const work = db.transaction('keys', 'readwrite', { durability: 'strict' })
        const keys = work.objectStore('keys')
        const found: IDBRequest<Kept | undefined> = keys.get(name)
        let kept = pair
        found.onsuccess = () => {
          if (found.result) kept = found.result.pair
          else keys.put({ pair, keptAtMs: Date.now() } satisfies Kept, name)
        }
        // Only a finished transaction survives a reload, and the pair must be there before the OTP is spent.
        work.oncomplete = () => resolve(kept)
        // Full, or a browser that cannot store keys: this page plays all the same, a reload needs a new OTP.
        work.onabort = () => resolve(pair)
      })
    },
  }
}

function inMemory(): KeyStore {
  const pairs = new Map<string, KeyPair>()
  return {
    lasts: false,
    find: async (name) => pairs.get(name),
    async keep(name, pair) {
      const kept = pairs.get(name) ?? pair
      pairs.set(name, kept)
      return kept
    },
  }
}

function openDatabase(): Promise<IDBDatabase> {
  const opening = indexedDB.open('reelgate-player', 1)
  opening.onupgradeneeded = () => opening.result.createObjectStore('keys')
  return settled(opening)
}

function dropOld(db: IDBDatabase): Promise<void> {
  return new Promise((resolve, reject) => {
    const work = db.transaction('keys', 'readwrite')
    const each: IDBRequest<IDBCursorWithValue | null> = work.objectStore('keys').openCursor()
    each.onsuccess = () => {
      const cursor = each.result
      if (!cursor) return
      const kept: Kept = cursor.value
      if (kept.keptAtMs < Date.now() - KEPT_MS) cursor.delete()
      cursor.continue()
    }
    work.oncomplete = () => resolve()
    work.onabort = () => reject(work.error)
  })
}

function settled<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}
