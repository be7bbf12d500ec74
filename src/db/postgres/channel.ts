import { setTimeout as pause } from 'node:timers/promises'
import { Failure } from '../../errors.ts'
import type { Channel } from '../database.ts'
import { openConnection } from './connection.ts'
import { createPostgresKysely } from './dialect.ts'
import { toPublicError } from './failures.ts'
import { rows } from './probe.ts'

const CHANNEL = 'reelgate'
/** Of a start, which one server makes at a time: migrations, the first account, the binding of key and bucket. */
const START_LOCK = 7_235_118_604_272
const MAX_START_WAIT_MS = 60_000
const START_RETRY_MS = 100
/** A connection that does not answer is replaced before this server counts as dead: servers/servers.ts. */
const TIMEOUT_MS = 4_000

/**
 * The connection of a server to the others of its database. NOTIFY in a transaction that writes would let one commit at a time, and a
 * beat must not wait for a long group of writes.
 * @param own says which connection writes for this server: server-lock.ts
 */
export function openChannel(url: string, own: Channel['own']): Channel & { close(): Promise<void> } {
  let listener: Parameters<Channel['listen']>[0] | undefined
  const connection = openConnection({
    url,
    timeoutMs: TIMEOUT_MS,
    async setUp(client) {
      client.on('notification', ({ payload }) => listener?.received(payload ?? ''))
      if (!listener) return
      await client.query(`listen ${CHANNEL}`)
      listener.connected()
    },
  })
  const execute: typeof connection.execute = async (statement) => {
    try {
      return await connection.execute(statement)
    } catch (error) {
      throw toPublicError(error)
    }
  }

  return {
    db: createPostgresKysely(execute, connection.close),
    own,
    async clockS() {
      const now = 'select extract(epoch from clock_timestamp())::double precision as now'
      const { rows } = await execute<{ now: number }>({ sql: now, parameters: [] })
      return Number(rows[0]?.now)
    },
    async notify(payloads) {
      await execute({ sql: `select pg_notify('${CHANNEL}', payload) from unnest($1::text[]) as payload`, parameters: [payloads] })
    },
    async listen(newListener) {
      listener = newListener
      await execute({ sql: `listen ${CHANNEL}`, parameters: [] })
    },
    async lockStart() {
      for (const beganMs = performance.now(); performance.now() - beganMs < MAX_START_WAIT_MS; await pause(START_RETRY_MS)) {
        const [lock] = await rows<{ acquired: number }>(connection, `select pg_try_advisory_lock(${START_LOCK}) as acquired`)
        if (lock?.acquired === 1) return
      }
      throw new Failure('unavailable', 'Another server of this installation is starting, and takes long. Start this one again.')
    },
    async unlockStart() {
      await execute({ sql: `select pg_advisory_unlock(${START_LOCK})`, parameters: [] })
    },
    async tryLock(name) {
      const sql = 'select pg_try_advisory_lock(hashtextextended($1, 0)) as acquired'
      const { rows } = await execute<{ acquired: number }>({ sql, parameters: [name] })
      return rows[0]?.acquired === 1
    },
    async unlock(name) {
      await execute({ sql: 'select pg_advisory_unlock(hashtextextended($1, 0))', parameters: [name] })
    },
    async terminate(backend) {
      const [pid, since] = backend.split(' ', 2)
      const sql = `select pg_terminate_backend(pid, 2000) from pg_stat_activity where pid = $1 and extract(epoch from backend_start)::text = $2`
      await execute({ sql, parameters: [pid, since] })
    },
    close: connection.close,
  }
}
