import type { KeyPair } from './proof.ts'

const RETENTION_MS = 7 * 24 * 3600 * 1000 // no playback session lives longer

type StoredPair = { pair: KeyPair; storedAtMs: number }

export type KeyStore = {
  /** False: the browser denies storage; keys live as long as this page, and a reload needs a new OTP. */
  readonly lasts: boolean
  find(name: string): Promise<KeyPair | undefined>
  /** Stores the pair unless another tab was first. @returns the stored pair */
  storeIfAbsent(name: string, pair: KeyPair): Promise<KeyPair>
}

/**
 * Key pairs by name (SHA-256 of an OTP, or a session's id). IndexedDB, because it alone holds a key that
 * no script can read; in memory where the browser denies it (sandboxed frames, blocked storage).
 */
export async function openKeyStore(): Promise<KeyStore> {
  try {
    const db = await openDatabase()
    await deleteExpired(db)
    return createIndexedDbStore(db)
  } catch {
    return createMemoryStore()
  }
}

function createIndexedDbStore(db: IDBDatabase): KeyStore {
  return {
    lasts: true,
    async find(name) {
      const stored: StoredPair | undefined = await toPromise(db.transaction('keys').objectStore('keys').get(name))
      return stored?.pair
    },
    storeIfAbsent(name, pair) {
      return new Promise((resolve) => {
        const transaction = db.transaction('keys', 'readwrite', { durability: 'strict' })
        const keys = transaction.objectStore('keys')
        const found: IDBRequest<StoredPair | undefined> = keys.get(name)
        let stored = pair
        found.onsuccess = () => {
          if (found.result) stored = found.result.pair
          else keys.put({ pair, storedAtMs: Date.now() } satisfies StoredPair, name)
        }
        // Only a finished transaction survives a reload, and the pair must be there before the OTP is spent.
        transaction.oncomplete = () => resolve(stored)
        // Full, or a browser that cannot store keys: this page plays all the same, a reload needs a new OTP.
        transaction.onabort = () => resolve(pair)
      })
    },
  }
}

function createMemoryStore(): KeyStore {
  const pairs = new Map<string, KeyPair>()
  return {
    lasts: false,
    find: async (name) => pairs.get(name),
    async storeIfAbsent(name, pair) {
      const stored = pairs.get(name) ?? pair
      pairs.set(name, stored)
      return stored
    },
  }
}

function openDatabase(): Promise<IDBDatabase> {
  const opening = indexedDB.open('reelgate-player', 1)
  opening.onupgradeneeded = () => opening.result.createObjectStore('keys')
  return toPromise(opening)
}

function deleteExpired(db: IDBDatabase): Promise<void> {
  return new Promise((resolve, reject) => {
    const transaction = db.transaction('keys', 'readwrite')
    const each: IDBRequest<IDBCursorWithValue | null> = transaction.objectStore('keys').openCursor()
    each.onsuccess = () => {
      const cursor = each.result
      if (!cursor) return
      const stored: StoredPair = cursor.value
      if (stored.storedAtMs < Date.now() - RETENTION_MS) cursor.delete()
      cursor.continue()
    }
    transaction.oncomplete = () => resolve()
    transaction.onabort = () => reject(transaction.error)
  })
}

function toPromise<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}
