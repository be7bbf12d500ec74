import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Installed, listFiles } from './data-folder.ts'
import { listTables, readRows } from './rows.ts'

/**
 * What lies on disks of an installation: each file of its data folder, by its name. Rows of PostgreSQL are read, a table at a time,
 * and named as if they were in SQLite's file: `reelgate.db/otp`.
 */
export async function readAtRest(installed: Installed): Promise<Map<string, Buffer>> {
  const names = (await listFiles(installed)).filter((name) => !/\/$|\.(sock|reserve)$/.test(name))
  const read = async (name: string): Promise<[string, Buffer]> => [
    name,
    await readFile(join(installed.dataDir, name)).catch(() => Buffer.alloc(0)), // removed meanwhile
  ]
  return new Map([...(await Promise.all(names.map(read))), ...readTables(installed)])
}

/** The same of its rows alone. */
export async function readRowsAtRest(installed: Installed): Promise<Map<string, Buffer>> {
  return new Map([...(await readAtRest(installed))].filter(([name]) => name.startsWith('reelgate.db')))
}

function readTables(installed: Installed): [string, Buffer][] {
  if (!installed.databaseUrl) return []
  return listTables(installed).map((table) => {
    const values = readRows(installed, `select * from ${table}`).flatMap((row) => Object.values(row))
    const bytes = values.flatMap((value) => [value instanceof Buffer ? value : Buffer.from(String(value)), Buffer.from('\n')])
    return [`reelgate.db/${table}`, Buffer.concat(bytes)]
  })
}
