import type SqliteDatabase from 'better-sqlite3'
import { LRUCache } from 'lru-cache'

/** Compiled statements of a connection; each length of a list makes another statement. */
const MAX_CACHED_STATEMENTS = 500

/** Compiling a statement takes longer than running most of them, so each is cached by its text. */
export function cacheStatements(connection: SqliteDatabase.Database) {
  const cache = new LRUCache<string, SqliteDatabase.Statement>({ max: MAX_CACHED_STATEMENTS })
  return {
    close: () => connection.close(),
    prepare(text: string) {
      const cached = cache.get(text)
      if (cached) return cached
      const statement = connection.prepare(text)
      cache.set(text, statement)
      return statement
    },
  }
}
