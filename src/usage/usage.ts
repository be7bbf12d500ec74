import type { Db } from '../db/database.ts'
import type { PlaybackSessionRow } from '../db/tables.ts'
import type { Write } from '../db/write.ts'
import { createWriteBehind } from '../db/write-behind.ts'
import { Failure } from '../errors.ts'
import { markViewed } from '../playback/sessions/session-store.ts'
import { DAY_S, isDay, utcDay } from '../time.ts'
import {
  addVideoUsage,
  addViews,
  listNamedUsageBefore,
  listSentBytes,
  listUsageOfViewer,
  listViewTotals,
  removeUsageBefore,
  type UsageKey,
  unnameUsage,
} from './usage-store.ts'
import { createViewersByAddress } from './viewers-by-address.ts'

type UsageDeps = {
  db: Db
  write: Write
  /** Days are the owner's. */
  wallNowS: () => number
}

/** Counted but not written yet. Days are numbers here, which are cheap to compute. */
type Part = { dayNumber: number; videoId: string; userId: string; sentBytes: number; sessionIds: string[] }

/** Bytes sent to an address; `save` divides them among the viewers there. */
type Delivered = { dayNumber: number; videoId: string; address: string; sentBytes: number }

/** The counters of views and bytes. */
export type Usage = {
  /** A session made a signed request from an address. */
  recordAddress(session: Pick<PlaybackSessionRow, 'videoId' | 'userId'>, address: string): void
  /** So many bytes of a video were sent to an address. */
  recordSentBytes(videoId: string, address: string, sentBytes: number): void
  /** Counts bytes of one of a video's files, sent for its short-lived address. */
  recordDownloadedBytes(videoId: string, sentBytes: number): void
  /** A session was given its first key: its viewer could see the video. */
  recordView(session: PlaybackSessionRow): void
  /**
   * Writes all that was counted before the call, including what an earlier call has not written yet: a deletion that went ahead would
   * leave no video to add it to. What cannot be written now is kept for the next time; bytes that may have been written are not, since
   * an owner must not be charged twice.
   */
  save(): Promise<void>
  /** Removes a viewer from the counters, whose sums stay what they are. */
  eraseViewer(viewer: Pick<UsageKey, 'accountId' | 'userId'>): Promise<void>
}

/** Rows in one transaction, so few that other writes are not delayed. */
const BATCH_SIZE = 250

/** Counts views and bytes in memory; `save` writes them to the database. A crash loses what was counted since. */
export function openUsage({ db, write, wallNowS }: UsageDeps): Usage {
  const viewers = createViewersByAddress()
  const delivered = new Map<string, Delivered>()
  const parts = createWriteBehind<Part, Part>(
    { write, nowS: wallNowS },
    {
      forgetAfterS: 0,
      toChange: (part) =>
        part.sentBytes > 0 || part.sessionIds.length > 0 ? { ...part, sessionIds: [...part.sessionIds] } : undefined,
      async write(tx, part) {
        await addPart(tx, part, wallNowS())
      },
      onWritten(part, written) {
        part.sentBytes -= written.sentBytes
        part.sessionIds.splice(0, written.sessionIds.length)
      },
      // An owner must not be charged twice. A view that is written twice counts once.
      onUnknown(part, written) {
        part.sentBytes -= written.sentBytes
      },
    },
  )

  const partOf = (dayNumber: number, videoId: string, userId: string): Part =>
    parts.getOrMake(`${dayNumber} ${videoId} ${userId}`, () => ({ dayNumber, videoId, userId, sentBytes: 0, sessionIds: [] }))

  const today = () => Math.floor(wallNowS() / DAY_S)

  /** Adds the bytes to the label that watches the video from this address; to several labels in equal parts. */
  function attribute({ dayNumber, videoId, address, sentBytes }: Delivered): void {
    const labels = viewers.viewerLabels(videoId, address)
    const share = Math.floor(sentBytes / labels.length)
    let left = sentBytes - share * labels.length
    for (const label of labels) {
      partOf(dayNumber, videoId, label).sentBytes += share + left
      left = 0
    }
  }

  function save(): Promise<void> {
    for (const bytes of delivered.values()) attribute(bytes)
    delivered.clear()
    viewers.forgetInactive()
    return parts.save()
  }

  return {
    recordAddress({ videoId, userId }, address) {
      viewers.note(videoId, address, userId ?? '')
    },

    recordSentBytes(videoId, address, sentBytes) {
      const dayNumber = today()
      const name = `${dayNumber} ${videoId} ${address}`
      const known = delivered.get(name)
      if (known) known.sentBytes += sentBytes
      else delivered.set(name, { dayNumber, videoId, address, sentBytes })
    },

    recordDownloadedBytes(videoId, sentBytes) {
      partOf(today(), videoId, '').sentBytes += sentBytes
    },

    recordView({ id, videoId, userId }) {
      partOf(today(), videoId, userId ?? '').sessionIds.push(id)
    },

    save,

    async eraseViewer(viewer) {
      await save() // or it would be written afterwards
      await unname(write, await listUsageOfViewer(db, viewer))
    },
  }
}

/** A session is marked as viewed, so that its view counts once even when it is recorded or written twice. */
async function addPart(tx: Db, { dayNumber, videoId, userId, sentBytes, sessionIds }: Part, viewedAtS: number): Promise<void> {
  let viewCount = 0
  for (const id of sessionIds) viewCount += Number((await markViewed(tx, { id, viewedAtS })).numAffectedRows)
  await addVideoUsage(tx, { day: utcDay(dayNumber * DAY_S), videoId, userId, sentBytes, viewCount })
  if (viewCount > 0) await addViews(tx, { videoId, viewCount })
}

/** How often each of the account's videos was viewed; for ids of others 0. */
export async function countViews(
  { db }: { db: Db },
  accountId: string,
  videoIds: readonly string[],
): Promise<(videoId: string) => number> {
  const totals = new Map((await listViewTotals(db, accountId, videoIds)).map(({ videoId, viewCount }) => [videoId, viewCount]))
  return (videoId) => totals.get(videoId) ?? 0
}

/**
 * The bytes sent of each of the account's videos on a day in UTC; videos without any are left out.
 * @param day `YYYY-MM-DD`
 * @throws Failure `invalid` for what is no day
 */
export async function getBandwidth({ slowQueryDb }: { slowQueryDb: Db }, accountId: string, day: string) {
  if (!isDay(day)) throw new Failure('invalid', 'date is a day of the calendar, as in 2026-02-28.')
  return listSentBytes(slowQueryDb, accountId, day)
}

/** Views and bytes of each day are kept for so long. */
export const KEPT_DAYS = 400
const MAX_REMOVED_ROWS = 2_000

/**
 * Removes counters older than thirteen months, and the viewers' ids in them after `viewerDataDays`. Ages are measured by the playback
 * clock, so that a step of the wall clock removes nothing.
 */
export async function pruneUsage({ db, write, nowS }: { db: Db; write: Write; nowS: () => number }, viewerDataDays: number) {
  const firstKept = utcDay(nowS() - KEPT_DAYS * DAY_S)
  while ((await write((tx) => removeUsageBefore(tx, firstKept, MAX_REMOVED_ROWS))) > 0);
  const firstNamed = utcDay(nowS() - viewerDataDays * DAY_S)
  for (let rows: UsageKey[]; ; await unname(write, rows)) {
    rows = await listNamedUsageBefore(db, firstNamed, BATCH_SIZE)
    if (rows.length === 0) return
  }
}

async function unname(write: Write, rows: readonly UsageKey[]): Promise<void> {
  for (let first = 0; first < rows.length; first += BATCH_SIZE)
    await write(async (tx) => {
      for (const row of rows.slice(first, first + BATCH_SIZE)) await unnameUsage(tx, row)
    })
}
