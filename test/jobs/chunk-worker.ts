// A minimal worker: claims chunks of the given database one after the other, and publishes each as a row.
// In mode `waits` it publishes when it reads a line.
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setImmediate as turn } from 'node:timers/promises'
import { sql } from 'kysely'
import { pino } from 'pino'
import { createPostgresCommitter } from '../../src/db/postgres/commit.ts'
import { openConnection } from '../../src/db/postgres/connection.ts'
import { createPostgresKysely } from '../../src/db/postgres/dialect.ts'
import { toPublicError } from '../../src/db/postgres/failures.ts'
import { createGroupCommitter } from '../../src/db/write.ts'
import { type ChunkJob, claimChunk } from '../../src/encode/chunk-queue.ts'
import { endRun, isCurrentRun, type VideoChunk } from '../../src/encode/chunk-store.ts'
import { openBossQueue } from '../../src/jobs/boss.ts'
import { startDispatcher } from '../../src/jobs/dispatcher.ts'

const [url = '', mode] = process.argv.slice(2)
const log = pino({ level: 'fatal' }, process.stderr)
const connection = openConnection({ url, settings: { default_transaction_isolation: 'serializable' } })
const write = createGroupCommitter(
  createPostgresCommitter(createPostgresKysely(connection.execute, connection.close), connection, toPublicError),
)
const queue = await openBossQueue<ChunkJob>({ url, name: 'chunk', log })
const input = createInterface(process.stdin)

const { wake } = startDispatcher({ slots: 0, claim, log })
queue.watch(wake)
wake()

async function claim() {
  const claimed = await claimChunk(write, queue, () => ({ upToPriority: undefined, except: [] }))
  if (!claimed) return undefined
  const { run, hold } = claimed
  return { key: run.videoId, run: () => hold(() => work(run)) }
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
