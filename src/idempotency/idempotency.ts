import { type MasterKey, unwrap, wrap } from '../crypto/master-key.ts'
import type { Db } from '../db/database.ts'
import type { AlsoInTransaction, Write } from '../db/write.ts'
import { Failure } from '../errors.ts'
import { findStoredResponse, insertStoredResponse, removeStoredResponsesUntil } from './idempotency-store.ts'

/** `nowS` is the playback clock: a step of the wall clock changes no retention. */
export type IdempotencyDeps = { db: Db; write: Write; nowS: () => number; masterKey: MasterKey }

/** A call with its client's idempotency key. The hash covers the whole request. */
type IdempotentCall = { accountId: string; idempotencyKey: string; requestHash: Buffer }

/** Performs the call, and runs the callback in the transaction that does so. */
export type IdempotentEffect<Outcome> = (alsoInTransaction?: AlsoInTransaction<Outcome>) => Promise<Outcome>

const RETENTION_S = 24 * 3600

/**
 * Performs a call once in 24 hours. The response is stored in the transaction of the effect, so a crash leaves both or neither. A client
 * that repeats the call, even while the first is running, gets the same bytes. Errors are not stored.
 * @param serialize a pure function that makes the response body
 * @throws Failure `conflict` when the key was used for a different call; whatever `effect` throws
 */
export async function respondOnce<Outcome>(
  deps: IdempotencyDeps,
  call: IdempotentCall,
  effect: IdempotentEffect<Outcome>,
  serialize: (outcome: Outcome) => string,
): Promise<{ text: string; isReplayed: boolean }> {
  const purpose = storedResponsePurpose(call)
  for (;;) {
    const respondedAtS = deps.nowS()
    const sinceS = respondedAtS - RETENTION_S
    const stored = await findStoredResponse(deps.db, call, sinceS)
    if (stored && !stored.requestHash.equals(call.requestHash)) throw new Failure('conflict', KEY_REUSED)
    if (stored) return { text: unwrap(deps.masterKey, purpose, stored.wrappedResponse).toString(), isReplayed: true }
    try {
      const outcome = await effect(async (tx, outcome) => {
        const wrappedResponse = wrap(deps.masterKey, purpose, Buffer.from(serialize(outcome)))
        if (!(await insertStoredResponse(tx, { ...call, wrappedResponse, respondedAtS }, sinceS))) throw new AlreadyStored()
      })
      return { text: serialize(outcome), isReplayed: false }
    } catch (error) {
      if (!(error instanceof AlreadyStored)) throw error
      await deps.write(async () => undefined) // waits for the end of the other call's transaction
    }
  }
}

export function storedResponsePurpose({
  accountId,
  idempotencyKey,
}: Pick<IdempotentCall, 'accountId' | 'idempotencyKey'>): string {
  return `reelgate stored-response 1 ${accountId} ${idempotencyKey}`
}

/** Rolls back an effect: the same call came twice at the same time, and the other one was first. */
class AlreadyStored extends Error {}

const KEY_REUSED =
  'This Idempotency-Key was used for another request in the last 24 hours. Use a new key for each new request, and the same one only to send a request again.'

/** Small enough that no other write waits long. */
const BATCH_SIZE = 1_000

/** Removes responses that have expired. */
export async function pruneStoredResponses({ write, nowS }: Pick<IdempotencyDeps, 'write' | 'nowS'>): Promise<void> {
  while ((await write((tx) => removeStoredResponsesUntil(tx, nowS() - RETENTION_S, BATCH_SIZE))) > 0);
}
