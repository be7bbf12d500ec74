import type { CompiledQuery, QueryResult } from 'kysely'
import pg from 'pg'
import { LostConnection, toConnectionError, Unreachable } from './failures.ts'

/** One connection, made when it is first needed and anew after it was lost. */
export type Connection = {
  /**
   * Statements given before an earlier one has ended are sent at once (pipelining), and run in their order.
   * @throws LostConnection, or what PostgreSQL says of the statement
   */
  execute<R>(query: Statement): Promise<StatementResult<R>>
  /** Statements on their way. */
  pending(): number
  /** For a transaction: until `letGo` no statement runs on another connection than the one that stands now. */
  hold(): Promise<void>
  letGo(): void
  /** Whether it stands; false: the next statement makes it. */
  isOpen(): boolean
  /** Parts from it, also where it is just being made: the next statement goes to another. */
  renew(): void
  close(): Promise<void>
}

/** With PostgreSQL's word for what it did. */
export type StatementResult<R> = QueryResult<R> & { command: string }

export type Statement = Pick<CompiledQuery, 'sql' | 'parameters'>

export type ConnectionOptions = {
  url: string
  /** Settings of its session, such as `lock_timeout`. */
  settings?: Readonly<Record<string, string | number>>
  /** Milliseconds after which a statement is given up, and the connection with it; undefined: never. */
  timeoutMs?: number
  /** What a new connection begins with; when it throws, there is none, and the reason is the cause of the loss. */
  begin?: (client: pg.Client) => Promise<void>
  /** Called when an established connection is gone. */
  lost?: () => void
}

const CONNECT_TIMEOUT_MS = 5_000
/** After an attempt that failed so long ago, whoever asks next is told at once: a stop must not wait for each of them. */
const RESTS_MS = 250
/** A connection that does not end in peace by then is cut. */
const PARTING_MS = 1_000

/** A peer that is gone without a word is noticed after some 25 s, on both sides: the server frees what the connection held. */
const KEEP_ALIVE_MS = 10_000
const SESSION = {
  tcp_keepalives_idle: 10,
  tcp_keepalives_interval: 5,
  tcp_keepalives_count: 3,
  // A promise that survives power loss, whatever the database was set to.
  synchronous_commit: 'on',
  // A commit that the server gives up by time is told as done, though no standby has it.
  statement_timeout: 0,
  jit: 'off',
  // Names mean our own tables, whatever role, database or address put before them.
  search_path: 'public, pg_temp',
  // Before its first vacuum a table would be walked by its key rather than by the index of an account: 137 ms in place of 0.03.
  random_page_cost: 1.1,
}

/** What a client is made with. Its session's settings are set by `beginSession`, once it is connected. */
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

/** By a statement: what an address says comes before a client's own options, and poolers refuse or drop those. */
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
  let failed: { error: unknown; atMs: number } | undefined
  let pending = 0
  let isHeld = false
  let isClosed = false
  let renewals = 0

  async function connected(): Promise<pg.Client> {
    if (isClosed || isHeld) throw new LostConnection('the connection to the database is gone')
    if (failed && performance.now() - failed.atMs < RESTS_MS) throw failed.error
    connecting ??= connect().finally(() => {
      connecting = undefined
    })
    return connecting
  }

  async function connect(): Promise<pg.Client> {
    try {
      for (;;) {
        const asOf = renewals
        const made = await begun(new pg.Client({ ...clientOptions(options), pipeline: true }))
        if (asOf === renewals) {
          client = made
          failed = undefined
          return made
        }
        void part(made) // it may have reached the server that was there before
      }
    } catch (cause) {
      const error = new Unreachable('the database cannot be reached', { cause })
      failed = { error, atMs: performance.now() }
      throw error
    }
  }

  async function begun(made: pg.Client): Promise<pg.Client> {
    // Its loss is told to the statements on their way; the next one makes another.
    made.on('error', () => forget(made))
    made.on('end', () => forget(made))
    try {
      await made.connect()
      await configureSession(made, options.settings)
      await options.begin?.(made)
      return made
    } catch (error) {
      cut(made)
      throw error
    }
  }

  function forget(lost: pg.Client) {
    if (client !== lost) return
    client = undefined
    if (!isClosed) options.lost?.()
  }

  async function execute<R>(statement: Statement): Promise<StatementResult<R>> {
    pending++
    try {
      const made = client ?? (await connected())
      try {
        return toStatementResult<R>(await made.query(prepared(statement)))
      } catch (error) {
        const loss = toConnectionError(error)
        if (loss instanceof LostConnection) {
          forget(made)
          cut(made)
        }
        throw loss
      }
    } finally {
      pending--
    }
  }

  return {
    execute,
    pending: () => pending,
    async hold() {
      if (!client) await connected()
      isHeld = true
    },
    letGo() {
      isHeld = false
    },
    isOpen: () => client !== undefined,
    renew() {
      const old = client
      renewals++
      client = undefined
      failed = undefined
      if (old) void part(old)
    },
    async close() {
      isClosed = true
      const last = client ?? (await connecting?.catch(() => undefined))
      if (last) await part(last)
    },
  }
}

/** Ends a connection once what is on its way is answered, within bounds. */
async function part(client: pg.Client): Promise<void> {
  const impatience = setTimeout(() => cut(client), PARTING_MS)
  await client.end()
  clearTimeout(impatience)
}

/** A peer that does not answer would not answer a goodbye either. */
function cut({ connection }: pg.Client): void {
  connection.stream.destroy()
}

export function toStatementResult<R>({ command, rowCount, rows }: pg.QueryResult): StatementResult<R> {
  return command === 'SELECT' ? { command, rows } : { command, rows, numAffectedRows: BigInt(rowCount ?? 0) }
}

/** Statements that a connection's server keeps parsed, of those that are no lists of values: lists have as many texts as lengths. */
const KEPT_STATEMENTS = 500
const MOST_VALUES = 32
const names = new Map<string, string>()

/** Parsing and planning a statement costs more than most take to run, so each is kept by the server under a name. */
export function prepared({ sql, parameters }: Statement): pg.QueryConfig {
  let name = names.get(sql)
  if (name === undefined && parameters.length <= MOST_VALUES && names.size < KEPT_STATEMENTS) {
    name = `s${names.size}`
    names.set(sql, name)
  }
  return { text: sql, values: parameters.map(withoutNul), ...(name !== undefined && { name }) }
}

/**
 * PostgreSQL takes every character of a text but U+0000. No text that we keep has one; what is asked for with one is found nowhere,
 * as it is in SQLite.
 */
function withoutNul(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNul)
  return typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\ufffd') : value
}

const asNumber = (text: string) => Number(text)

/** SQLite's forms: whole numbers and sums as numbers (ours stay below 2^53), truth as 1 and 0. */
const PARSERS: Readonly<Record<number, (text: string) => unknown>> = {
  [pg.types.builtins.INT8]: asNumber,
  [pg.types.builtins.NUMERIC]: asNumber,
  [pg.types.builtins.BOOL]: (text) => (text === 't' ? 1 : 0),
}

const TYPES: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') => PARSERS[oid] ?? pg.types.getTypeParser(oid, format),
}
