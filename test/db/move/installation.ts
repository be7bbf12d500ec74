import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { makeDatabase } from '../../postgres.ts'
import { type Reelgate, runCli } from '../../reelgate.ts'
import { readRows, type Stored } from '../../rows.ts'

export type MoveReport = { tables: { table: string; rows: number; sha256: string }[]; before: boolean }

/** Moving a million videos takes many minutes. */
const MAX_MOVE_MS = 3_600_000

/** An empty database to move into; it is removed with the run's PostgreSQL. */
export async function newTarget(): Promise<string> {
  const { url } = await makeDatabase({ database: 'postgres' })
  return url ?? ''
}

export function migrate(env: Record<string, string>, url: string) {
  return runCli(['migrate', '--to', url, '--json'], env, MAX_MOVE_MS)
}

export async function migrateSuccessfully(env: Record<string, string>, url: string): Promise<MoveReport> {
  const { code, stdout, stderr } = await migrate(env, url)
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}

/** The hashes of the database's files, except of `-shm`: it is an index of the log that readers may create again. */
export function hashDatabaseFiles({ dataDir }: Pick<Reelgate, 'dataDir'>): Record<string, string> {
  const names = readdirSync(dataDir).filter((name) => name.startsWith('reelgate.db'))
  return Object.fromEntries(names.map((name) => [name, name.endsWith('-shm') ? '' : sha256(join(dataDir, name))]))
}

function sha256(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}

/** The rows of a table in a form that is the same for both databases; of search texts the columns that both have. */
export function readTable(stored: Stored, table: string) {
  const rows = readRows(stored, table === 'video_text' ? TEXTS : `select * from "${table}"`)
  return rows.map((row) => JSON.stringify(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1)))).sort()
}

const TEXTS = `select video_text.rowid as rowid, video_text.id as id, video_text.title as title, video_text.file_name as file_name
  from video_text join video on position = video_text.rowid where deleted_at_s is null`
