import type { AccountDeps } from './api-key.ts'
import { saveLastUse } from './api-key-store.ts'

export type KeyUseTracker = {
  record(apiKeyId: string): void
  /** Called once a minute and at the end: after each commit the next request of a key reads its holder again. */
  save(): Promise<void>
}

/** When keys were last used: recorded in memory by each request and saved from time to time, so that no request waits for a write. */
export function createKeyUseTracker({ write, nowS }: Pick<AccountDeps, 'write' | 'nowS'>): KeyUseTracker {
  let used = new Map<string, number>()
  return {
    record(apiKeyId) {
      used.set(apiKeyId, nowS())
    },
    async save() {
      if (used.size === 0) return
      const uses = used
      used = new Map()
      try {
        await write(async (tx) => {
          for (const [id, lastUsedAtS] of uses) await saveLastUse(tx, { id, lastUsedAtS })
        })
      } catch (error) {
        used = new Map([...uses, ...used])
        throw error
      }
    },
  }
}
