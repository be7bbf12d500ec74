import type { StreamClaim } from '../sessions/stream-slot-store.ts'

// The stream slots of one viewer, on rows that are locked: the rules of stream-slot-store.ts without a statement for each step.

export type SlotRow = { accountId: string; userId: string; n: number; sessionId: string; takenAtS: number; endsAtS: number }

/** The rows as they are now; those in `changed` differ from what was read. */
export type ViewerSlots = { rows: SlotRow[]; stopsOldest: boolean; changed: Set<number> }

export function newViewerSlots(rows: SlotRow[], stopsOldest: boolean): ViewerSlots {
  return { rows, stopsOldest, changed: new Set() }
}

/** What became of a claim: `stopped` names the session that had the slot, `freeAtS` when the first slot is free if none was. */
type TakenSlot = { stopped?: string; freeAtS?: number }

/** Takes or renews the slot of a session that has not ended. */
export function takeViewerSlot(slots: ViewerSlots, claim: StreamClaim, nowS: number, endsAtS: number): TakenSlot {
  const within = slots.rows.filter(({ n }) => n <= claim.limit)
  const own = within.find(({ sessionId }) => sessionId === claim.sessionId)
  if (own) {
    setSlot(slots, { ...own, endsAtS: Math.max(own.endsAtS, endsAtS) })
    return {}
  }
  for (let n = 1; n <= claim.limit; n++) {
    const row = within.find((slot) => slot.n === n)
    if (row && row.endsAtS > nowS) continue
    giveSlot(slots, claim, n, nowS, endsAtS)
    return {}
  }
  const oldest = within.toSorted((a, b) => a.takenAtS - b.takenAtS || a.n - b.n)[0]
  if (!slots.stopsOldest || !oldest) return { freeAtS: Math.min(...within.map((row) => row.endsAtS)) }
  giveSlot(slots, claim, oldest.n, nowS, endsAtS)
  return { stopped: oldest.sessionId }
}

/** Lets a session's slot end at that time, unless it ends before; undefined: now. */
export function releaseViewerSlot(slots: ViewerSlots, sessionId: string, endsAtS: number | undefined): void {
  for (const row of slots.rows.filter((slot) => slot.sessionId === sessionId)) {
    if (endsAtS === undefined) removeSlot(slots, row.n)
    else if (row.endsAtS > endsAtS) setSlot(slots, { ...row, endsAtS })
  }
}

function giveSlot(slots: ViewerSlots, claim: StreamClaim, n: number, takenAtS: number, endsAtS: number): void {
  const { sessionId, accountId, userId } = claim
  releaseViewerSlot(slots, sessionId, undefined) // above a limit that was lowered
  setSlot(slots, { accountId, userId, n, sessionId, takenAtS, endsAtS })
}

function setSlot(slots: ViewerSlots, row: SlotRow): void {
  removeSlot(slots, row.n)
  slots.rows.push(row)
}

function removeSlot(slots: ViewerSlots, n: number): void {
  slots.rows = slots.rows.filter((row) => row.n !== n)
  slots.changed.add(n)
}
