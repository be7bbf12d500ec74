// A minimal worker: claims chunks of the given database one after the other, and publishes each as a row.
// In mode `waits` it publishes when it reads a line; in mode `encodes` it renews its claim then, and works until it is stopped.
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setImmediate as turn } from 'node:timers/promises'
import { sql } from 'kysely'
import { pino } from 'pino'
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
import { createSignals } from '../../src/signals/signals.ts'
import { connectSecondServer } from '../db/second-server.ts'

const [url = '', mode] = process.argv.slice(2)
const log = pino({ level: 'fatal' }, process.stderr)
const { db, write } = connectSecondServer(url)
const nowS = () => Math.floor(Date.now() / 1000)
const server = `worker ${process.pid}`
const signals = createSignals(write)
const claims = await openClaims({ db, write, nowS, server, signals, isOnlyServer: false, release: { chunk: releaseRun }, log })
const input = createInterface(process.stdin)

startDispatcher({ slots: 0, claim, pollIntervalMs: 1_000, log }).wake()

async function claim() {
  return claims.claimNext({
    kind: 'chunk',
    find: () => findNextChunk(db, { nowS: nowS(), candidates: claims.candidates }),
    subjectOf: subjectOfNextRun,
    begin: beginRun,
    start: (run) => (_, signal) => work(run, signal),
  })
}

async function work(run: VideoChunk, signal: AbortSignal): Promise<void> {
  say(`took ${run.firstSegment}`)
  if (mode === 'encodes') {
    input.on('line', () => void claims.maintain())
    await once(signal, 'abort')
    return say(`stopped ${run.firstSegment}`)
  }
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
