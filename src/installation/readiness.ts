import { sql } from 'kysely'
import type { Logger } from 'pino'
import { DatabaseInUse, logLevelFor } from '../errors.ts'
import { readVersion, sandboxAdvice, tryBubblewrap } from '../sandbox/bubblewrap.ts'
import type { Foundation } from './open-foundation.ts'

// What `/readyz` reports is checked in the background: some of it starts processes, and a disk or a database may take seconds to
// answer, while a load balancer drops a server that does.

/**
 * `low`: the server is ready, without some of what it does. `away`: as long as the bucket does not answer, viewers go on with what others send.
 */
type CheckResult = 'ok' | 'low' | 'away' | 'failed' | 'held by another server'

type ReadinessCheck = {
  everyMs: number
  /** @throws Error when the server is not ready */
  run(): Promise<'ok' | 'low'>
  /** What this process knows meanwhile, without asking. */
  known?(): CheckResult | undefined
  /** The start has just opened everything, so this counts until the first check ends. */
  atStart?: CheckResult
}

const QUICK_MS = 2_000
/** For what starts a process. */
const PROGRAM_MS = 30_000
/** What did not work is tried again sooner. */
const RETRY_MS = 5_000
/** A check that takes longer has failed until it ends: its disk or database hangs. */
const MAX_CHECK_MS = 15_000

export function watchReadiness(
  {
    db,
    folders,
    bucket,
    ownership,
    sandbox,
    space,
    restoredCopy,
    servers,
    refusal,
  }: Pick<Foundation, 'servers' | 'refusal' | 'db' | 'folders' | 'bucket' | 'ownership' | 'sandbox' | 'space' | 'restoredCopy'>,
  log: Logger,
) {
  const database = watchCheck(log, 'database', {
    everyMs: QUICK_MS,
    async run() {
      const refusal = ownership.refusal()
      if (refusal) throw refusal
      if (ownership.damage() !== undefined) throw new Error('the database is damaged')
      await sql`select 1`.execute(db)
      return 'ok'
    },
    known() {
      if (ownership.refusal()) return 'held by another server'
      return ownership.isUnavailable() || ownership.damage() !== undefined ? 'failed' : undefined
    },
  })
  const storage = watchCheck(log, 'storage', {
    everyMs: QUICK_MS,
    async run() {
      for (const folder of Object.values(folders)) await folder.check()
      return 'ok'
    },
    known: () => (bucket?.outage() ? 'away' : undefined),
  })
  const free = watchCheck(log, 'space', {
    everyMs: QUICK_MS,
    run: async () => ((await space.isLow()) ? 'low' : 'ok'),
    known: () => (space.wasJustFull() ? 'low' : undefined),
  })
  const ffmpeg = watchCheck(log, 'ffmpeg', {
    everyMs: PROGRAM_MS,
    async run() {
      await readVersion(sandbox)
      return 'ok'
    },
  })
  const bubblewrap = watchCheck(log, 'sandbox', {
    everyMs: PROGRAM_MS,
    run: async () => ((await tryBubblewrap(sandbox)) ? 'ok' : 'low'),
    atStart: sandboxAdvice(sandbox) ? 'low' : 'ok',
  })
  return {
    readChecks: () => ({
      database: database.read(),
      storage: storage.read(),
      space: free.read(),
      ffmpeg: ffmpeg.read(),
      sandbox: bubblewrap.read(),
      ...(!ownership.refusal() && refusal() ? { server: 'failed' } : servers.isDraining() && { server: 'draining' }),
    }),
    areWebhooksHeld: () => restoredCopy.isPaused(),
    stop() {
      for (const check of [database, storage, free, ffmpeg, bubblewrap]) check.stop()
    },
  }
}

/** Runs a check from now on, each time after the one before has ended. A failure is logged when it begins. */
function watchCheck(log: Logger, name: string, { everyMs, run, known = () => undefined, atStart = 'ok' }: ReadinessCheck) {
  let latest = atStart
  let begunMs: number | undefined
  let isStopped = false
  let timer = setTimeout(check, everyMs === PROGRAM_MS ? everyMs : 0)

  async function check(): Promise<void> {
    begunMs = performance.now()
    const result = await run().catch((error: unknown) => {
      if (latest !== 'failed' && !isStopped) log[logLevelFor(error, 'warn')]({ err: error, check: name }, 'health: check failed')
      return error instanceof DatabaseInUse ? 'held by another server' : 'failed'
    })
    begunMs = undefined
    latest = result
    if (!isStopped) timer = setTimeout(check, nextMs())
  }

  function nextMs(): number {
    return latest === 'ok' ? everyMs : Math.min(everyMs, RETRY_MS)
  }

  return {
    read() {
      const hangs = begunMs !== undefined && performance.now() - begunMs > MAX_CHECK_MS
      return known() ?? (hangs ? 'failed' : latest)
    },
    stop() {
      isStopped = true
      clearTimeout(timer)
    },
  }
}
