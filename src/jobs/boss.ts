import { CompiledQuery } from 'kysely'
import pg from 'pg'
import { type Job, PgBoss } from 'pg-boss'
import type { Logger } from 'pino'
import type { Db } from '../db/database.ts'
import { clientOptions, configureSession } from '../db/postgres/connection.ts'
import { errorCode } from '../db/write.ts'
import { Failure } from '../errors.ts'
import type { Claim, ClaimedJob, ClaimFilter, Queue, QueuedJob, Stale } from './queue.ts'

export type BossQueue<Target extends object> = Queue<Target> & {
  /** What is held has ended before. */
  stop(): Promise<void>
}

/** Whoever did not say for so long that they live is dead; the least that pg-boss takes. */
const HEARTBEAT_S = 10
const BEAT_MS = 3_000
/** How often pg-boss looks for the dead, and we for what was theirs: 12 s at most from a death to the next run. */
const LOOK_S = 1
/** The longest that pg-boss lets a piece of work take, as long as its holder lives. */
const LONGEST_WORK_S = 24 * 60 * 60
/** Deaths do not end a piece of work: what may be tried how often is the feature's to say. */
const DEATHS = 1_000_000
const KEEP_WAITING_S = 365 * 24 * 60 * 60
const KEEP_FINISHED_S = 60
const CLEAN_EVERY_S = 600

/** Large backlogs are what a queue is for. */
const LARGEST_BACKLOG = 10_000_000

const MAY_NOT_CREATE =
  'The schema pgboss cannot be made in the database. Let its role create schemas there: GRANT CREATE ON DATABASE … TO …'

const CONNECTIONS = 2
/** Shorter than a stop may take. */
const TIMEOUT_MS = 8_000

/**
 * A queue kept by pg-boss beside the rows, in a schema of its own. Notices are given and taken in the transactions of the rows;
 * what pg-boss does by itself, on a few connections of its own, is to notice that a holder is dead.
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
    max: CONNECTIONS,
    onConnect: (client) => configureSession(client),
  })
  pool.on('error', () => undefined) // an idle connection was lost: the next statement makes another
  const boss = new PgBoss({
    db: { executeSql: (text, values) => pool.query(text, values) },
    schedule: false,
    warningQueueSize: LARGEST_BACKLOG,
    superviseIntervalSeconds: LOOK_S,
    monitorIntervalSeconds: LOOK_S,
    maintenanceIntervalSeconds: CLEAN_EVERY_S,
  })
  let isFailing = false
  boss.on('error', noteTrouble)
  boss.on('warning', ({ message, data }) => log.warn({ data }, message))
  try {
    await boss.start()
    const kept = { retentionSeconds: KEEP_WAITING_S, deleteAfterSeconds: KEEP_FINISHED_S }
    const tries = { retryLimit: DEATHS, retryDelay: 0, expireInSeconds: LONGEST_WORK_S, heartbeatSeconds: HEARTBEAT_S }
    await boss.createQueue(name, { partition: true }) // a table of its own is emptied at once, however much waits
    await boss.updateQueue(name, { ...kept, ...tries }) // whatever an older version of ours had chosen
  } catch (error) {
    await close()
    throw errorCode(error) === '42501' ? new Failure('unavailable', MAY_NOT_CREATE, { cause: error }) : error
  }

  const held = new Set<Attempt>()
  const beats = setInterval(() => void beat().catch(noteTrouble), BEAT_MS)
  let looks: NodeJS.Timeout | undefined

  /** Once for each time that the database is away, not with every look. */
  function noteTrouble(error: unknown): void {
    if (!isFailing) log.warn({ err: error }, 'the queue of work cannot be kept now; it is tried again')
    isFailing = true
  }

  async function beat(): Promise<void> {
    if (held.size > 0) await boss.touch(name, [...held])
  }

  async function look(found: () => void): Promise<void> {
    const { rowCount } = await pool.query(
      `select 1 from pgboss.job where name = $1 and state < 'active' and start_after <= now() limit 1`,
      [name],
    )
    if (isFailing) log.info('the queue of work is kept again')
    isFailing = false
    if (rowCount) found()
  }

  async function tell(tx: Db, notices: readonly QueuedJob<Target>[]): Promise<void> {
    const jobs = notices.map(({ target, priority, group }) => ({ data: target, priority: -priority, group: { id: group } }))
    if (jobs.length > 0) await boss.insert(name, jobs, { db: within(tx) })
  }

  async function take<Run>(
    tx: Db,
    { upToPriority, except }: ClaimFilter,
    claim: Claim<Target, Run>,
  ): Promise<ClaimedJob<Run> | Stale | undefined> {
    const limits = upToPriority === undefined ? {} : { minPriority: -upToPriority }
    const [job]: Job<Target>[] = await boss.fetch<Target>(name, { ...limits, ignoreGroups: [...except], db: within(tx) })
    if (!job) return undefined
    const run = await claim(tx, job.data, job.retryCount)
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

  /** What cannot be settled now is found dead, and given to another, who looks at the row. */
  async function settle(statement: () => Promise<unknown>): Promise<void> {
    await statement().catch(noteTrouble)
  }

  async function close(): Promise<void> {
    await boss.stop({ graceful: false })
    await pool.end()
  }

  return {
    tell,
    take,
    async rebuild(tellAll) {
      await boss.deleteAllJobs(name)
      await tellAll(tell)
    },
    watch(found) {
      looks = setInterval(() => void look(found).catch(noteTrouble), LOOK_S * 1000)
    },
    async stop() {
      clearInterval(beats)
      clearInterval(looks)
      await close()
    },
  }
}

/** A job as pg-boss gave it: once it is given to another, this one cannot touch or end it. */
type Attempt = Pick<Job, 'id' | 'retryCount'>

/** For statements of pg-boss in a transaction of ours. */
function within(tx: Db) {
  return { executeSql: (text: string, values: unknown[] = []) => tx.executeQuery(CompiledQuery.raw(text, values)) }
}
