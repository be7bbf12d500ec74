import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { LtiPlatformRow } from '../db/tables.ts'
import type { PlatformDeps } from './platform.ts'
import { updatePlatform } from './platform-store.ts'

/** Notes why a launch or a score of a platform failed, for its owner. */
export type RecordTrouble = (platform: Pick<LtiPlatformRow, 'id' | 'accountId'>, problem: string) => Promise<void>

const EVERY_S = 60
const MAX_REMEMBERED = 10_000

/** The same trouble is noted no more than once a minute: outsiders can cause it. */
export function createTroubleRecorder({
  write,
  nowS,
  log,
}: Pick<PlatformDeps, 'write' | 'nowS'> & { log: Logger }): RecordTrouble {
  const notedAtS = new LRUCache<string, number>({ max: MAX_REMEMBERED })

  return async ({ id, accountId }, problem) => {
    const key = `${id} ${problem}`
    const lastAtS = notedAtS.get(key)
    if (lastAtS !== undefined && nowS() - lastAtS < EVERY_S) return
    notedAtS.set(key, nowS())
    log.info({ accountId, platformId: id, reason: problem }, 'learning platform: refused')
    try {
      await write((tx) => updatePlatform(tx, id, { lastError: problem.slice(0, 500), lastErrorAtS: nowS() }))
    } catch (error) {
      log.warn({ err: error, platformId: id }, 'learning platform: recording a refusal failed')
    }
  }
}
