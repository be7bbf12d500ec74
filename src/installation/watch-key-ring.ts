import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import type { MasterKey } from '../crypto/master-key.ts'
import type { Db } from '../db/database.ts'
import { Failure, logLevelFor } from '../errors.ts'
import type { Signals } from '../signals/signals.ts'
import { followKeyRing } from './master-key.ts'

/** The key ring of a server, as others rotate the master key. */
type KeyRingWatch = {
  /** Why this server must answer nothing: it cannot open what is wrapped by the new key. */
  refusal(): Failure | undefined
  /** Reads the key again where it was too old. */
  retry(): Promise<void>
}

export function watchKeyRing(
  { db, masterKey, signals, log }: { db: Db; masterKey: MasterKey; signals: Pick<Signals, 'on'>; log: Logger },
  config: Config,
): KeyRingWatch {
  let refusal: Failure | undefined

  async function follow(): Promise<void> {
    try {
      await followKeyRing({ db, masterKey }, config)
      if (refusal) log.info('master key: this server has the new one')
      refusal = undefined
    } catch (error) {
      if (logLevelFor(error, 'error') === 'debug') throw error // the database does not answer, so nothing is known
      if (!refusal) log.error({ err: error }, 'master key: rotated on another server, and older here; rejecting calls')
      refusal = new Failure(
        'unavailable',
        `The master key was rotated on another server, and ${config.masterKeyVariable} here has only the one before. Put the new key there.`,
        { cause: error },
      )
    }
  }

  signals.on('key-ring-changed', follow)
  return {
    refusal: () => refusal,
    retry: async () => {
      if (refusal) await follow()
    },
  }
}
