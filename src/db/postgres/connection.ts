import type { CompiledQuery, QueryResult } from 'kysely'
import pg from 'pg'
import { isOutdated, LostConnection, toConnectionError, Unreachable } from './failures.ts'

/** One connection, made when it is first needed and again after it was lost. */
export type Connection = {
  /**
   * Statements are sent without waiting for earlier ones to end (pipelining), and run in their order.
   * @throws LostConnection, or PostgreSQL's error for the statement
   */
  execute<R>(query: Statement): Promise<StatementResult<R>>
  /** Number of statements sent and not finished. */
  pending(): number
  /** For a transaction: until `release`, a lost connection is not replaced, so that no statement runs on another one. */
  hold(): Promise<void>
  release(): void
  /** False: the next statement makes a connection. */
  isOpen(): boolean
  /** Closes the connection, also one that is being made: the next statement makes another. */
  reconnect(): void
  close(): Promise<void>
}

/** With PostgreSQL's command tag, such as `COMMIT` or `ROLLBACK`. */
type StatementResult<R> = QueryResult<R> & { command: string }

export type Statement = Pick<CompiledQuery, 'sql' | 'parameters'>

type ConnectionOptions = {
  url: string
  /** Settings of its session, such as `lock_timeout`. */
  settings?: Readonly<Record<string, string | number>>
  /** Time after which a statement is given up, and the connection with it; undefined: never. */
  timeoutMs?: number
  /** Prepares a new connection. When it throws, the connection is closed, and the error is the cause of `Unreachable`. */
  setUp?: (client: pg.Client) => Promise<void>
  /** Called when an established connection is gone. */
  onLost?: () => void
}

const CONNECT_TIMEOUT_MS = 5_000
/**
 * For this long after a failed attempt to connect, statements fail without another one: a stop must not wait for each of them.
 */
const RECONNECT_AFTER_MS = 250
/** A connection that has not closed by then is destroyed. */
const CLOSE_TIMEOUT_MS = 1_000

/** A peer that vanishes is noticed after some 25 s, on both sides: the server then releases the connection's locks. */
const KEEP_ALIVE_MS = 10_000
const SESSION = {
  tcp_keepalives_idle: 10,
  tcp_keepalives_interval: 5,
  tcp_keepalives_count: 3,
  // A commit must survive power loss, whatever the database was set to.
  synchronous_commit: 'on',
  // A commit that times out on the server is reported as done, although no standby has it.
  statement_timeout: 0,
  jit: 'off',
  // Names mean our own tables, whatever search path the role, the database or the address sets.
  search_path: 'public, pg_temp',
  // Before its first vacuum a table would be scanned by its primary key rather than by the index of an account: 137 ms instead
  // of 0.03.
  random_page_cost: 1.1,
}

/** Options for a client. The settings of its session are set by `configureSession` once it is connected. */
export function clientOptions({ url, timeoutMs }: Pick<ConnectionOptions, 'url' | 'timeoutMs'>): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: 'reelgate',
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    types: TYPES,
    ...(timeoutMs !== undefined && { query_timeout: timeoutMs }),
  }
}

/** By a statement: options in the address take precedence over a client's own, and poolers reject or drop those. */
export async function configureSession(client: pg.ClientBase, settings: ConnectionOptions['settings'] = {}): Promise<void> {
  const all = { ...SESSION, ...settings }
  await client.query('select set_config(name, value, false) from unnest($1::text[], $2::text[]) as setting (name, value)', [
    Object.keys(all),
    Object.values(all).map(String),
  ])
}

export function openConnection(options: ConnectionOptions): Connection {
  let client: pg.Client | undefined
  let connecting: Promise<pg.Client> | undefined
  let lastFailure: { error: unknown; atMs: number } | undefined
  let pending = 0
  let isHeld = false
  let isClosed = false
  let reconnects = 0
  /** How often all statements had to be prepared again. */
  let preparations = 0

  async function ensureConnected(): Promise<pg.Client> {
    if (isClosed || isHeld) throw new LostConnection('the connection to the database is gone')
    if (lastFailure && performance.now() - lastFailure.atMs < RECONNECT_AFTER_MS) throw lastFailure.error
    connecting ??= connect().finally(() => {
      connecting = undefined
    })
    return connecting
  }

  async function connect(): Promise<pg.Client> {
    try {
      for (;;) {
        const reconnectsBefore = reconnects
        const newClient = await setUpClient(new pg.Client({ ...clientOptions(options), pipeline: true }))
        if (reconnectsBefore === reconnects) {
          client = newClient
          lastFailure = undefined
          return newClient
        }
        void closeClient(newClient) // it may have reached the previous server at this address
      }
    } catch (cause) {
      const error = new Unreachable('the database cannot be reached', { cause })
      lastFailure = { error, atMs: performance.now() }
      throw error
    }
  }

  async function setUpClient(newClient: pg.Client): Promise<pg.Client> {
    // When it is lost, its pending statements fail; the next statement makes another connection.
    newClient.on('error', () => forget(newClient))
    newClient.on('end', () => forget(newClient))
    try {
      await newClient.connect()
      await configureSession(newClient, options.settings)
      await options.setUp?.(newClient)
      return newClient
    } catch (error) {
      destroyClient(newClient)
      throw error
    }
  }

  function forget(lost: pg.Client) {
    if (client !== lost) return
    client = undefined
    if (!isClosed) options.onLost?.()
  }

  async function execute<R>(statement: Statement): Promise<StatementResult<R>> {
    pending++
    try {
      const usedClient = client ?? (await ensureConnected())
      const query = prepared(statement, preparations)
      try {
        collectWrites(usedClient)
        return toStatementResult<R>(await usedClient.query(query))
      } catch (cause) {
        if (isOutdated(cause)) {
          if (query.name === prepared(statement, preparations).name) preparations++
          if (!isHeld) return await execute<R>(statement) // within a transaction all of it runs again
        }
        const error = toConnectionError(cause)
        if (error instanceof LostConnection) {
          forget(usedClient)
          destroyClient(usedClient)
        }
        throw error
      }
    } finally {
      pending--
    }
  }

  return {
    execute,
    pending: () => pending,
    async hold() {
      if (!client) await ensureConnected()
      isHeld = true
    },
    release() {
      isHeld = false
    },
    isOpen: () => client !== undefined,
    reconnect() {
      const oldClient = client
      reconnects++
      client = undefined
      lastFailure = undefined
      if (oldClient) void closeClient(oldClient)
    },
    async close() {
      isClosed = true
      const lastClient = client ?? (await connecting?.catch(() => undefined))
      if (lastClient) await closeClient(lastClient)
    },
  }
}

/** Closes a connection once its pending statements are finished, or after `CLOSE_TIMEOUT_MS`. */
async function closeClient(client: pg.Client): Promise<void> {
  const timeout = setTimeout(() => destroyClient(client), CLOSE_TIMEOUT_MS)
  await client.end()
  clearTimeout(timeout)
}

const collecting = new WeakSet<pg.Client>()

/** Statements that are sent without waiting for one another leave in one system call, which takes as long as all else that is done for them. */
function collectWrites(client: pg.Client): void {
  if (collecting.has(client)) return
  const { stream } = client.connection
  collecting.add(client)
  stream.cork()
  process.nextTick(() => {
    collecting.delete(client)
    stream.uncork()
  })
}

/** Without the protocol's farewell: a peer that does not answer would not answer that either. */
function destroyClient({ connection }: pg.Client): void {
  connection.stream.destroy()
}

export function toStatementResult<R>({ command, rowCount, rows }: pg.QueryResult): StatementResult<R> {
  return command === 'SELECT' ? { command, rows } : { command, rows, numAffectedRows: BigInt(rowCount ?? 0) }
}

/** Prepared statements on each connection. Long lists of values are left out: each length of a list is another statement. */
const MAX_PREPARED_STATEMENTS = 500
const MAX_VALUES = 32
const names = new Map<string, string>()

/**
 * Parsing and planning a statement takes longer than running most of them, so the server keeps each prepared under a name.
 * @param preparations how often those before were outdated
 */
export function prepared({ sql, parameters }: Statement, preparations = 0): pg.QueryConfig {
  let name = names.get(sql)
  if (name === undefined && parameters.length <= MAX_VALUES && names.size < MAX_PREPARED_STATEMENTS) {
    name = `s${names.size}`
    names.set(sql, name)
  }
  return { text: sql, values: parameters.map(withoutNul), ...(name !== undefined && { name: `${name}.${preparations}` }) }
}

/**
 * PostgreSQL accepts every character in a text except U+0000. No text that we store has one; a search for a text with one finds
 * nothing, as in SQLite.
 */
function withoutNul(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNul)
  return typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\ufffd') : value
}

const asNumber = (text: string) => Number(text)

/** As SQLite returns them: integers and sums as numbers (ours are below 2^53), booleans as 1 and 0. */
const PARSERS: Readonly<Record<number, (text: string) => unknown>> = {
  [pg.types.builtins.INT8]: asNumber,
  [pg.types.builtins.NUMERIC]: asNumber,
  [pg.types.builtins.BOOL]: (text) => (text === 't' ? 1 : 0),
}

const TYPES: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') => PARSERS[oid] ?? pg.types.getTypeParser(oid, format),
}
