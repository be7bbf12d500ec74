import type { Logger } from 'pino'
import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { DAY_S } from '../time.ts'
import { findFirstAccount } from './alert-store.ts'
import type { OperationsCause } from './cause.ts'
import { recordOperationsAlert } from './operations.ts'

export const UNKNOWN_PROXY: OperationsCause = 'proxy-unknown'

type UnknownProxyDeps = { db: Db; write: Write; nowS: () => number; log: Logger }

/** Reports a proxy that is not trusted: in the log once, and as an alert once a day. To be called for each of its requests. */
export function createUnknownProxyReport({ db, write, nowS, log }: UnknownProxyDeps): (address: string) => Promise<void> {
  let alertedS = Number.NEGATIVE_INFINITY
  return async (address) => {
    const atS = nowS()
    if (atS - alertedS < DAY_S) return
    if (alertedS === Number.NEGATIVE_INFINITY) log.warn({ address }, `proxy: not trusted. ${explainUnknownProxy(address)}`)
    alertedS = atS
    const account = await findFirstAccount(db)
    if (!account) return
    const alert = { accountId: account.id, cause: UNKNOWN_PROXY, numbers: { address } }
    await write((tx) => recordOperationsAlert(tx, alert, atS))
  }
}

export function explainUnknownProxy(address: string): string {
  return `${address} sends X-Forwarded-For, which is ignored: if it is your proxy, all viewers behind it share its limits. Add it to REELGATE_TRUSTED_PROXIES; otherwise let only the proxy reach this port.`
}
