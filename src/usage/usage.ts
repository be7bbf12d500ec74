import type { Db } from '../db/database.ts'
import type { PlaybackSessionRow } from '../db/tables.ts'
import { isCommitOutcomeUnknown, type Write } from '../db/write.ts'
import { Failure } from '../errors.ts'
import { markViewed } from '../playback/session-store.ts'
import { addVideoUsage, addViews, listSentBytes, listViewTotals, removeUsageBefore } from './usage-store.ts'
import { createViewersByAddress } from './viewers-by-address.ts'

export type UsageDeps = {
  write: Write
  /** Days are the owner's. */
  wallNowS: () => number
}

/** What is counted and not yet written; days are numbers here, which cost nothing. */
type Part = { dayNumber: number; videoId: string; userId: string; sentBytes: number; sessionIds: string[] }

/** What went to an address, of which `save` says whose it is: one number here, however many watch from there. */
type Delivered = { dayNumber: number; videoId: string; address: string; sentBytes: number }

export type Usage = ReturnType<typeof openUsage>

const DAY_S = 24 * 3600
const SAVED_AT_ONCE = 250

/** Counts views and bytes in memory; `save` writes them to the database. A crash loses what was counted since. */
export function openUsage({ write, wallNowS }: UsageDeps) {
  const watchers = createViewersByAddress()
  const delivered = new Map<string, Delivered>()
  const unsaved = new Map<string, Part>()
  let saving: Promise<void> = Promise.resolve()

  function pendingPart(dayNumber: number, videoId: string, userId: string): Part {
    const name = `${dayNumber} ${videoId} ${userId}`
    const part = unsaved.get(name) ?? { dayNumber, videoId, userId, sentBytes: 0, sessionIds: [] }
    unsaved.set(name, part)
    return part
  }

  const today = () => Math.floor(wallNowS() / DAY_S)

  /** To the label that watches the video from the address; to several, in equal parts. */
  function attribute({ dayNumber, videoId, address, sentBytes }: Delivered): void {
    const labels = watchers.viewerLabels(videoId, address)
    const share = Math.floor(sentBytes / labels.length)
    let left = sentBytes - share * labels.length
    for (const label of labels) {
      pendingPart(dayNumber, videoId, label).sentBytes += share + left
      left = 0
    }
  }

  async function saveAll(): Promise<void> {
    for (const bytes of delivered.values()) attribute(bytes)
    delivered.clear()
    watchers.forgetInactive()
    const parts = [...unsaved.values()]
    unsaved.clear()
    while (parts.length > 0) {
      const batch = parts.slice(0, SAVED_AT_ONCE)
      try {
        await write((tx) => addParts(tx, batch, wallNowS()))
      } catch (error) {
        const unwritten = isCommitOutcomeUnknown(error) ? [...keepViews(batch), ...parts.slice(batch.length)] : parts
        for (const part of unwritten) keep(part)
        throw error
      }
      parts.splice(0, batch.length)
    }
  }

  function keep({ dayNumber, videoId, userId, sentBytes, sessionIds }: Part): void {
    const part = pendingPart(dayNumber, videoId, userId)
    part.sentBytes += sentBytes
    part.sessionIds.push(...sessionIds)
  }

  return {
    /** A session made a signed request from an address. */
    recordWatching({ videoId, userId }: Pick<PlaybackSessionRow, 'videoId' | 'userId'>, address: string): void {
      watchers.note(videoId, address, userId ?? '')
    },

    /** So many bytes of a video went to an address. */
    recordSentBytes(videoId: string, address: string, sentBytes: number): void {
      const dayNumber = today()
      const name = `${dayNumber} ${videoId} ${address}`
      const known = delivered.get(name)
      if (known) known.sentBytes += sentBytes
      else delivered.set(name, { dayNumber, videoId, address, sentBytes })
    },

    /** Counts bytes of one of a video's files, sent for its short-lived address. */
    recordDownloadedBytes(videoId: string, sentBytes: number): void {
      pendingPart(today(), videoId, '').sentBytes += sentBytes
    },

    /** A session was given its first key: its viewer could see the picture. */
    recordView({ id, videoId, userId }: PlaybackSessionRow): void {
      pendingPart(today(), videoId, userId ?? '').sessionIds.push(id)
    },

    /**
     * Writes down all that was counted before the call, also what an earlier call still has in hand: a removal that went on would leave
     * it no video to be added to. What cannot be written now is kept for the next time; bytes that may have been written are not, for
     * an owner pays for none twice.
     */
    save(): Promise<void> {
      saving = saving.catch(() => undefined).then(saveAll)
      return saving
    },
  }
}

/** What counts once, however often it is written. */
function keepViews(parts: readonly Part[]): Part[] {
  return parts.filter(({ sessionIds }) => sessionIds.length > 0).map((part) => ({ ...part, sentBytes: 0 }))
}

/** A session's mark makes its view count once, whatever is written or noted twice. */
async function addParts(tx: Db, parts: readonly Part[], viewedAtS: number): Promise<void> {
  for (const { dayNumber, videoId, userId, sentBytes, sessionIds } of parts) {
    let viewCount = 0
    for (const id of sessionIds) viewCount += Number((await markViewed(tx, { id, viewedAtS })).numAffectedRows)
    await addVideoUsage(tx, { day: utcDay(dayNumber * DAY_S), videoId, userId, sentBytes, viewCount })
    if (viewCount > 0) await addViews(tx, { videoId, viewCount })
  }
}

/** How often a video was viewed, of each of these. */
export async function countViews({ db }: { db: Db }, videoIds: readonly string[]): Promise<(videoId: string) => number> {
  const totals = new Map((await listViewTotals(db, videoIds)).map(({ videoId, viewCount }) => [videoId, viewCount]))
  return (videoId) => totals.get(videoId) ?? 0
}

/**
 * What was sent of each of the account's videos on a day of UTC; those of which nothing was are missing.
 * @param day `YYYY-MM-DD`
 * @throws Failure `invalid` for what is no day
 */
export async function getBandwidth({ slowDb }: { slowDb: Db }, accountId: string, day: string) {
  if (!isDay(day)) throw new Failure('invalid', 'date is a day of the calendar, as in 2026-02-28.')
  return listSentBytes(slowDb, accountId, day)
}

const KEPT_DAYS = 400
const REMOVED_AT_ONCE = 2_000

/** Removes what is older than thirteen months, by the playback clock: a step of the wall clock makes no day old. */
export async function pruneUsage({ write, nowS }: { write: Write; nowS: () => number }): Promise<void> {
  const firstKept = utcDay(nowS() - KEPT_DAYS * DAY_S)
  while ((await write((tx) => removeUsageBefore(tx, firstKept, REMOVED_AT_ONCE))) > 0);
}

function utcDay(atS: number): string {
  return new Date(atS * 1000).toISOString().slice(0, 10)
}

function isDay(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return false
  const day = new Date(`${text}T00:00:00Z`)
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text)
}
