import pg from 'pg'
import { Failure } from '../../errors.ts'
import { type Check, type Finding, failure, judgeSync, ok, timeSyncs, warning } from '../../health-check.ts'
import { clientOptions, configureSession } from './connection.ts'
import { assertValidUrl, unreachable } from './connection-errors.ts'
import { UNFINISHED_MOVE_TABLE } from './location.ts'
import { MIN_VERSION } from './probe.ts'

const TIMEOUT_MS = 10_000

/** Connections that a server has open, those of its queue included. */
const CONNECTIONS_NEEDED = 12
/** Playback uses the database's clock, times in lists this machine's: a larger difference confuses owners. */
const MAX_CLOCK_DIFFERENCE_S = 2

/** What one statement returns about a database. */
type Facts = {
  version: number
  encoding: string
  ctype: string
  trigrams: 'installed' | 'available' | 'missing'
  fsync: string
  fullPages: string
  standby: number
  unfinished: number
  connectionsLeft: number
  ours: number
  clockS: number
}

const FACTS = `select
  current_setting('server_version_num')::int / 10000 as version,
  pg_encoding_to_char(encoding) as encoding,
  datctype as ctype,
  case when exists (select from pg_extension where extname = 'pg_trgm') then 'installed'
    when exists (select from pg_available_extensions where name = 'pg_trgm') then 'available' else 'missing' end as trigrams,
  current_setting('fsync') as fsync,
  current_setting('full_page_writes') as "fullPages",
  pg_is_in_recovery() as standby,
  to_regclass('${UNFINISHED_MOVE_TABLE}') is not null as unfinished,
  current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
    - (select count(*) from pg_stat_activity where backend_type = 'client backend') as "connectionsLeft",
  (select count(*) from pg_stat_activity where application_name = 'reelgate') as ours,
  extract(epoch from clock_timestamp())::double precision as "clockS"
  from pg_database where datname = current_database()`

const CHECKS: Readonly<Record<string, (facts: Facts & { nowS: number }) => Finding>> = {
  'database version': ({ version }) =>
    version >= MIN_VERSION
      ? ok(`PostgreSQL ${version}.`)
      : failure(`PostgreSQL ${version} is too old. Use ${MIN_VERSION} or newer.`),
  'database encoding': ({ encoding }) =>
    encoding === 'UTF8'
      ? ok('UTF-8.')
      : failure(`Its encoding is ${encoding}, expected UTF8. Create a database with encoding 'UTF8' template template0.`),
  'database language': ({ ctype }) =>
    /^(C|POSIX)$/.test(ctype)
      ? warning(
          `Its ctype is ${ctype}, which knows only Latin letters: searches for others are slow. Create a database with locale 'C.UTF-8' template template0.`,
        )
      : ok(`Its ctype is ${ctype}.`),
  'search index': ({ trigrams }) =>
    ({
      installed: ok('The extension pg_trgm is installed.'),
      available: ok('The extension pg_trgm is available; the first start installs it.'),
      missing: failure('The extension pg_trgm is missing. Install PostgreSQL’s contrib modules.'),
    })[trigrams],
  'database durability': ({ fsync, fullPages }) =>
    fsync === 'on' && fullPages === 'on'
      ? ok('fsync and full_page_writes are on.')
      : failure(
          'fsync or full_page_writes is off: a power cut loses what was acknowledged, or the whole database. Turn both on in postgresql.conf.',
        ),
  'database role': ({ standby }) =>
    standby ? failure('It is a standby, which rejects changes. Name the primary server.') : ok('It accepts changes.'),
  'database move': ({ unfinished }) =>
    unfinished
      ? failure('It contains an unfinished move. Run reelgate migrate again: it resumes.')
      : ok('No move is unfinished.'),
  connections: ({ connectionsLeft, ours }) =>
    connectionsLeft + ours >= CONNECTIONS_NEEDED
      ? ok(`${connectionsLeft} are left.`)
      : warning(`${connectionsLeft} are left, but a server needs ${CONNECTIONS_NEEDED}. Raise max_connections.`),
  clocks: ({ clockS, nowS }) => {
    const differenceS = Math.abs(clockS - nowS)
    return differenceS <= MAX_CLOCK_DIFFERENCE_S
      ? ok('The clocks of the database and of this machine agree.')
      : warning(`The clocks of the database and of this machine differ by ${differenceS.toFixed(1)} s. Set both by NTP.`)
  },
}

/** Checks a database that a server may be using, without changing anything in it. */
export async function examinePostgres(url: string): Promise<Check[]> {
  try {
    assertValidUrl(url)
    return await examine(new pg.Client(clientOptions({ url, timeoutMs: TIMEOUT_MS })))
  } catch (cause) {
    const { message } = cause instanceof Failure ? cause : unreachable(url, cause)
    return [{ check: 'database', ...failure(message) }]
  }
}

async function examine(client: pg.Client): Promise<Check[]> {
  client.on('error', () => undefined) // its pending statement reports the error
  try {
    await client.connect()
    await configureSession(client)
    const { rows } = await client.query<Facts>(FACTS)
    const [facts] = rows
    if (!facts) throw new Error('the database returned no facts')
    const factsAndTime = { ...facts, nowS: Date.now() / 1000 }
    const checks = Object.entries(CHECKS).map(([check, judge]) => ({ check, ...judge(factsAndTime) }))
    return [
      { check: 'database', ...ok('It can be reached.') },
      ...checks,
      ...(facts.standby ? [] : [await examineCommits(client)]),
    ]
  } finally {
    await client.end().catch(() => undefined)
  }
}

/** Writes a message to the write-ahead log, which changes no table: its commit waits for the disk like any other. */
async function examineCommits(client: pg.Client): Promise<Check> {
  const medianMs = await timeSyncs(() => client.query(`select pg_logical_emit_message(true, 'reelgate', 'doctor')`))
  return { check: 'database disk', ...judgeSync('A commit', medianMs) }
}
