import type { AccountDeps } from './api-key.ts'
import { saveLastUse } from './api-key-store.ts'

/** When keys were last used: noted in memory by each request, written down now and then, so that no request waits for it. */
export function createKeyUseTracker({ write, nowS }: Pick<AccountDeps, 'write' | 'nowS'>) {
  let used = new Map<string, number>()
  return {
    note(apiKeyId: string): void {
      used.set(apiKeyId, nowS())
    },
    /** Called once a minute and at the end: each commit makes the next request of a key read its holder anew. */
    async save(): Promise<void> {
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

export type KeyUseTracker = ReturnType<typeof createKeyUseTracker>
