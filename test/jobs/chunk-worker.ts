// A minimal worker: claims chunks of the given database one after the other, and publishes each as a row.
// In mode `waits` it publishes when it reads a line.
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setImmediate as turn } from 'node:timers/promises'
import { sql } from 'kysely'
import { pino } from 'pino'
import { collectChanges } from '../../src/db/changed-tables.ts'
import { createPostgresCommitter } from '../../src/db/postgres/commit.ts'
import { openConnection } from '../../src/db/postgres/connection.ts'
import { createPostgresKysely } from '../../src/db/postgres/dialect.ts'
import { toPublicError } from '../../src/db/postgres/failures.ts'
import { createGroupCommitter } from '../../src/db/write.ts'
import {
  beginRun,
  endRun,
  findNextChunk,
  isCurrentRun,
  releaseRun,
  subjectOfNextRun,
  type VideoChunk,
} from '../../src/encode/chunk-store.ts'
import { openClaims } from '../../src/jobs/claims.ts'
import { startDispatcher } from '../../src/jobs/dispatcher.ts'

const [url = '', mode] = process.argv.slice(2)
const log = pino({ level: 'fatal' }, process.stderr)
const connection = openConnection({ url, settings: { default_transaction_isolation: 'serializable' } })
const { execute, takeChanges } = collectChanges(connection.execute)
const committer = createPostgresCommitter(createPostgresKysely(execute, connection.close), connection, toPublicError)
const write = createGroupCommitter({ ...committer, takeChanges })
const reader = openConnection({ url, settings: { default_transaction_read_only: 'on' } })
const db = createPostgresKysely(reader.execute, reader.close)
const nowS = () => Math.floor(Date.now() / 1000)
const server = `worker ${process.pid}`
const claims = await openClaims({ db, write, nowS, server, isOnlyServer: false, release: { chunk: releaseRun }, log })
const input = createInterface(process.stdin)

startDispatcher({ slots: 0, claim, pollIntervalMs: 1_000, log }).wake()

async function claim() {
  return claims.claimNext({
    kind: 'chunk',
    find: () => findNextChunk(db, { nowS: nowS() }),
    subjectOf: subjectOfNextRun,
    keyOf: ({ videoId }) => videoId,
    begin: beginRun,
    start: (run) => () => work(run),
  })
}

async function work(run: VideoChunk): Promise<void> {
  say(`took ${run.firstSegment}`)
  if (mode === 'waits') await once(input, 'line')
  else await turn()
  const published = await write(async (tx) => {
    if (!(await isCurrentRun(tx, run))) return false
    await sql`insert into published values (${run.firstSegment}, ${run.attempt})`.execute(tx)
    return endRun(tx, run, 'done')
  })
  say(`${published ? 'published' : 'refused'} ${run.firstSegment}`)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
