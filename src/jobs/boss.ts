import { CompiledQuery } from 'kysely'
import pg from 'pg'
import { type Job, PgBoss } from 'pg-boss'
import type { Logger } from 'pino'
import type { Db } from '../db/database.ts'
import { clientOptions, configureSession } from '../db/postgres/connection.ts'
import { errorCode } from '../db/write.ts'
import { Failure } from '../errors.ts'
import type { ClaimedJob, ClaimFilter, ClaimRow, Queue, QueuedJob, Stale } from './queue.ts'

export type BossQueue<Target extends object> = Queue<Target> & {
  /** Call it after all held jobs have ended. */
  stop(): Promise<void>
}

/** A worker without a heartbeat for this long is dead. The minimum of pg-boss. */
const HEARTBEAT_TIMEOUT_S = 10
const HEARTBEAT_INTERVAL_MS = 3_000
/** How often pg-boss looks for dead workers, and we for their jobs: at most 12 s pass from a death to the next run. */
const POLL_INTERVAL_S = 1
/** How long pg-boss lets a job of a living worker run. */
const MAX_JOB_S = 24 * 60 * 60
/** In effect unlimited: the feature decides how often work is attempted. */
const MAX_RETRIES = 1_000_000
const KEEP_PENDING_S = 365 * 24 * 60 * 60
const KEEP_FINISHED_S = 60
const MAINTENANCE_INTERVAL_S = 600

/** pg-boss warns above this number; a large backlog is normal here. */
const MAX_EXPECTED_BACKLOG = 10_000_000

const MAX_CONNECTIONS = 2
/** Shorter than the server's stop may take. */
const TIMEOUT_MS = 8_000

/**
 * A queue kept by pg-boss next to the rows, in its own schema. Jobs are enqueued and claimed in the transactions of the rows. What
 * pg-boss does by itself, on its own few connections, is to detect dead workers.
 */
export async function openBossQueue<Target extends object>(options: {
  url: string
  name: string
  log: Logger
}): Promise<BossQueue<Target>> {
  const { name, log } = options
  const pool = new pg.Pool({
    ...clientOptions({ url: options.url, timeoutMs: TIMEOUT_MS }),
    types: pg.types,
    max: MAX_CONNECTIONS,
    onConnect: (client) => configureSession(client),
  })
  pool.on('error', () => undefined) // an idle connection was lost: the next statement opens another
  const boss = new PgBoss({
    db: { executeSql: (text, values) => pool.query(text, values) },
    schedule: false,
    warningQueueSize: MAX_EXPECTED_BACKLOG,
    superviseIntervalSeconds: POLL_INTERVAL_S,
    monitorIntervalSeconds: POLL_INTERVAL_S,
    maintenanceIntervalSeconds: MAINTENANCE_INTERVAL_S,
  })
  let isFailing = false
  boss.on('error', onError)
  boss.on('warning', ({ message, data }) => log.warn({ data }, message))
  try {
    await boss.start()
    const retention = { retentionSeconds: KEEP_PENDING_S, deleteAfterSeconds: KEEP_FINISHED_S }
    const retries = { retryLimit: MAX_RETRIES, retryDelay: 0, expireInSeconds: MAX_JOB_S, heartbeatSeconds: HEARTBEAT_TIMEOUT_S }
    await boss.createQueue(name, { partition: true }) // its own table is emptied in one step, however many jobs are pending
    await boss.updateQueue(name, { ...retention, ...retries }) // overrides the options of an older version
  } catch (error) {
    await close()
    throw errorCode(error) === '42501' ? mayNotCreateSchema(error) : error
  }

  const held = new Set<Attempt>()
  const heartbeat = setInterval(() => void sendHeartbeat().catch(onError), HEARTBEAT_INTERVAL_MS)
  let polling: NodeJS.Timeout | undefined

  /** Logs once each time the database becomes unavailable, not with every poll. */
  function onError(error: unknown): void {
    if (!isFailing) log.warn({ err: error }, 'queue: unavailable, retrying')
    isFailing = true
  }

  async function sendHeartbeat(): Promise<void> {
    if (held.size > 0) await boss.touch(name, [...held])
  }

  async function poll(onPending: () => void): Promise<void> {
    const { rowCount } = await pool.query(
      `select 1 from pgboss.job where name = $1 and state < 'active' and start_after <= now() limit 1`,
      [name],
    )
    if (isFailing) log.info('queue: available again')
    isFailing = false
    if (rowCount) onPending()
  }

  async function enqueue(tx: Db, jobs: readonly QueuedJob<Target>[]): Promise<void> {
    const inserts = jobs.map(({ target, priority, group }) => ({ data: target, priority: -priority, group: { id: group } }))
    if (inserts.length > 0) await boss.insert(name, inserts, { db: within(tx) })
  }

  async function claim<Run>(
    tx: Db,
    { upToPriority, abovePriority, except }: ClaimFilter,
    claimRow: ClaimRow<Target, Run>,
  ): Promise<ClaimedJob<Run> | Stale | undefined> {
    // Their order is the reverse of ours: the highest comes first.
    const limits = {
      ...(upToPriority === undefined ? {} : { minPriority: -upToPriority }),
      ...(abovePriority === undefined ? {} : { maxPriority: -abovePriority - 1 }),
    }
    const [job]: Job<Target>[] = await boss.fetch<Target>(name, { ...limits, ignoreGroups: [...except], db: within(tx) })
    if (!job) return undefined
    const run = await claimRow(tx, job.data, job.retryCount)
    if (run) return { run, hold: (work) => hold(job, work) }
    await boss.complete(name, [job], undefined, { db: within(tx) })
    return 'stale'
  }

  async function hold({ id, retryCount }: Attempt, work: () => Promise<void>): Promise<void> {
    const attempt = { id, retryCount }
    held.add(attempt)
    try {
      await work()
      await settle(() => boss.complete(name, [attempt]))
    } catch (error) {
      await settle(() => boss.fail(name, [attempt]))
      throw error
    } finally {
      held.delete(attempt)
    }
  }

  /** A job that cannot be settled now is found dead later, and given to another worker, which checks the row. */
  async function settle(statement: () => Promise<unknown>): Promise<void> {
    await statement().catch(onError)
  }

  async function close(): Promise<void> {
    await boss.stop({ graceful: false })
    await pool.end()
  }

  return {
    enqueue,
    claim,
    async rebuild(enqueueAll) {
      await boss.deleteAllJobs(name)
      await enqueueAll(enqueue)
    },
    watch(onPending) {
      polling = setInterval(() => void poll(onPending).catch(onError), POLL_INTERVAL_S * 1000)
    },
    async stop() {
      clearInterval(heartbeat)
      clearInterval(polling)
      await close()
    },
  }
}

function mayNotCreateSchema(cause: unknown): Failure {
  return new Failure(
    'unavailable',
    'The schema pgboss cannot be created in the database. Let its role create schemas there: GRANT CREATE ON DATABASE … TO …',
    { cause },
  )
}

/** One attempt at a job: once the job is given to another worker, this attempt cannot touch or end it. */
type Attempt = Pick<Job, 'id' | 'retryCount'>

/** Runs the statements of pg-boss in our transaction. */
function within(tx: Db) {
  return { executeSql: (text: string, values: unknown[] = []) => tx.executeQuery(CompiledQuery.raw(text, values)) }
}
