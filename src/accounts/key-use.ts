import { createWriteBehind } from '../db/write-behind.ts'
import type { AccountDeps } from './api-key.ts'
import { saveLastUse } from './api-key-store.ts'

type KeyUseTracker = {
  record(apiKeyId: string): void
  /** Called once a minute and at the end: after each commit the next request of a key reads its holder again. */
  save(): Promise<void>
}

/** A key, when it was last used, and what of that is saved. */
type KeyUse = { id: string; lastUsedAtS: number; savedAtS: number }

/** When keys were last used: recorded in memory by each request and saved from time to time, so that no request waits for a write. */
export function createKeyUseTracker({ write, nowS }: Pick<AccountDeps, 'write' | 'nowS'>): KeyUseTracker {
  const uses = createWriteBehind<KeyUse, Parameters<typeof saveLastUse>[1]>(
    { write, nowS },
    {
      toChange: ({ id, lastUsedAtS, savedAtS }) => (lastUsedAtS > savedAtS ? { id, lastUsedAtS } : undefined),
      async write(tx, use) {
        await saveLastUse(tx, use)
      },
      onWritten(use, { lastUsedAtS }) {
        use.savedAtS = lastUsedAtS
      },
    },
  )
  return {
    record(id) {
      uses.getOrMake(id, () => ({ id, lastUsedAtS: 0, savedAtS: 0 })).lastUsedAtS = nowS()
    },
    save: uses.save,
  }
}
