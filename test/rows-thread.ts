import { type MessagePort, parentPort } from 'node:worker_threads'
import pg from 'pg'

// The thread of rows.ts: a statement in, its rows out. A connection for each, so that none stands in the way of who copies,
// drops or stops the database.

export type Bound = string | number | bigint | Buffer | null

export type Question = {
  url: string
  sql: string
  values: Bound[]
  mayWrite: boolean
  answered: Int32Array
  port: MessagePort
}
export type Answer = { rows: Record<string, unknown>[]; changed: number } | { error: string }

/** What SQLite would give: numbers for whatever is one, 0 and 1 for conditions. */
const NUMBERS: readonly number[] = [pg.types.builtins.INT8, pg.types.builtins.NUMERIC]
for (const type of NUMBERS) pg.types.setTypeParser(type, Number)
pg.types.setTypeParser(pg.types.builtins.BOOL, (text) => (text === 't' ? 1 : 0))

parentPort?.on('message', async (question: Question) => {
  question.port.postMessage(await answer(question))
  Atomics.store(question.answered, 0, 1)
  Atomics.notify(question.answered, 0)
})

async function answer({ url, sql, values, mayWrite }: Question): Promise<Answer> {
  clearTimeout(timer)
  try {
    const client = await connectionTo(url, mayWrite)
    const results = [await client.query(numbered(sql), values)].flat() // of several statements there are several
    return { rows: results.at(-1)?.rows ?? [], changed: results.at(-1)?.rowCount ?? 0 }
  } catch (error) {
    return { error: String(error) }
  } finally {
    timer = setTimeout(forget, KEPT_MS)
  }
}

/** A copy of a database waits until its last connection is closed, but not for long. */
const KEPT_MS = 200

let kept: { client: pg.Client; name: string } | undefined
let timer: NodeJS.Timeout | undefined

function forget(): void {
  void kept?.client.end()
  kept = undefined
}

/** The last connection is kept for a moment: tests ask again and again. */
async function connectionTo(url: string, mayWrite: boolean): Promise<pg.Client> {
  const name = `${mayWrite} ${url}`
  if (kept?.name === name) return kept.client
  await kept?.client.end()
  kept = undefined
  const client = new pg.Client({ connectionString: url, options: `-c default_transaction_read_only=${!mayWrite}` })
  client.on('error', () => {
    if (kept?.client === client) forget() // PostgreSQL was stopped
  })
  await client.connect()
  kept = { client, name }
  return client
}

/** `$1` for the first `?` outside of quotes, and so on. */
function numbered(sql: string): string {
  let location = 0
  return sql.replaceAll(/'[^']*'|\?/g, (found) => (found === '?' ? `$${++location}` : found))
}
