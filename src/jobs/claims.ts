import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { newId } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import type { WorkKind } from '../db/tables.ts'
import { isCommitOutcomeUnknown, type Write } from '../db/write.ts'
import { isHostFailure, logLevelFor } from '../errors.ts'
import type { SignalData, Signals, Work } from '../signals/signals.ts'
import {
  type ClaimKey,
  hasClaim,
  insertBackOff,
  insertClaim,
  listSuspects,
  removeBackOffs,
  removeClaim,
  removeClaimsOfOthers,
  renewClaims,
} from './claim-store.ts'
import type { Job } from './dispatcher.ts'

/** The right to work on something, which ends by itself unless it is renewed. */
export type Claim = {
  /** Whether no other has taken it over: asked in the transaction that writes. */
  isHeld(tx: Db): Promise<boolean>
  /**
   * Makes the last change of the work and ends the claim, in one transaction; while nothing can be written, once a second.
   * @param retryAfterS how long nothing claims the same work again
   * @returns undefined when another has taken the work over: nothing was changed
   */
  settle<T>(change: (tx: Db) => Promise<T>, retryAfterS?: number): Promise<T | undefined>
}

/** How a scheduler finds, claims and does its work. */
type ClaimableWork<Candidate, Started> = {
  kind: WorkKind
  /** The next free work; undefined: there is none. */
  find(): Promise<Candidate | undefined>
  /** Of work on a video: its id, alone or before a slash. */
  subjectOf(candidate: Candidate): string
  /** Counts the attempt, in the transaction that claims it. Undefined: the candidate is not as it was found. */
  begin(tx: Db, candidate: Candidate): Promise<Started | undefined>
  /**
   * Called once it is claimed. @returns what does the work: when that ends without `settle`, the work is free again, after a failure not
   * before a few seconds have passed
   */
  start(started: Started): (claim: Claim, signal: AbortSignal) => Promise<void>
}

export type Claims = {
  /** From how many candidates `find` draws one: several servers that all want the first would conflict, and one follows the order. */
  candidates: number
  /** Claims the next work, so that no other process gets it. */
  claimNext<Candidate, Started>(work: ClaimableWork<Candidate, Started>): Promise<Job | undefined>
  /** Renews what is worked on, and frees what others lost. Runs by itself every few seconds. */
  maintain(): Promise<void>
  stop(): Promise<void>
}

export type ClaimsDeps = {
  db: Db
  write: Write
  /** A clock that all servers of the database share. */
  nowS: () => number
  /** Names this server, and no other, also after a restart. */
  server: string
  /** No other server uses the database: every claim that this process does not work on is left from one that has ended. */
  isOnlyServer: boolean
  signals: Pick<Signals, 'on'>
  /** For kinds whose rows say that they are worked on: makes them pending again, unless the work is done. */
  release: Partial<Record<WorkKind, (tx: Db, subject: string) => Promise<void>>>
  log: Logger
}

/** What the dispatchers of videos claim. */
const KINDS_OF: Partial<Record<Work, WorkKind[]>> = {
  encode: ['video', 'chunk'],
  import: ['import'],
  mp4: ['mp4'],
  captions: ['captions'],
  transcription: ['transcription'],
  storyboard: ['storyboard'],
  dub: ['dub'],
}
const CANDIDATES_OF_SEVERAL_SERVERS = 16
const LEASE_S = 15
const RENEW_EVERY_MS = 5_000
/** Work that threw is not claimed again before. */
const RETRY_AFTER_S = 5
const SETTLE_EVERY_MS = 1_000
const FORGET_FAILURES_AFTER_S = 24 * 3600

/** Opens the claims of this process, and first takes back those that its former runs left. */
export async function openClaims(deps: ClaimsDeps): Promise<Claims> {
  const { db, write, nowS, server, isOnlyServer, log } = deps
  const held = new Map<string, { lost: AbortController; isSettling: boolean }>()
  // A restart tries everything again, as an operator expects who has mended the cause.
  await write((tx) => removeBackOffs(tx, isOnlyServer ? undefined : nowS() - FORGET_FAILURES_AFTER_S))
  await takeBack()
  let maintaining: Promise<void> | undefined
  const timer = setInterval(() => {
    maintaining ??= maintain().finally(() => {
      maintaining = undefined
    })
  }, RENEW_EVERY_MS).unref()

  if (!isOnlyServer) deps.signals.on('work-cancelled', cancelElsewhere)

  /** Their next renewal stops the work of other servers. What it writes until then, its fence refuses. */
  async function cancelElsewhere({ videoIds, work }: SignalData['work-cancelled'], origin: 'here' | 'elsewhere'): Promise<void> {
    if (origin === 'elsewhere') return
    const kinds = (work ? KINDS_OF[work] : Object.values(KINDS_OF).flat()) ?? []
    await write((tx) => removeClaimsOfOthers(tx, { server, kinds, videoIds }))
  }

  async function maintain(): Promise<void> {
    try {
      await renew()
      await takeBack()
    } catch (error) {
      log[logLevelFor(error, isHostFailure(error) ? 'warn' : 'error')]({ err: error }, 'jobs: claims not renewed, retrying')
    }
  }

  async function renew(): Promise<void> {
    const ids = [...held.keys()]
    if (ids.length === 0) return
    const renewed = await write((tx) => renewClaims(tx, ids, nowS() + LEASE_S))
    for (const id of ids) {
      const entry = held.get(id)
      if (entry && !entry.isSettling && !renewed.has(id)) entry.lost.abort(takenOver())
    }
  }

  /** Frees what processes left that have ended, whatever became of them. */
  async function takeBack(): Promise<void> {
    const suspects = await listSuspects(db, deps, nowS())
    const dead = suspects.filter(({ id }) => !held.has(id))
    if (dead.length === 0) return
    await write(async (tx) => {
      for (const claim of dead) await release(tx, claim)
    })
  }

  async function release(tx: Db, claim: ClaimKey): Promise<boolean> {
    if (!(await removeClaim(tx, claim))) return false
    await deps.release[claim.kind]?.(tx, claim.subject)
    return true
  }

  async function claimNext<Candidate, Started>(work: ClaimableWork<Candidate, Started>): Promise<Job | undefined> {
    for (const tried = new Set<string>(); ; ) {
      const candidate = await work.find()
      if (candidate === undefined) return undefined
      const key = { kind: work.kind, subject: work.subjectOf(candidate), id: newId() }
      if (tried.has(key.subject)) return undefined // found again although it could not be claimed: not before the next poll
      tried.add(key.subject)
      held.set(key.id, { lost: new AbortController(), isSettling: false }) // before the row exists, or it would be taken back
      const started = await write((tx) => begin(tx, key, () => work.begin(tx, candidate))).catch((error) => {
        held.delete(key.id)
        throw error
      })
      if (started !== undefined) {
        const run = work.start(started)
        return { key: key.subject.split('/', 1)[0] ?? '', run: (stopping) => hold(key, run, stopping) }
      }
      held.delete(key.id)
    }
  }

  async function begin<Started>(tx: Db, key: ClaimKey, start: () => Promise<Started | undefined>): Promise<Started | undefined> {
    if (!(await insertClaim(tx, { ...key, server, endsAtS: nowS() + LEASE_S }, nowS()))) return undefined
    const started = await start()
    if (started === undefined) await removeClaim(tx, key)
    return started
  }

  async function hold(
    key: ClaimKey,
    run: (claim: Claim, signal: AbortSignal) => Promise<void>,
    stopping: AbortSignal,
  ): Promise<void> {
    const entry = held.get(key.id)
    if (!entry) throw new Error('a claimed job runs once')
    const signal = AbortSignal.any([stopping, entry.lost.signal])
    let isSettled = false
    let isFailed = false
    const claim: Claim = {
      isHeld: (tx) => hasClaim(tx, key),
      async settle(change, retryAfterS) {
        entry.isSettling = true
        const settled = await untilWritten(signal, async (tx) => {
          if (!(await removeClaim(tx, key))) return undefined
          if (retryAfterS !== undefined) await insertBackOff(tx, key, nowS() + retryAfterS, false)
          return { result: await change(tx) }
        })
        isSettled = true
        if (!settled) entry.lost.abort(takenOver())
        return settled?.result
      },
    }
    try {
      await run(claim, signal)
    } catch (error) {
      isFailed = !signal.aborted
      throw error
    } finally {
      if (!isSettled) await giveUp(key, isFailed)
      held.delete(key.id)
    }
  }

  async function untilWritten<T>(signal: AbortSignal, change: (tx: Db) => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await write(change)
      } catch (error) {
        if (signal.aborted || !isHostFailure(error) || isCommitOutcomeUnknown(error)) throw error
      }
      await pause(SETTLE_EVERY_MS, undefined, { signal }).catch(() => undefined)
    }
  }

  /** What cannot be written now is taken back later. */
  async function giveUp(key: ClaimKey, isFailed: boolean): Promise<void> {
    await write(async (tx) => {
      if ((await release(tx, key)) && isFailed) await insertBackOff(tx, key, nowS() + RETRY_AFTER_S, false)
    }).catch((error) => log[logLevelFor(error, 'warn')]({ err: error, ...key }, 'jobs: claim not released yet'))
  }

  async function stop(): Promise<void> {
    clearInterval(timer)
    await maintaining
  }

  return { candidates: isOnlyServer ? 1 : CANDIDATES_OF_SEVERAL_SERVERS, claimNext, maintain, stop }
}

function takenOver(): Error {
  return new Error('another process has taken this work over')
}
