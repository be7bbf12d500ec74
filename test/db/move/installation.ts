import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { makeDatabase } from '../../postgres.ts'
import { type Reelgate, runCli } from '../../reelgate.ts'
import { readRows, type Stored } from '../../rows.ts'

export type Moved = { tables: { table: string; rows: number; sha256: string }[]; before: boolean }

/** A million videos take many minutes. */
const LONGEST_MS = 3_600_000

/** An empty database to move into; it goes with the run's PostgreSQL. */
export async function newTarget(): Promise<string> {
  const { url } = await makeDatabase({ database: 'postgres' })
  return url ?? ''
}

export function migrate(env: Record<string, string>, url: string) {
  return runCli(['migrate', '--to', url, '--json'], env, LONGEST_MS)
}

export async function moved(env: Record<string, string>, url: string): Promise<Moved> {
  const { code, stdout, stderr } = await migrate(env, url)
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}

/** The database's files with their hashes; `-shm` is an index of the log, which whoever reads may make anew. */
export function filesOf({ dataDir }: Pick<Reelgate, 'dataDir'>): Record<string, string> {
  const names = readdirSync(dataDir).filter((name) => name.startsWith('reelgate.db'))
  return Object.fromEntries(names.map((name) => [name, name.endsWith('-shm') ? '' : sha256(join(dataDir, name))]))
}

function sha256(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}

/** What a table holds, as either database gives it; of an index of texts what both have in it. */
export function rowsOf(stored: Stored, table: string) {
  const rows = readRows(stored, table === 'video_text' ? TEXTS : `select * from "${table}"`)
  return rows.map((row) => JSON.stringify(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1)))).sort()
}

const TEXTS = `select video_text.rowid as rowid, video_text.id as id, video_text.title as title, video_text.file_name as file_name
  from video_text join video on position = video_text.rowid where deleted_at_s is null`
