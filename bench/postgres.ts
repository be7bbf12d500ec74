import { spawnSync } from 'node:child_process'
import { copyFile, mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { type Cluster, createDatabase, dropDatabase, openCluster } from '../test/postgres/cluster.ts'
import { copyFilledFolder, ensureFilled, type FilledFolder, getTablesVersion } from './fill.ts'
import { measureInterleaved, percentile, repeat } from './interleaved.ts'
import { authorization, createSequentialClient, FIRST_PAGE, searches, uniqueQueries } from './list.ts'
import { formatRequest, measureResponsesPerS } from './load.ts'
import { otpRequests } from './otp.ts'
import { CACHE, type Row, type Scope, withScope } from './row.ts'
import { type ListeningProcess, SERVE, startService } from './service.ts'

// The service on PostgreSQL, which shares the two cores, compared with the service on SQLite.

const SIZES = [10_000, 1_000_000] as const
const PAIRS = 5
/** Rows 9 001 to 9 020. */
const DEEP_PAGE = '/api/videos?page=451&limit=20'

type Requests = (filled: FilledFolder, service: ListeningProcess) => string[] | Promise<string[]>

const getRequests =
  (paths: readonly string[]): Requests =>
  ({ apiKey }) =>
    paths.map((path) => formatRequest('GET', path, authorization(apiKey)))

const RATES: readonly { name: string; what: string; requests: Requests }[] = [
  { name: 'list', what: '20 of all with their count, nothing cached', requests: getRequests(uniqueQueries([FIRST_PAGE])) },
  { name: 'search', what: '20 of 2 000 hits, no two requests alike', requests: getRequests(uniqueQueries(searches())) },
  { name: 'deep-page', what: 'page at row 9 000, nothing cached', requests: getRequests(uniqueQueries([DEEP_PAGE])) },
  { name: 'otp', what: 'durable OTPs', requests: otpRequests },
]

export const POSTGRES_ROWS: readonly Row[] = [
  ...SIZES.flatMap((videos) =>
    RATES.map(
      ({ name, what, requests }): Row => ({
        name: `postgres-${name}${videos === 10_000 ? '' : '-million'}`,
        what: `${what}, ${videos.toLocaleString('en')} videos, 50 connections, on PostgreSQL; peer: on SQLite`,
        unit: 'per s',
        aim: { ratioAtLeast: 0.3 },
        prepare: () => ensureMoved(videos),
        measure: (scope) => compareWithSqlite(scope, videos, requests),
      }),
    ),
  ),
  {
    name: 'postgres-search-million-p99',
    what: '20 of 2 000 hits in 1 000 000 videos on PostgreSQL, 99 of 100 responses within',
    unit: 'ms',
    aim: { oursAtMost: 120 },
    prepare: () => ensureMoved(1_000_000),
    measure: async (scope) => {
      const { filled, env } = await copyMovedFolder(scope, 1_000_000)
      const owner = await createSequentialClient(scope, filled, env)
      const paths = searches().values()
      const ours = await repeat(300, () => owner.uncachedMs(paths.next().value ?? ''))
      return { ours: percentile(ours, 99) }
    },
  },
]

async function compareWithSqlite(scope: Scope, videos: number, createRequests: Requests) {
  const onSqlite = await copyFilledFolder(scope, videos)
  const { filled, env } = await copyMovedFolder(scope, videos)
  const peer = await startService(scope, onSqlite.dataDir)
  const ours = await startService(scope, filled.dataDir, env)
  const requests = await createRequests(filled, ours)
  const measure = ({ url }: ListeningProcess) => measureResponsesPerS(scope, url, { requests })
  for (const service of [ours, peer]) await measure(service) // warm up both
  return measureInterleaved(
    PAIRS,
    () => measure(ours),
    () => measure(peer),
  )
}

/** A copy of the moved database for one row, which may change it, with the data folder that belongs to it. */
async function copyMovedFolder(scope: Scope, videos: number): Promise<{ filled: FilledFolder; env: Record<string, string> }> {
  const original = await ensureFilled(videos)
  const dataDir = join(scope.folder, 'data-of-postgres')
  await mkdir(dataDir)
  await copyFile(join(original, 'data.key'), `${dataDir}.key`)
  const apiKey = await readFile(join(original, 'api-key'), 'utf8')
  const { url } = await cluster()
  const copy = await createDatabase(url, { copyOf: databaseUrl(url, videos) })
  scope.defer(() => dropDatabase(copy))
  return { filled: { dataDir, apiKey }, env: { REELGATE_DATABASE_URL: copy } }
}

let opened: Promise<Cluster> | undefined

/** Kept between runs, like filled databases; its server ends with this process. */
function cluster(): Promise<Cluster> {
  opened ??= openCluster({
    durable: true,
    kept: join(CACHE, `postgres-${getTablesVersion()}`),
    settings: { shared_buffers: '512MB', max_wal_size: '4GB' },
  })
  return opened
}

/** Stops the cluster if a row has started it. */
export async function stopPostgres(): Promise<void> {
  await (await opened)?.stop()
}

const databaseName = (videos: number) => `filled_${videos}`

function databaseUrl(url: string, videos: number): string {
  const named = new URL(url)
  named.pathname = `/${databaseName(videos)}`
  return named.href
}

/** Moves the filled database with `reelgate migrate`, unless a previous run did. */
async function ensureMoved(videos: number): Promise<void> {
  await ensureFilled(videos)
  const { url, admin } = await cluster()
  const client = new pg.Client(admin)
  await client.connect()
  try {
    const { rowCount } = await client.query('select 1 from pg_database where datname = $1', [databaseName(videos)])
    if (rowCount !== 0) return
    process.stderr.write(`Moving ${videos} videos to PostgreSQL\n`)
    const made = await createDatabase(url)
    await withScope(async (scope) => move((await copyFilledFolder(scope, videos)).dataDir, made))
    await client.query(`alter database ${new URL(made).pathname.slice(1)} rename to ${databaseName(videos)}`)
  } finally {
    await client.end()
  }
}

function move(dataDir: string, url: string): void {
  const [node, main] = SERVE
  const { status, stderr } = spawnSync(node, [main, 'migrate', '--to', url, '--json'], {
    env: { REELGATE_DATA: dataDir },
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`the database could not be moved: ${stderr}`)
}
