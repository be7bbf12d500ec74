import { openSqlite } from '../../../src/db/sqlite/database.ts'

// Opens the database that is named, which brings it up to this version, and ends.

const [path = ''] = process.argv.slice(2)
await (await openSqlite(path)).close()
