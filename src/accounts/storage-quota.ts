import type { Db } from '../db/database.ts'
import { Failure } from '../errors.ts'
import { formatSize } from '../format-size.ts'
import { findStorageLimit } from './account-store.ts'
import { sumStoredBytes } from './storage-store.ts'

// What an account may still store. Files that are being received count, so that concurrent uploads do not exceed the limit together.
// They are in memory: one server receives all files of an installation, and after a restart none is being received. What the server
// makes itself, renditions and posters, counts once it exists, and is never refused.

export type StorageQuota = {
  /** For what has no size yet. @throws Failure `over-quota` when nothing more fits */
  assertNotFull(accountId: string): Promise<void>
  /** Begins to receive the file of a video: it counts with what it reserves, until it is disposed of. */
  receive(file: IncomingFile): Reservation
}

export type Reservation = Disposable & {
  /** Counts the file as this large, or larger if it was. @throws Failure `over-quota` when it does not fit */
  reserve(bytes: number): Promise<void>
}

/** A file of a video. `replaces`: not 0 for one that is stored besides the video's first. */
type IncomingFile = { accountId: string; videoId: string; replaces: number }

/** A file that is being received. */
type Incoming = IncomingFile & { bytes: number }

export function createStorageQuota(deps: { db: Db; slowQueryDb: Db }): StorageQuota {
  const incoming = new Set<Incoming>()

  /** What is stored and being received, without `own`; undefined: the account has no limit. */
  async function measure(accountId: string, own?: Incoming): Promise<{ limitBytes: number; usedBytes: number } | undefined> {
    const limitBytes = await findStorageLimit(deps.db, accountId)
    if (limitBytes === undefined) return undefined
    // Left out of the sum, which is read while some of them end: each counts once, here.
    const before = new Set(incoming)
    const ofAccount = [...before].filter((file) => file.accountId === accountId)
    const idsOf = (files: readonly Incoming[]) => files.map(({ videoId }) => videoId)
    const firstFiles = ofAccount.filter(({ replaces }) => replaces === 0)
    const storedBytes = await sumStoredBytes(deps.slowQueryDb, accountId, idsOf(firstFiles), idsOf(ofAccount))
    const others = [...before.union(incoming)].filter((file) => file !== own && file.accountId === accountId)
    return { limitBytes, usedBytes: others.reduce((sum, { bytes }) => sum + bytes, storedBytes) }
  }

  return {
    async assertNotFull(accountId) {
      const found = await measure(accountId)
      if (found && found.usedBytes >= found.limitBytes) throw overQuota('Nothing more fits', found)
    },
    receive({ accountId, videoId, replaces }) {
      const file = { accountId, videoId, replaces, bytes: 0 }
      incoming.add(file)
      return {
        async reserve(bytes) {
          if (bytes <= file.bytes) return
          const found = await measure(accountId, file)
          // From here on without a pause: of two files that fit only one by one, the second is refused.
          if (found && found.usedBytes + bytes > found.limitBytes) throw overQuota('This file does not fit', found)
          file.bytes = bytes
        },
        [Symbol.dispose]: () => void incoming.delete(file),
      }
    },
  }
}

function overQuota(problem: string, { limitBytes, usedBytes }: { limitBytes: number; usedBytes: number }): Failure {
  const sizes = `of the ${formatSize(limitBytes)} that this account may store, ${formatSize(usedBytes)} are used`
  return new Failure(
    'over-quota',
    `${problem}: ${sizes}. Delete videos, also from the trash, or ask the server’s administrator for more, then try again.`,
  )
}
