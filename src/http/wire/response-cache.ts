/** Bodies kept in all: some hundred list pages. */
const MAX_BYTES = 16 * 2 ** 20
/** Longer questions are rare and their keys would cost more than they save. */
const MAX_KEY_LENGTH = 300

/** `link`: the header that leads on. */
export type CachedResponse = { body: Buffer; link: string | undefined }

/** Answers that stay right as long as an account's change number stands; the longest unasked go first. */
export type ResponseCache = {
  find(key: string, changeNumber: number): CachedResponse | undefined
  keep(key: string, changeNumber: number, answer: CachedResponse): void
}

export function createResponseCache(): ResponseCache {
  const kept = new Map<string, CachedResponse & { changeNumber: number }>()
  let bytes = 0

  function forget(key: string): void {
    bytes -= kept.get(key)?.body.length ?? 0
    kept.delete(key)
  }

  return {
    find(key, changeNumber) {
      const answer = kept.get(key)
      if (answer?.changeNumber !== changeNumber) return undefined
      kept.delete(key)
      kept.set(key, answer)
      return answer
    },
    keep(key, changeNumber, answer) {
      const { body } = answer
      if (key.length > MAX_KEY_LENGTH || body.length > MAX_BYTES) return
      forget(key)
      kept.set(key, { ...answer, changeNumber })
      bytes += body.length
      for (const oldest of kept.keys()) {
        if (bytes <= MAX_BYTES) break
        forget(oldest)
      }
    },
  }
}
