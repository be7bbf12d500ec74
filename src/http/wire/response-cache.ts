import { LRUCache } from 'lru-cache'

/** Bodies in all: some hundred list pages. */
const MAX_BYTES = 16 * 2 ** 20
/** Longer queries are rare, and their keys would cost more than they save. */
const MAX_KEY_LENGTH = 300

/** `link`: the header with the next page. */
export type CachedResponse = { body: Buffer; link: string | undefined }

/** Responses that are valid as long as an account's change number is the same. */
export type ResponseCache = {
  find(key: string, changeNumber: number): CachedResponse | undefined
  store(key: string, changeNumber: number, response: CachedResponse): void
}

export function createResponseCache(): ResponseCache {
  const cache = new LRUCache<string, CachedResponse & { changeNumber: number }>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ body }) => Math.max(1, body.length),
  })
  return {
    find(key, changeNumber) {
      const response = cache.get(key)
      return response?.changeNumber === changeNumber ? response : undefined
    },
    store(key, changeNumber, response) {
      if (key.length <= MAX_KEY_LENGTH) cache.set(key, { ...response, changeNumber })
    },
  }
}
