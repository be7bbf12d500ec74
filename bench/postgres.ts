import { spawnSync } from 'node:child_process'
import { copyFile, mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { type Cluster, createDatabase, dropDatabase, openCluster } from '../test/postgres/cluster.ts'
import { type Filled, filledFolder, makeFilled, versionOfTables } from './fill.ts'
import { measureInterleaved, percentile, repeat } from './interleaved.ts'
import { askingOwner, authorization, FIRST_PAGE, searches, uniqueQueries } from './list.ts'
import { answersPerS, rawRequest } from './load.ts'
import { otpRequests } from './otp.ts'
import { CACHE, type Row, type Scope, withScope } from './row.ts'
import { type Listening, SERVE, startService } from './service.ts'

// The same service on PostgreSQL, which shares the two cores, against itself on SQLite.

const SIZES = [10_000, 1_000_000] as const
const PAIRS = 5
/** Rows 9 001 to 9 020. */
const DEEP_PAGE = '/api/videos?page=451&limit=20'

type Requests = (filled: Filled, service: Listening) => string[] | Promise<string[]>

const getting =
  (paths: readonly string[]): Requests =>
  ({ apiKey }) =>
    paths.map((path) => rawRequest('GET', path, authorization(apiKey)))

const RATES: readonly { name: string; what: string; requests: Requests }[] = [
  { name: 'list', what: '20 of all with their count, each read afresh', requests: getting(uniqueQueries([FIRST_PAGE])) },
  { name: 'search', what: '20 of 2 000 hits, no two questions alike', requests: getting(uniqueQueries(searches())) },
  { name: 'deep-page', what: 'page at row 9 000, each read afresh', requests: getting(uniqueQueries([DEEP_PAGE])) },
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
        prepare: () => makeMoved(videos),
        measure: (scope) => againstSqlite(scope, videos, requests),
      }),
    ),
  ),
  {
    name: 'postgres-search-million-p99',
    what: '20 of 2 000 hits in 1 000 000 videos on PostgreSQL, 99 of 100 are answered within',
    unit: 'ms',
    aim: { oursAtMost: 120 },
    prepare: () => makeMoved(1_000_000),
    measure: async (scope) => {
      const { filled, env } = await movedFolder(scope, 1_000_000)
      const owner = await askingOwner(scope, filled, env)
      const questions = searches().values()
      const ours = await repeat(300, () => owner.freshMs(questions.next().value ?? ''))
      return { ours: percentile(ours, 99) }
    },
  },
]

async function againstSqlite(scope: Scope, videos: number, requestsOf: Requests) {
  const onSqlite = await filledFolder(scope, videos)
  const { filled, env } = await movedFolder(scope, videos)
  const peer = await startService(scope, onSqlite.dataDir)
  const ours = await startService(scope, filled.dataDir, env)
  const requests = await requestsOf(filled, ours)
  const answers = ({ url }: Listening) => answersPerS(scope, url, { requests })
  for (const service of [ours, peer]) await answers(service) // both warm
  return measureInterleaved(
    PAIRS,
    () => answers(ours),
    () => answers(peer),
  )
}

/** A copy of the moved database for one row, which may change it, with the data folder that belongs to it. */
async function movedFolder(scope: Scope, videos: number): Promise<{ filled: Filled; env: Record<string, string> }> {
  const original = await makeFilled(videos)
  const dataDir = join(scope.folder, 'data-of-postgres')
  await mkdir(dataDir)
  await copyFile(join(original, 'data.key'), `${dataDir}.key`)
  const apiKey = await readFile(join(original, 'api-key'), 'utf8')
  const { url } = await cluster()
  const copy = await createDatabase(url, { copyOf: urlOf(url, videos) })
  scope.defer(() => dropDatabase(copy))
  return { filled: { dataDir, apiKey }, env: { REELGATE_DATABASE_URL: copy } }
}

let opened: Promise<Cluster> | undefined

/** Kept between runs, as filled databases are; its server ends with this process. */
function cluster(): Promise<Cluster> {
  opened ??= openCluster({
    durable: true,
    kept: join(CACHE, `postgres-${versionOfTables()}`),
    settings: { shared_buffers: '512MB', max_wal_size: '4GB' },
  })
  return opened
}

/** Stops what the rows above have started. */
export async function stopPostgres(): Promise<void> {
  await (await opened)?.stop()
}

const nameOf = (videos: number) => `filled_${videos}`

function urlOf(url: string, videos: number): string {
  const named = new URL(url)
  named.pathname = `/${nameOf(videos)}`
  return named.href
}

/** Moves the filled database as an owner would, unless that was done. */
async function makeMoved(videos: number): Promise<void> {
  await makeFilled(videos)
  const { url, admin } = await cluster()
  const client = new pg.Client(admin)
  await client.connect()
  try {
    const { rowCount } = await client.query('select 1 from pg_database where datname = $1', [nameOf(videos)])
    if (rowCount !== 0) return
    process.stderr.write(`Moving ${videos} videos to PostgreSQL\n`)
    const made = await createDatabase(url)
    await withScope(async (scope) => move((await filledFolder(scope, videos)).dataDir, made))
    await client.query(`alter database ${new URL(made).pathname.slice(1)} rename to ${nameOf(videos)}`)
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
