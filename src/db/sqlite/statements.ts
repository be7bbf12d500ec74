import type SqliteDatabase from 'better-sqlite3'

/** Statements kept compiled on a connection; those with lists of many lengths come and go. */
const KEPT_STATEMENTS = 500

/** Compiling a statement costs more than most of them take to run, so each is kept under its text. */
export function cacheStatements(connection: SqliteDatabase.Database) {
  const kept = new Map<string, SqliteDatabase.Statement>()
  return {
    close: () => connection.close(),
    prepare(text: string) {
      const known = kept.get(text)
      if (known) return known
      const statement = connection.prepare(text)
      if (kept.size >= KEPT_STATEMENTS) kept.delete(kept.keys().next().value ?? '')
      kept.set(text, statement)
      return statement
    },
  }
}
