import type { ProofKey } from './proof.ts'

const RETENTION_MS = 7 * 24 * 3600 * 1000 // no playback session lives longer
/** Some versions of WebKit leave a request to IndexedDB without an answer. */
const MAX_WAIT_MS = 10_000

type StoredKey = { proofKey: ProofKey; storedAtMs: number }

type KeyStore = {
  /** False: the browser denies storage; keys live as long as this page, and a reload needs a new OTP. */
  readonly lasts: boolean
  find(name: string): Promise<ProofKey | undefined>
  /** Stores the key unless another tab was first. @returns the stored key */
  storeIfAbsent(name: string, proofKey: ProofKey): Promise<ProofKey>
}

/**
 * Proof keys by name (SHA-256 of an OTP, or a session's id). IndexedDB, because it alone holds a key that
 * no script can read; in memory where the browser denies it (blocked storage), or does not answer.
 */
export async function openKeyStore(): Promise<KeyStore> {
  try {
    return createIndexedDbStore(await inTime(openDatabase()))
  } catch {
    return createMemoryStore()
  }
}

function createIndexedDbStore(db: IDBDatabase): KeyStore {
  return {
    lasts: true,
    async find(name) {
      const found: IDBRequest<StoredKey | undefined> = db.transaction('keys').objectStore('keys').get(name)
      const stored = await inTime(toPromise(found)).catch(() => undefined)
      return stored?.proofKey
    },
    storeIfAbsent: (name, proofKey) =>
      // Full, a browser that cannot store keys, or none in time: this page plays all the same, a reload needs a new OTP.
      inTime(storeIfAbsent(db, name, proofKey)).catch(() => proofKey),
  }
}

function storeIfAbsent(db: IDBDatabase, name: string, proofKey: ProofKey): Promise<ProofKey> {
  return new Promise((resolve, reject) => {
    const transaction = db.transaction('keys', 'readwrite', { durability: 'strict' })
    const keys = transaction.objectStore('keys')
    const found: IDBRequest<StoredKey | undefined> = keys.get(name)
    let stored = proofKey
    found.onsuccess = () => {
      if (found.result) stored = found.result.proofKey
      else keys.put({ proofKey, storedAtMs: Date.now() } satisfies StoredKey, name)
    }
    // In this transaction, which is waited for: WebKit blocks the store for good when a page is left in the midst of one.
    deleteExpired(keys)
    // Only a finished transaction survives a reload, and the key must be there before the OTP is spent.
    transaction.oncomplete = () => resolve(stored)
    transaction.onabort = () => reject(transaction.error)
  })
}

function deleteExpired(keys: IDBObjectStore): void {
  const each: IDBRequest<IDBCursorWithValue | null> = keys.openCursor()
  each.onsuccess = () => {
    const cursor = each.result
    if (!cursor) return
    const stored: StoredKey = cursor.value
    if (stored.storedAtMs < Date.now() - RETENTION_MS) cursor.delete()
    cursor.continue()
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

function toPromise<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}

/** @throws Error when there is no answer within `MAX_WAIT_MS` */
function inTime<T>(answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('The storage does not answer')), MAX_WAIT_MS)
    answer.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
