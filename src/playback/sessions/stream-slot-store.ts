import type { Db } from '../../db/database.ts'
import { prepared } from '../../db/prepared.ts'

/** A session that needs a slot among those of its viewer. `limit`: the number of slots. */
export type StreamClaim = { sessionId: string; accountId: string; userId: string; limit: number }

const renew = prepared<{ sessionId: string; limit: number; endsAtS: number }>()((db, value) =>
  db
    .updateTable('streamSlot')
    .set({ endsAtS: value('endsAtS') })
    .where('sessionId', '=', value('sessionId'))
    .where('n', '<=', value('limit')),
)

const takeNth = prepared<{ accountId: string; userId: string; n: number; sessionId: string; nowS: number; endsAtS: number }>()(
  (db, value) =>
    db
      .insertInto('streamSlot')
      .columns(['accountId', 'userId', 'n', 'sessionId', 'takenAtS', 'endsAtS'])
      .expression(
        db
          .selectFrom('playbackSession')
          .select([
            value('accountId').as('accountId'),
            value('userId').as('userId'),
            value('n').as('n'),
            'id',
            value('nowS').as('takenAtS'),
            value('endsAtS').as('endsAtS'),
          ])
          .where('id', '=', value('sessionId'))
          .where('endedAtS', 'is', null),
      )
      .onConflict((conflict) =>
        conflict
          .columns(['accountId', 'userId', 'n'])
          .doUpdateSet({ sessionId: value('sessionId'), takenAtS: value('nowS'), endsAtS: value('endsAtS') })
          .where('streamSlot.endsAtS', '<=', value('nowS')),
      ),
)

/**
 * Renews the session's slot, or takes the first free one. A lapsed slot still names its session, which renews it unless another has
 * taken it. False: all are taken, or the session has ended meanwhile. Nothing is counted, so nothing can be miscounted.
 * @see playback-protocol.md, section 7
 */
export async function takeSlot(tx: Db, { sessionId, accountId, userId, limit }: StreamClaim, nowS: number, endsAtS: number) {
  const renewed = await renew(tx, { sessionId, limit, endsAtS })
  if (hasChanged(renewed)) return true
  for (let n = 1; n <= limit; n++) {
    if (hasChanged(await takeNth(tx, { accountId, userId, n, sessionId, nowS, endsAtS }))) return true
  }
  return false
}

/** When the first of the viewer's slots ends if nothing renews it; undefined when none is taken. */
export async function findFirstSlotEnd(tx: Db, { accountId, userId, limit }: StreamClaim): Promise<number | undefined> {
  const row = await tx
    .selectFrom('streamSlot')
    .select(({ fn }) => fn.min('endsAtS').as('endsAtS'))
    .where('accountId', '=', accountId)
    .where('userId', '=', userId)
    .where('n', '<=', limit)
    .executeTakeFirst()
  return row?.endsAtS ?? undefined
}

function hasChanged({ numAffectedRows }: { numAffectedRows?: bigint }): boolean {
  return (numAffectedRows ?? 0n) > 0n
}

/**
 * Takes the oldest slot from its session, for accounts that stop the oldest stream instead of refusing the newest. Runs in one transaction
 * with `takeSlot`, so the slot is still the one that was read.
 * @returns the session that had it; undefined when the account refuses the newest, or the requesting session has ended meanwhile
 */
export async function takeOldestSlot(tx: Db, claim: StreamClaim, nowS: number, endsAtS: number): Promise<string | undefined> {
  const { sessionId, accountId, userId, limit } = claim
  const oldest = await tx
    .selectFrom('streamSlot')
    .innerJoin('account', 'account.id', 'streamSlot.accountId')
    .innerJoin('playbackSession as requesting', (on) => on.on('requesting.id', '=', sessionId))
    .select(['streamSlot.n', 'streamSlot.sessionId'])
    .where('streamSlot.accountId', '=', accountId)
    .where('streamSlot.userId', '=', userId)
    .where('streamSlot.n', '<=', limit)
    .where('account.streamLimitPolicy', '=', 'stop-oldest')
    .where('requesting.endedAtS', 'is', null)
    .orderBy('streamSlot.takenAtS')
    .orderBy('streamSlot.n')
    .executeTakeFirst()
  if (!oldest) return undefined
  await tx
    .updateTable('streamSlot')
    .set({ sessionId, takenAtS: nowS, endsAtS })
    .where('sessionId', '=', oldest.sessionId)
    .execute()
  return oldest.sessionId
}

export async function freeSlot(tx: Db, sessionId: string): Promise<void> {
  await tx.deleteFrom('streamSlot').where('sessionId', '=', sessionId).execute()
}

/** Lets the session's slot end at that time, unless it ends before. */
export async function endSlotAt(tx: Db, sessionId: string, endsAtS: number): Promise<void> {
  await tx.updateTable('streamSlot').set({ endsAtS }).where('sessionId', '=', sessionId).where('endsAtS', '>', endsAtS).execute()
}

export async function freeSlots(tx: Db, sessionIds: readonly string[]): Promise<void> {
  await tx.deleteFrom('streamSlot').where('sessionId', 'in', sessionIds).execute()
}

/** Frees the slots of the sessions on videos, or on one of their generations, that have not ended yet. */
export async function freeSlotsOfVideos(tx: Db, videoIds: readonly string[], generation?: number): Promise<void> {
  await tx
    .deleteFrom('streamSlot')
    .where('sessionId', 'in', (of) =>
      of
        .selectFrom('playbackSession')
        .select('id')
        .where('videoId', 'in', videoIds)
        .where('endedAtS', 'is', null)
        .$if(generation !== undefined, (sessions) => sessions.where('generation', '=', generation ?? 0)),
    )
    .execute()
}

/** Extends the slots that were live at `liveAtS`. */
export async function extendSlots(tx: Db, liveAtS: number, endsAtS: number): Promise<void> {
  await tx.updateTable('streamSlot').set({ endsAtS }).where('endsAtS', '>', liveAtS).execute()
}

export async function removeOldSlots(tx: Db, beforeS: number): Promise<void> {
  await tx.deleteFrom('streamSlot').where('endsAtS', '<', beforeS).execute()
}
