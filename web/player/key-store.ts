import type { ProofKey } from './proof.ts'

const RETENTION_MS = 7 * 24 * 3600 * 1000 // no playback session lives longer

type StoredKey = { proofKey: ProofKey; storedAtMs: number }

export type KeyStore = {
  /** False: the browser denies storage; keys live as long as this page, and a reload needs a new OTP. */
  readonly lasts: boolean
  find(name: string): Promise<ProofKey | undefined>
  /** Stores the key unless another tab was first. @returns the stored key */
  storeIfAbsent(name: string, proofKey: ProofKey): Promise<ProofKey>
}

/**
 * Proof keys by name (SHA-256 of an OTP, or a session's id). IndexedDB, because it alone holds a key that
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
      const stored: StoredKey | undefined = await toPromise(db.transaction('keys').objectStore('keys').get(name))
      return stored?.proofKey
    },
    storeIfAbsent(name, proofKey) {
      return new Promise((resolve) => {
        const transaction = db.transaction('keys', 'readwrite', { durability: 'strict' })
        const keys = transaction.objectStore('keys')
        const found: IDBRequest<StoredKey | undefined> = keys.get(name)
        let stored = proofKey
        found.onsuccess = () => {
          if (found.result) stored = found.result.proofKey
          else keys.put({ proofKey, storedAtMs: Date.now() } satisfies StoredKey, name)
        }
        // Only a finished transaction survives a reload, and the key must be there before the OTP is spent.
        transaction.oncomplete = () => resolve(stored)
        // Full, or a browser that cannot store keys: this page plays all the same, a reload needs a new OTP.
        transaction.onabort = () => resolve(proofKey)
      })
    },
  }
}

function createMemoryStore(): KeyStore {
  const keys = new Map<string, ProofKey>()
  return {
    lasts: false,
    find: async (name) => keys.get(name),
    async storeIfAbsent(name, proofKey) {
      const stored = keys.get(name) ?? proofKey
      keys.set(name, stored)
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
      const stored: StoredKey = cursor.value
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
