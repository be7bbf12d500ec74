import type { Execute } from './single-connection-kysely.ts'

/** Names of tables, as the database has them. */
export type ChangedTables = ReadonlySet<string>

/**
 * Collects which tables the statements of a connection change. What triggers change is not seen: `src/signals/` knows what follows from
 * a change of a table.
 */
export function collectChanges(execute: Execute): { execute: Execute; takeChanges(): ChangedTables } {
  let changed = new Set<string>()
  return {
    execute(query) {
      const table = CHANGE.exec(query.sql)?.[1]
      if (table !== undefined) changed.add(table)
      return execute(query)
    },
    takeChanges() {
      const taken = changed
      changed = new Set()
      return taken
    },
  }
}

const CHANGE = /^\s*(?:insert into|update|delete from) "?(\w+)/
