import type { Db } from '../db/database.ts'
import { findSetting, removeSetting, saveSetting } from '../db/setting.ts'
import type { Write } from '../db/write.ts'
import { findFirstAccount } from './alert-store.ts'
import { recordOperationsAlert } from './operations.ts'

/** An outage that is shorter is none for the operator: stores restart, and networks are mended. */
const ALERT_AFTER_S = 300
/** Since when the bucket is away, from the alert about it to the one about its end: a restart in between does not lose the end. */
const AWAY_SINCE = 'bucket-away-since'

type BucketWatchDeps = {
  db: Db
  write: Write
  nowS: () => number
  /** For how many seconds the bucket has been away, and why; undefined while it answers. */
  outage(): { reason: string; forS: number } | undefined
}

/**
 * Alerts the first account once a bucket has been away for five minutes, and once more when it answers again.
 * @returns one look, to be called every few seconds
 */
export async function watchBucket({ db, write, nowS, outage }: BucketWatchDeps): Promise<() => Promise<void>> {
  let alertedSinceS = Number((await findSetting(db, AWAY_SINCE)) ?? 0)

  return async function look(): Promise<void> {
    const away = outage()
    if (away && alertedSinceS === 0 && away.forS >= ALERT_AFTER_S) {
      const sinceS = nowS() - Math.round(away.forS)
      await alert('bucket-away', sinceS, { reason: away.reason, sinceS }, (tx) => saveSetting(tx, AWAY_SINCE, String(sinceS)))
      alertedSinceS = sinceS
    }
    if (!away && alertedSinceS > 0) {
      await alert('bucket-back', alertedSinceS, { awayS: nowS() - alertedSinceS }, (tx) => removeSetting(tx, AWAY_SINCE))
      alertedSinceS = 0
    }
  }

  async function alert(
    cause: 'bucket-away' | 'bucket-back',
    sinceS: number,
    numbers: Record<string, number | string>,
    remember: (tx: Db) => Promise<void>,
  ): Promise<void> {
    const account = await findFirstAccount(db)
    await write(async (tx) => {
      await remember(tx)
      if (account) await recordOperationsAlert(tx, { accountId: account.id, cause, subject: `outage ${sinceS}`, numbers }, nowS())
    })
  }
}
