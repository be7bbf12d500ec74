import { setTimeout as pause } from 'node:timers/promises'
import type { Batches, Db } from '../db/database.ts'
import type { PlaybackSessionRow } from '../db/tables.ts'
import type { Write } from '../db/write.ts'
import { createWriteBehind } from '../db/write-behind.ts'
import { Failure } from '../errors.ts'
import { markViewed } from '../playback/sessions/session-store.ts'
import { DAY_S, isDay, utcDay } from '../time.ts'
import { addViewsTogether, markViewedTogether } from './shared-views.ts'
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
  /** Undefined: no other server can use the database. */
  batches?: Batches | undefined
  servers?: { isShared(): boolean }
  /** Days are the owner's. */
  wallNowS: () => number
}

/** Counted but not written yet. Days are numbers here, which are cheap to compute. */
type Part = {
  dayNumber: number
  videoId: string
  userId: string
  sentBytes: number
  /** Each counts once, however often it is written. */
  sessionIds: string[]
}

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
/** A request locks its session for a few milliseconds, and one that is suspended for a second at most; then the next save counts its view. */
const MAX_ATTEMPTS = 50
const RETRY_MS = 50

/** Counts views and bytes in memory; `save` writes them to the database. A crash loses what was counted since. */
export function openUsage({ db, write, batches, servers, wallNowS }: UsageDeps): Usage {
  const viewers = createViewersByAddress()
  const isShared = () => servers?.isShared() === true
  const delivered = new Map<string, Delivered>()
  const parts = createWriteBehind<Part, Part>(
    { write, nowS: wallNowS },
    {
      forgetAfterS: 0,
      toChange: (part) =>
        part.sentBytes > 0 || part.sessionIds.length > 0
          ? { ...part, sessionIds: isShared() ? [] : [...part.sessionIds] }
          : undefined,
      async write(tx, part) {
        await addPart(tx, part, wallNowS())
      },
      onWritten(part, written) {
        part.sentBytes -= written.sentBytes
        removeSessions(part, new Set(written.sessionIds))
      },
      // An owner must not be charged twice. A view of a session that is marked with it counts once.
      onUnknown(part, written) {
        part.sentBytes -= written.sentBytes
      },
    },
  )

  const partOf = (dayNumber: number, videoId: string, userId: string): Part =>
    parts.getOrMake(`${dayNumber} ${videoId} ${userId}`, () => ({
      dayNumber,
      videoId,
      userId,
      sentBytes: 0,
      sessionIds: [],
    }))

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

  /**
   * Counts views of sessions whose requests are turns: in short transactions like theirs. In that of the bytes, sessions of viewers who
   * play would conflict with it each time, and wait for it.
   */
  async function countTogether({ transaction }: Batches): Promise<void> {
    const partOfSession = new Map([...parts.values()].flatMap((part) => part.sessionIds.map((id) => [id, part])))
    const sessions = [...partOfSession]
    for (let first = 0; first < sessions.length; first += BATCH_SIZE) {
      let left = new Map(sessions.slice(first, first + BATCH_SIZE))
      for (let attempt = 1; left.size > 0 && attempt <= MAX_ATTEMPTS; attempt++) {
        if (attempt > 1) await pause(RETRY_MS)
        const locked = await transaction(async (tx) => ({ result: await addTogether(tx, left, wallNowS()), isDurable: true }))
        const counted = new Set(left.keys()).difference(locked)
        for (const part of new Set(left.values())) removeSessions(part, counted)
        left = new Map([...left].filter(([id]) => locked.has(id)))
      }
    }
  }

  async function save(): Promise<void> {
    for (const bytes of delivered.values()) attribute(bytes)
    delivered.clear()
    viewers.forgetInactive()
    if (batches && isShared()) await countTogether(batches)
    await parts.save()
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

function removeSessions(part: Part, ids: ReadonlySet<string>): void {
  part.sessionIds = part.sessionIds.filter((id) => !ids.has(id))
}

/** A session is marked as viewed, so that its view counts once even when it is recorded or written twice. */
async function addPart(tx: Db, part: Part, viewedAtS: number): Promise<void> {
  const { dayNumber, videoId, userId, sentBytes, sessionIds } = part
  let viewCount = 0
  for (const id of sessionIds) viewCount += Number((await markViewed(tx, { id, viewedAtS })).numAffectedRows)
  await addVideoUsage(tx, { day: utcDay(dayNumber * DAY_S), videoId, userId, sentBytes, viewCount })
  if (viewCount > 0) await addViews(tx, { videoId, viewCount })
}

/**
 * Marks and counts views of sessions that other servers change, too. The counters are locked first, by adding nothing: they may have to be
 * waited for, and no request of a session waits meanwhile.
 * @returns the sessions that a request had locked: their views are not counted yet
 */
async function addTogether(tx: Db, partOf: ReadonlyMap<string, Part>, viewedAtS: number): Promise<Set<string>> {
  function viewsOf(ids: Iterable<string>, each: number) {
    const counts = new Map<Part, number>()
    for (const id of ids) {
      const part = partOf.get(id)
      if (part) counts.set(part, (counts.get(part) ?? 0) + each)
    }
    return [...counts].map(([{ dayNumber, ...part }, viewCount]) => ({ ...part, day: utcDay(dayNumber * DAY_S), viewCount }))
  }

  await addViewsTogether(tx, viewsOf(partOf.keys(), 0))
  const { marked, locked } = await markViewedTogether(tx, [...partOf.keys()], viewedAtS)
  if (marked.length > 0) await addViewsTogether(tx, viewsOf(marked, 1))
  return new Set(locked)
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
