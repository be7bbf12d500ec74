import { setTimeout as wait } from 'node:timers/promises'
import type { Channel } from '../db/database.ts'
import { Failure } from '../errors.ts'
import type { Signals } from '../signals/signals.ts'

// Which connection a resumable upload belongs to: in memory, and where there are several servers under a lock of theirs as well.

/** A request for an upload. */
export type UploadConnection = {
  /** How long the client has sent nothing of what is still to come; undefined when everything has come, or nothing was to. */
  silentForMs(): number | undefined
  /** Ends the request: nothing more of it is read. What has come of it is kept, and the upload released. */
  end(): void
}

export type UploadLocks = {
  /**
   * Waits until no other connection has the upload. One that has been silent for a second is ended, for its client may have lost it.
   * @throws Failure `locked` when another one brings bytes, or does not release the upload in time
   */
  take(uploadId: string, connection: UploadConnection): Promise<Disposable>
}

const SILENT_MS = 1_000
/** For a disk that is slow to sync. */
const MAX_WAIT_MS = 10_000
/** Another server does not say whether its client brings bytes. */
const MAX_WAIT_OF_SERVERS_MS = 3_000

/** Between two attempts to get it from another server. */
const RETRY_MS = 250

/** How the servers agree. Undefined: there is one. */
type AmongServers = { channel: Pick<Channel, 'tryLock' | 'unlock'>; signals: Pick<Signals, 'send' | 'on'> }

type Holder = { connection: UploadConnection; released: Promise<void> }

export function createUploadLocks(servers?: AmongServers): UploadLocks {
  const holders = new Map<string, Holder>()

  async function take(uploadId: string, connection: UploadConnection): Promise<Disposable> {
    for (;;) {
      const holder = holders.get(uploadId)
      if (!holder) break
      if (!endIfSilent(holder)) throw uploadLocked()
      if (!(await isReleased(holder))) throw uploadLocked()
    }
    const { promise: released, resolve } = Promise.withResolvers<void>()
    holders.set(uploadId, { connection, released })
    const release = () => {
      holders.delete(uploadId)
      resolve()
    }
    try {
      await takeFromServers(uploadId)
    } catch (error) {
      release()
      throw error
    }
    return {
      [Symbol.dispose]() {
        release()
        void servers?.channel.unlock(lockOf(uploadId)).catch(() => undefined) // lost with its connection
      },
    }
  }

  /** False: it brings bytes. */
  function endIfSilent({ connection }: Holder): boolean {
    const silentForMs = connection.silentForMs()
    if (silentForMs !== undefined && silentForMs < SILENT_MS) return false
    if (silentForMs !== undefined) connection.end()
    return true
  }

  async function takeFromServers(uploadId: string): Promise<void> {
    if (!servers) return
    for (const beganMs = performance.now(); !(await servers.channel.tryLock(lockOf(uploadId))); await wait(RETRY_MS)) {
      if (performance.now() - beganMs > MAX_WAIT_OF_SERVERS_MS) throw uploadLocked()
      void servers.signals.send('upload-wanted', { uploadId })
    }
  }

  servers?.signals.on('upload-wanted', ({ uploadId }, origin) => {
    const holder = origin === 'elsewhere' ? holders.get(uploadId) : undefined
    if (holder) endIfSilent(holder)
  })

  return { take }
}

const lockOf = (uploadId: string) => `upload ${uploadId}`

async function isReleased({ released }: Holder): Promise<boolean> {
  const stopWaiting = new AbortController()
  const timeout = wait(MAX_WAIT_MS, false, { signal: stopWaiting.signal }).catch(() => false)
  const inTime = await Promise.race([released.then(() => true), timeout])
  stopWaiting.abort()
  return inTime
}

export function uploadLocked(): Failure {
  const sentence = 'Another connection is sending this upload. Try again in a second, or let that one finish.'
  return new Failure('locked', sentence, { retryAfterS: 1 })
}
