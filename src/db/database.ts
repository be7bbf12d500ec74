import type { Kysely } from 'kysely'
import type { Tables } from './tables.ts'
import type { Write } from './write.ts'

/** A handle to read with, or inside `write` the transaction. */
export type Db = Kysely<Tables>

/** An open database, SQLite or PostgreSQL: nobody above needs to know which. */
export type Database = {
  /** Reads only: the connection cannot write. */
  db: Db
  /** For reads that may take milliseconds: where they hold up nobody. */
  slowDb: Db
  write: Write
  /** The time by the database's own clock, in seconds since 1970; undefined: it has none, and the machine's counts. */
  clockS: (() => Promise<number>) | undefined
  /** What is found of a database too large to be checked before it is used; undefined when it is whole. Writes are refused from then on. */
  damage: Promise<string | undefined>
  /** Says from now on when the database goes away and when it is back, or is another server's (a file, as SQLite's, never does), and when its disk is full. */
  watch(news: OutageListener): void
  /** Sees to it that what was deleted from the tables does not lie on in a log of ours. */
  clearLog(): Promise<void>
  close(): Promise<void>
}

export type OutageListener = {
  /** Once for each reason that is found. */
  away(why: string): void
  back(): void
  /** A write found its disk full. */
  full(): void
  /** Another server works with the database: nothing is read or written any more. */
  held(): void
  /** That one has let go; only a new start may use the database again. */
  free(): void
}

/** Where an installation's database is, or will be. */
export type DatabaseLocation = {
  /** As sentences call it; without a password. */
  name: string
  /** Undefined: it lies in the data folder. */
  address: string | undefined
  /** How it may have come to be older than the data folder. */
  olderBecause: string
  exists(): Promise<boolean>
  /**
   * A setting as it stands before anything opens the database to write; undefined when there is none, or no table of them.
   * @throws Failure `unavailable` when it is damaged or cannot be reached
   */
  peekSetting(name: string): Promise<string | undefined>
  /** @throws Failure `unavailable` when it is damaged, cannot be written, or belongs to a newer version */
  open(): Promise<Database>
}
