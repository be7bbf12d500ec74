import type { Db } from '../../src/db/database.ts'
import { CommitOutcomeUnknown, type Write } from '../../src/db/write.ts'

/** The same, except that the call of that number fails; `unknown`: without its caller learning whether it was committed. */
export function failingOnce(write: Write, number: number, unknown?: { isKept: boolean }): Write {
  let calls = 0
  const failing = async <T>(change: (tx: Db) => Promise<T>) => {
    if (++calls !== number) return write(change)
    if (unknown?.isKept) await write(change)
    throw unknown ? new CommitOutcomeUnknown('the outcome is not known') : new Error('the disk is full')
  }
  return Object.assign(failing, {
    append: failing,
    makingRoom: failing,
    outsideTransaction: write.outsideTransaction,
    onCommit: write.onCommit,
  })
}
