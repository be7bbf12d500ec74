import type { Write } from '../../db/write.ts'
import { createWriteBehind } from '../../db/write-behind.ts'
import { addSessionRefusal, type SessionRefusal } from '../suspicion/refusal-store.ts'
import type { LiveSession } from './live-session.ts'

// What sessions are refused while they play, for their owner. A player that waits asks every few seconds, so refusals are counted in
// memory and saved with the sessions: one row for each OTP and reason. A crash loses the counts since then.

export type SessionRefusals = {
  count(session: LiveSession, code: SessionRefusal['outcome']): void
  save(): Promise<void>
}

/** Those of more sessions between two saves are not recorded. */
const MAX_PENDING = 10_000

export function createSessionRefusals({ write, nowS }: { write: Write; nowS(): number }): SessionRefusals {
  const refusals = createWriteBehind<SessionRefusal, SessionRefusal>(
    { write, nowS },
    {
      forgetAfterS: 0,
      toChange: (refusal) => (refusal.count > 0 ? { ...refusal } : undefined),
      async write(tx, refusal) {
        await addSessionRefusal(tx, refusal)
      },
      onWritten(refusal, written) {
        refusal.count -= written.count
      },
    },
  )
  return {
    count({ row: { id, otpHash }, address }, outcome) {
      const name = `${id} ${outcome}`
      if (refusals.size >= MAX_PENDING && !refusals.has(name)) return
      refusals.getOrMake(name, () => ({ otpHash, outcome, address, atS: nowS(), count: 0 })).count++
    },
    save: refusals.save,
  }
}
