import type { Write } from '../../db/write.ts'
import { addSessionRefusals, type SessionRefusal } from '../suspicion/refusal-store.ts'
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
  let pending = new Map<string, SessionRefusal>()

  return {
    count({ row, address }, code) {
      const key = `${row.id} ${code}`
      const known = pending.get(key)
      if (known) known.count++
      else if (pending.size < MAX_PENDING)
        pending.set(key, { otpHash: row.otpHash, outcome: code, address, atS: nowS(), count: 1 })
    },

    async save() {
      if (pending.size === 0) return
      const batch = pending
      pending = new Map()
      try {
        await write((tx) => addSessionRefusals(tx, [...batch.values()]))
      } catch (error) {
        // What was counted meanwhile is a few seconds' worth.
        pending = batch
        throw error
      }
    },
  }
}
