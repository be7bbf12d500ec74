import { loadavg } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import packageJson from '../../package.json' with { type: 'json' }
import { newId } from '../crypto/secret.ts'
import type { Channel } from '../db/database.ts'
import { findSetting, saveSetting } from '../db/setting.ts'
import { Failure, logLevelFor } from '../errors.ts'
import type { Signals } from '../signals/signals.ts'
import { endClaims, insertServer, listServers, MAX_SILENCE_S, removeServer, type ServerState, saveBeat } from './server-store.ts'

/** The servers of this database, as one of them sees them. */
export type Servers = {
  /** Names this server in rows: the same after a restart on the same data folder. */
  id: string
  name: string
  /** Random: the same on all servers that run at the same time, another one once none of them runs any more. */
  era: string
  /** Whether others may join while this server runs: else nothing needs to be claimed, or read again. */
  mayHaveOthers: boolean
  /** Whether others may have used the database since this server started: then the rows are the truth, and no longer its memory. Never false again. */
  isShared(): boolean
  /** The listener is awaited before another server answers its first request. */
  onShared(listener: () => Promise<void>): void
  /** Whether another server lives now. */
  hasOthers(): boolean
  /** Whether another server may answer requests, so that what is cached here may be out of date. */
  mayOthersAnswer(): boolean
  /** Why this server must answer nothing; undefined: it may. */
  refusal(): Failure | undefined
  /** Whether balancers should send it nothing more. */
  isDraining(): boolean
  /** Others may start from now on. */
  started(): Promise<void>
  /** What a beat counts. */
  countSessions(count: () => number): void
  /** Has balancers send nothing more, and waits until they have noticed, where another server can take over. */
  drain(): Promise<void>
  stop(): Promise<void>
}

type ServersDeps = {
  channel: Channel
  signals: Pick<Signals, 'on' | 'send'>
  id: string
  name: string
  /** Frees what a dead server worked on. */
  takeBack: () => Promise<void>
  log: Logger
}

const BEAT_EVERY_MS = 1_000
/** A beat that is later was kept from the database. */
const STEADY_MS = 3_000
const MAX_CLOCK_DIFFERENCE_S = 2
const MAX_JOIN_MS = 30_000
const JOIN_POLL_MS = 50
/** The setting that has it. */
const ERA = 'servers-era'
/** How long a balancer takes to see that a server is not ready. */
const DRAIN_MS = 2_000

type OtherServer = { id: string; run: string; isDead: boolean; knowsUs: boolean; backend: string | null; name: string }

/**
 * Joins the others: when it resolves, each of them knows of this server. So as long as a server knows of no other, none answers.
 * @throws Failure `unavailable` when this machine's clock is wrong
 */
export async function joinServers(deps: ServersDeps): Promise<Servers> {
  const { channel, signals, log, id, name } = deps
  const run = newId()
  const listeners = new Set<() => Promise<void>>()
  let state: ServerState = 'joining'
  let isShared = false
  let others: OtherServer[] = []
  let known: readonly string[] = []
  let lastBeatMs = performance.now()
  /** By the wall clock: the other one may stand still while the machine is suspended. */
  let lastBeatWallMs = Date.now()
  let clockDifferenceS = 0
  let isDrained = false
  let countSessions = () => 0
  /** Since when no beat has failed, or this server has begun: before, the others may have been silent because the database was. */
  let steadySinceMs = performance.now()

  async function readClocks(): Promise<number> {
    const beganS = Date.now() / 1000
    const nowS = await channel.clockS()
    clockDifferenceS = Math.max(0, beganS - nowS, nowS - Date.now() / 1000) // the answer took its time
    return nowS
  }

  const describe = (nowS: number) => ({
    ...{ beatAtS: nowS, state, knows: known.join(' '), sessions: countSessions() },
    load: Math.round((loadavg()[0] ?? 0) * 100) / 100,
  })

  async function beat(): Promise<void> {
    const [beganMs, beganWallMs] = [performance.now(), Date.now()]
    if (beganMs - lastBeatMs > STEADY_MS) steadySinceMs = beganMs
    const nowS = await readClocks()
    const saved = await saveBeat(channel.db, { id, run }, describe(nowS))
    if (!saved) return // it was taken for dead: its next write finds out, since its connection was ended
    isDrained = saved.drained === 1
    await look(nowS)
    lastBeatMs = beganMs
    lastBeatWallMs = beganWallMs
  }

  /** Reads who else lives, and first has what is in memory saved where another has come. */
  async function look(nowS: number): Promise<void> {
    const rows = await listServers(channel.db)
    others = rows
      .filter((row) => row.id !== id)
      .map(({ beatAtS, knows, ...row }) => ({
        ...row,
        isDead: beatAtS < nowS - MAX_SILENCE_S,
        knowsUs: knows.split(' ').includes(id),
      }))
    if (others.length > 0) {
      isShared = true
      for (const listener of listeners) {
        await listener() // when it fails, the next beat repeats it, and the other one waits
        listeners.delete(listener)
      }
    }
    const ids = others.map((other) => other.id)
    if (ids.join() !== known.join()) {
      known = ids
      await saveBeat(channel.db, { id, run }, describe(nowS)) // one that joins waits for it
    }
    const mayJudge = performance.now() - steadySinceMs > MAX_SILENCE_S * 1000
    if (mayJudge) for (const dead of others.filter(({ isDead }) => isDead)) await bury(dead)
  }

  /** Its connection first: what it writes after it has woken up would undo what others have written since. */
  async function bury(dead: OtherServer): Promise<void> {
    if (dead.backend !== null) await channel.terminate(dead.backend)
    if (!(await removeServer(channel.db, dead, dead.backend))) return // or it has connected again
    log.warn({ server: dead.name }, 'servers: one was silent for ten seconds; taking over its work')
    await endClaims(channel.db, dead.id)
    await deps.takeBack()
  }

  async function join(): Promise<void> {
    const nowS = await readClocks()
    const refused = clockRefusal()
    if (refused) throw refused
    const backend = channel.own({ id, run })
    const { version } = packageJson
    await insertServer(channel.db, { ...describe(nowS), id, run, name, version, startedAtS: Math.floor(nowS), backend })
    void signals.send('servers-changed', undefined)
    for (const beganMs = performance.now(); ; await pause(JOIN_POLL_MS)) {
      await beat()
      // One that is silent may still have requests under way: it comes back, or is removed.
      if (others.every(({ isDead, knowsUs }) => !isDead && knowsUs)) return
      if (performance.now() - beganMs > MAX_JOIN_MS)
        throw new Failure('unavailable', 'Another server of this installation does not notice this one. Start it again.')
    }
  }

  function clockRefusal(): Failure | undefined {
    if (clockDifferenceS <= MAX_CLOCK_DIFFERENCE_S) return undefined
    return new Failure(
      'unavailable',
      `The clock of this machine differs from the database’s by ${clockDifferenceS.toFixed(1)} s, and servers that share a database must agree. Set both by NTP.`,
      { retryAfterS: 5 },
    )
  }

  function refusal(): Failure | undefined {
    if (Math.max(performance.now() - lastBeatMs, Date.now() - lastBeatWallMs) > MAX_SILENCE_S * 1000)
      return new Failure('unavailable', 'This server does not reach its database. Others may answer.', { retryAfterS: 1 })
    return clockRefusal()
  }

  let wasRefusing = false
  /** Logs once when it begins to refuse, and when it ends. */
  function reportRefusal(): void {
    const why = refusal()
    if (why && !wasRefusing) log.error({ why: why.message }, 'servers: this one answers nothing')
    if (!why && wasRefusing) log.info('servers: this one answers again')
    wasRefusing = why !== undefined
  }

  let beating: Promise<void> | undefined
  function beatSoon(): void {
    beating ??= beat()
      .catch((error) => log[logLevelFor(error, 'warn')]({ err: error }, 'servers: no sign of life, retrying'))
      .finally(() => {
        beating = undefined
        reportRefusal()
      })
  }

  /** Servers start one after the other. */
  async function openEra(): Promise<string> {
    const shared = others.some(({ isDead }) => !isDead) ? await findSetting(channel.db, ERA) : undefined
    if (shared !== undefined) return shared
    const era = newId()
    await saveSetting(channel.db, ERA, era)
    return era
  }

  await join()
  const era = await openEra()
  signals.on('servers-changed', beatSoon)
  const timer = setInterval(beatSoon, BEAT_EVERY_MS)
  return {
    ...{ id, name, era, mayHaveOthers: true, refusal },
    isShared: () => isShared,
    onShared: (listener) => void listeners.add(listener),
    countSessions(count) {
      countSessions = count
    },
    hasOthers: () => others.some(({ isDead }) => !isDead),
    mayOthersAnswer: () => others.length > 0,
    isDraining: () => isDrained || state === 'stopping',
    async started() {
      state = 'serving'
      await channel.unlockStart()
      beatSoon()
    },
    async drain() {
      state = 'stopping'
      if (!refusal() && others.some(({ isDead }) => !isDead)) await pause(DRAIN_MS)
    },
    async stop() {
      clearInterval(timer)
      await beating
      await removeServer(channel.db, { id, run })
      await signals.send('servers-changed', undefined)
    },
  }
}

/** Of a server that no other can join: it has its database for itself. */
export function onlyServer(id: string, name: string): Servers {
  let isStopping = false
  return {
    ...{ id, name, era: newId(), mayHaveOthers: false },
    isShared: () => false,
    onShared: () => undefined,
    countSessions: () => undefined,
    hasOthers: () => false,
    mayOthersAnswer: () => false,
    refusal: () => undefined,
    isDraining: () => isStopping,
    started: async () => undefined,
    async drain() {
      isStopping = true
    },
    stop: async () => undefined,
  }
}
