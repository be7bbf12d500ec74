import { setTimeout as wait } from 'node:timers/promises'
import { Failure } from '../errors.ts'

// Which connection a resumable upload belongs to. In memory: one server receives all files of an installation.

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

type Holder = { connection: UploadConnection; released: Promise<void> }

export function createUploadLocks(): UploadLocks {
  const holders = new Map<string, Holder>()

  async function take(uploadId: string, connection: UploadConnection): Promise<Disposable> {
    for (;;) {
      const holder = holders.get(uploadId)
      if (!holder) break
      const silentForMs = holder.connection.silentForMs()
      if (silentForMs !== undefined && silentForMs < SILENT_MS) throw locked()
      if (silentForMs !== undefined) holder.connection.end()
      if (!(await isReleased(holder))) throw locked()
    }
    const { promise: released, resolve } = Promise.withResolvers<void>()
    holders.set(uploadId, { connection, released })
    return {
      [Symbol.dispose]() {
        holders.delete(uploadId)
        resolve()
      },
    }
  }

  return { take }
}

async function isReleased({ released }: Holder): Promise<boolean> {
  const stopWaiting = new AbortController()
  const timeout = wait(MAX_WAIT_MS, false, { signal: stopWaiting.signal }).catch(() => false)
  const inTime = await Promise.race([released.then(() => true), timeout])
  stopWaiting.abort()
  return inTime
}

function locked(): Failure {
  const sentence = 'Another connection is sending this upload. Try again in a second, or let that one finish.'
  return new Failure('locked', sentence, { retryAfterS: 1 })
}
