import { openSqlite } from '../../../src/db/sqlite/database.ts'

// Opens the given database, which migrates it, and closes it.

const [path = ''] = process.argv.slice(2)
await (await openSqlite(path)).close()
