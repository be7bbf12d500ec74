import { type MasterKey, unwrap, wrap } from '../crypto/master-key.ts'
import type { Db } from '../db/database.ts'
import type { AlsoInTransaction, Write } from '../db/write.ts'
import { Failure } from '../errors.ts'
import { findStoredResponse, insertStoredResponse, removeStoredResponsesBefore } from './idempotency-store.ts'

/** `nowS` is the playback clock: no step of the wall clock forgets an answer, or keeps it longer. */
export type IdempotencyDeps = { db: Db; write: Write; nowS: () => number; masterKey: MasterKey }

/** A call under the key that its sender gave it. The hash is of everything that it asks for. */
export type IdempotentCall = { accountId: string; idempotencyKey: string; requestHash: Buffer }

/** Has an effect, and writes what it is given in the transaction of that effect. */
export type Effect<Outcome> = (alongside?: AlsoInTransaction<Outcome>) => Promise<Outcome>

const KEPT_S = 24 * 3600

/**
 * Does what a call asks for once in 24 hours. The answer is kept by the transaction that has the effect, so a crash leaves both or
 * neither; whoever sends the call again, even while the first is under way, gets the same bytes. What is refused is not kept.
 * @param answerOf a pure function
 * @throws Failure `conflict` when the key was given to another call; whatever `effect` throws
 */
export async function respondOnce<Outcome>(
  deps: IdempotencyDeps,
  call: IdempotentCall,
  effect: Effect<Outcome>,
  answerOf: (outcome: Outcome) => string,
): Promise<{ answer: string; isReplayed: boolean }> {
  const purpose = `reelgate kept-answer 1 ${call.accountId} ${call.idempotencyKey}`
  for (;;) {
    const respondedAtS = deps.nowS()
    const sinceS = respondedAtS - KEPT_S
    const kept = await findStoredResponse(deps.db, call, sinceS)
    if (kept && !kept.requestHash.equals(call.requestHash)) throw new Failure('conflict', ANOTHER_CALL)
    if (kept) return { answer: unwrap(deps.masterKey, purpose, kept.wrappedResponse).toString(), isReplayed: true }
    try {
      const outcome = await effect(async (tx, outcome) => {
        const wrappedResponse = wrap(deps.masterKey, purpose, Buffer.from(answerOf(outcome)))
        if (!(await insertStoredResponse(tx, { ...call, wrappedResponse, respondedAtS }, sinceS))) throw new AnsweredMeanwhile()
      })
      return { answer: answerOf(outcome), isReplayed: false }
    } catch (error) {
      if (!(error instanceof AnsweredMeanwhile)) throw error
      await deps.write(async () => undefined) // the other's transaction has ended when this one begins
    }
  }
}

/** Undoes an effect: the same call came twice at once, and the other one was first. */
class AnsweredMeanwhile extends Error {}

const ANOTHER_CALL =
  'This Idempotency-Key was given to another request in the last 24 hours. Use a new key for each new request, and the same one only to send a request again.'

/** So few at once that nobody waits for it. */
const REMOVED_AT_ONCE = 1_000

/** Forgets what nobody may ask for again. */
export async function pruneStoredResponses({ write, nowS }: Pick<IdempotencyDeps, 'write' | 'nowS'>): Promise<void> {
  while ((await write((tx) => removeStoredResponsesBefore(tx, nowS() - KEPT_S, REMOVED_AT_ONCE))) > 0);
}
