import SqliteDatabase from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { Migrator } from 'kysely/migration'
import { foldCase } from '../../../src/db/fold-case.ts'
import { MIGRATIONS } from '../../../src/db/sqlite/migrations.ts'

// Databases as earlier versions made them.

/** Makes a database of the tables that a version had, by the name of its last step; undefined: of none. */
export async function makeOlder(path: string, lastStep: string | undefined): Promise<void> {
  const names = Object.keys(MIGRATIONS)
  const steps = lastStep === undefined ? [] : names.slice(0, names.indexOf(lastStep) + 1)
  const database = openWritable(path)
  database.pragma('journal_mode = wal')
  const db = new Kysely<unknown>({ dialect: new SqliteDialect({ database }) })
  const migrations = Object.fromEntries(Object.entries(MIGRATIONS).filter(([name]) => steps.includes(name)))
  const { error } = await new Migrator({ db, provider: { getMigrations: async () => migrations } }).migrateToLatest()
  await db.destroy()
  if (error) throw error
}

/** What triggers fill by themselves. */
const DERIVED = /^(tag|video_text.*|sqlite_.*|kysely_.*)$/

/** Tables that are no more, as what has taken their place tells them. */
const FORMER: Readonly<Record<string, string>> = {
  poster: `insert into main.poster (id, video_id, width_px, height_px, size_bytes, token, file, created_at_s)
    select id, video_id, width_px, height_px, size_bytes, token, blob, created_at_s from newer.file where type = 'poster'`,
}

/** Copies every row of a database into one of an earlier version, as far as that has a place for it. */
export function copyRows(from: string, to: string): void {
  const database = openWritable(to)
  try {
    database.prepare('attach ? as newer').run(from)
    const tables = database.prepare<[], { name: string }>("select name from main.sqlite_master where type = 'table'").all()
    for (const { name } of tables.filter((table) => !DERIVED.test(table.name))) {
      const former = FORMER[name]
      if (former !== undefined) {
        database.exec(former)
        continue
      }
      const columnsIn = (schema: string) =>
        database.prepare<[string, string], { name: string }>('select name from pragma_table_info(?, ?)').all(name, schema)
      const kept = new Set(columnsIn('newer').map((column) => column.name))
      const columns = columnsIn('main').filter((column) => kept.has(column.name))
      const list = columns.map((column) => column.name).join(', ')
      database.exec(`insert into main.${name} (${list}) select ${list} from newer.${name}`)
    }
  } finally {
    database.close()
  }
}

function openWritable(path: string): SqliteDatabase.Database {
  const database = new SqliteDatabase(path)
  database.pragma('foreign_keys = off')
  database.function('fold', { deterministic: true }, (text) => foldCase(String(text)))
  return database
}
