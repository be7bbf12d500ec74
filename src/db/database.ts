import type { Kysely } from 'kysely'
import { Failure } from '../errors.ts'
import type { Tables } from './tables.ts'
import type { Write } from './write.ts'

/** A handle to read with, or inside `write` the transaction. */
export type Db = Kysely<Tables>

/** An open database, SQLite or PostgreSQL: features need not know which. */
export type Database = {
  /** Reads only: the connection cannot write. */
  db: Db
  /** For reads that may take milliseconds: they do not delay other reads. */
  slowQueryDb: Db
  write: Write
  /** Undefined: only one server can use the database. */
  batches: Batches | undefined
  /**
   * The time by the database's own clock, in seconds since 1970. Undefined when it has none: then this machine's clock counts.
   */
  serverClockS: (() => Promise<number>) | undefined
  /**
   * Damage found in a database too large to be checked before it is used; undefined when there is none. Once found, writes are
   * rejected.
   */
  damage: Promise<string | undefined>
  /** Reports changes of the database's availability. Of SQLite, which is a file, only `diskFull` is reported. */
  watch(listener: DatabaseListener): void
  /** Empties the write-ahead log, so that deleted data is not left in it. Gives up after two seconds while a long read needs it. */
  truncateWal(): Promise<void>
  /** To the other servers. Undefined: there are none, and none can come while this one runs. */
  channel: Channel | undefined
  close(): Promise<void>
}

/** A connection to the other servers of a database, apart from those that read and write. */
export type Channel = {
  /** Each statement is committed by itself, and sees what was committed before it. */
  db: Db
  /** The time by the database's clock, with its fraction. */
  clockS(): Promise<number>
  /** Sends texts of less than 8000 bytes to all that listen, this server included. */
  notify(payloads: readonly string[]): Promise<void>
  /** @param listener.connected called at each new connection: what was sent before is missed */
  listen(listener: { received(payload: string): void; connected(): void }): Promise<void>
  /** Waits until no other server is starting. @throws Failure `unavailable` when that takes long */
  lockStart(): Promise<void>
  unlockStart(): Promise<void>
  /** A lock of any name among the servers, which ends with the connection at the latest. False: another server has it. */
  tryLock(name: string): Promise<boolean>
  unlock(name: string): Promise<void>
  /**
   * Binds the connection that writes to a row of `server`: a later connection without that row does not write.
   * @returns what `terminate` takes
   */
  own(row: { id: string; run: string }): string
  /** Ends the connection that writes for another server. */
  terminate(backend: string): Promise<void>
}

/** Short transactions on rows that several servers change, each on rows that it locks before it reads them. */
export type Batches = {
  /** How many run at a time. */
  count: number
  /** Called with each new connection, before it is used. */
  onConnect(listener: (db: Db) => Promise<void>): void
  /**
   * Runs `work` in a transaction, and again where another server's rolled it back. The callback awaits nothing but its own statements.
   * `isDurable`: the commit must survive a power cut of the database; else it may lose what was committed within the last second.
   */
  transaction<T>(work: (tx: Db) => Promise<{ result: T; isDurable: boolean }>): Promise<T>
}

export type DatabaseListener = {
  /** Called once for each reason. */
  unavailable(reason: string): void
  available(): void
  /** A write found the database's disk full. */
  diskFull(): void
  /** Another server has taken the database: nothing is read or written any more. */
  takenOver(): void
  /** The other server has released it; only a new start may use the database again. */
  released(): void
}

/** Where an installation's database is, or will be. */
export type DatabaseLocation = {
  /** For messages; without a password. */
  name: string
  /** Undefined: it is in the data folder. */
  address: string | undefined
  /** Why it may be older than the data folder, for messages. */
  possibleRollbackCause: string
  exists(): Promise<boolean>
  /** @throws Failure `unavailable` when its file cannot be written; for a database server `open` finds out */
  assertWritable(): Promise<void>
  /**
   * A setting, read before anything opens the database to write. Undefined when the setting or the table does not exist.
   * @throws Failure `unavailable` when it is damaged or cannot be reached
   */
  peekSetting(name: string): Promise<string | undefined>
  /** The rows of a query on one table, read in the same way. None when there is no such table. */
  peekRows<Row>(table: string, query: string): Promise<Row[]>
  /** The names of the migrations that were applied to it; none when there are no tables. */
  appliedMigrations(): Promise<string[]>
  /** The migrations of this version, which `open` applies. */
  migrations: readonly string[]
  /**
   * @param withOthers other servers that are opened so may use it at the same time, if it can have several
   * @throws Failure `unavailable` when it is damaged, cannot be written, or belongs to a newer version
   */
  open(withOthers?: boolean): Promise<Database>
}

/** Reads that may wait for `slowQueryDb`; with more, the last would be finished only after their callers have given up. */
export const MAX_WAITING_READS = 500

export function tooManySearches(): Failure {
  return new Failure('unavailable', 'Too many searches are waiting already. Try again in a moment.')
}
