import { writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { BACKUP_ROWS } from './backup.ts'
import { BUCKET_ROWS } from './bucket.ts'
import { CLUSTER_ROWS } from './cluster.ts'
import { CONSOLE_ROWS } from './console.ts'
import { FIRST_FRAME_ROWS } from './first-frame.ts'
import { HEALTH_ROWS } from './health.ts'
import { KEY_ROWS } from './key.ts'
import { LIBRARY_ROWS } from './library.ts'
import { LIGHTHOUSE_ROWS } from './lighthouse.ts'
import { LIST_ROWS } from './list.ts'
import { OTP_ROWS } from './otp.ts'
import { PARSE_ROWS } from './parse.ts'
import { PLAYER_ROWS } from './player.ts'
import { POSTGRES_ROWS, stopPostgres } from './postgres.ts'
import { PROCESS_ROWS } from './process.ts'
import { ROTATE_ROWS } from './rotate.ts'
import { formatAim, isMet, type Measured, type Row, removeLeftovers, withScope } from './row.ts'
import { SEGMENT_ROWS } from './segment.ts'
import { UPLOAD_ROWS } from './upload.ts'
import { VIDEO_ROWS } from './video.ts'
import { VIEWER_ROWS } from './viewers.ts'
import { WORKER_ROWS } from './workers.ts'

const ROWS: readonly Row[] = [
  ...LIST_ROWS,
  ...LIBRARY_ROWS,
  ...CONSOLE_ROWS,
  ...LIGHTHOUSE_ROWS,
  ...OTP_ROWS,
  ...POSTGRES_ROWS,
  ...KEY_ROWS,
  ...CLUSTER_ROWS,
  ...HEALTH_ROWS,
  ...PARSE_ROWS,
  ...VIEWER_ROWS,
  ...SEGMENT_ROWS,
  ...BUCKET_ROWS,
  ...UPLOAD_ROWS,
  ...VIDEO_ROWS,
  ...WORKER_ROWS,
  ...FIRST_FRAME_ROWS,
  ...PLAYER_ROWS,
  ...PROCESS_ROWS,
  ...ROTATE_ROWS,
  ...BACKUP_ROWS,
]

/** A row that takes longer fails, so that the bench always ends. */
const MAX_ROW_MS = 300_000

type Result = { row: Row; measured?: Measured; failure?: string }

const USAGE = `npm run bench [-- --only ROW] [--json FILE]

  --only ROW    one row, or all rows with that prefix: ${ROWS.map(({ name }) => name).join(', ')}
  --json FILE   also writes the results to a file
`

async function bench(): Promise<number> {
  const { only, json } = readArguments()
  const rows = selectRows(only)
  if (rows.length === 0) {
    process.stderr.write(USAGE)
    return 2
  }
  console.log(`${availableParallelism()} × ${cpus()[0]?.model}, Node ${process.versions.node}, load ${formatLoad()} before\n`)
  await removeLeftovers()
  const results: Result[] = []
  for (const row of rows) {
    const result = await measureRow(row)
    results.push(result)
    console.log(formatResult(result))
  }
  await stopPostgres()
  console.log(`\nload ${formatLoad()} after`)
  if (json !== undefined) await writeFile(json, `${JSON.stringify(results.map(toJson), undefined, 2)}\n`)
  return results.some(({ measured }) => measured === undefined) ? 1 : 0
}

/** Invalid arguments select no row, which prints the usage. */
function readArguments(): { only?: string; json?: string } {
  try {
    return parseArgs({ options: { only: { type: 'string' }, json: { type: 'string' } } }).values
  } catch {
    return { only: '' }
  }
}

/** The row with this name, or the rows with this prefix: `--only memory`. */
function selectRows(only: string | undefined): readonly Row[] {
  if (only === undefined) return ROWS
  const exact = ROWS.filter(({ name }) => name === only)
  return exact.length > 0 ? exact : ROWS.filter(({ name }) => name.startsWith(`${only}-`))
}

async function measureRow(row: Row): Promise<Result> {
  await row.prepare?.()
  const { promise: timeout, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`it took longer than ${MAX_ROW_MS / 1000} s`)), MAX_ROW_MS)
  try {
    return { row, measured: await withScope((scope) => Promise.race([row.measure(scope), timeout])) }
  } catch (error) {
    return { row, failure: listCauses(error).join(' ← ') }
  } finally {
    clearTimeout(timer)
  }
}

function listCauses(error: unknown): string[] {
  return error instanceof Error ? [error.message, ...(error.cause === undefined ? [] : listCauses(error.cause))] : [String(error)]
}

function formatResult({ row, measured, failure }: Result): string {
  const { name, what, unit, aim } = row
  if (!measured) return `${name.padEnd(18)} could not be measured: ${failure}\n    ${what}`
  const numbers = [
    `${formatNumber(measured.ours)} ${unit}`.padStart(14),
    (measured.peer === undefined ? '' : `peer ${formatNumber(measured.peer)}`).padStart(14),
    (measured.ratio === undefined ? '' : `${measured.ratio.toFixed(2)}×`).padStart(8),
    `aim ${formatAim(aim, unit)}`.padStart(14),
    isMet(aim, measured) ? 'met' : 'MISSED',
  ]
  return [`${name.padEnd(18)}${numbers.join('  ')}`, what, ...(measured.note === undefined ? [] : [measured.note])].join('\n    ')
}

function toJson({ row, measured }: Result) {
  return {
    name: row.name,
    ours: measured?.ours ?? null,
    peer: measured?.peer ?? null,
    ratio: measured?.ratio ?? null,
    aim: formatAim(row.aim, row.unit),
    met: measured !== undefined && isMet(row.aim, measured),
  }
}

function formatNumber(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3)
}

function formatLoad(): string {
  return loadavg()
    .map((load) => load.toFixed(1))
    .join(' ')
}

process.exitCode = await bench()
