import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { asSuperuser } from '../../postgres.ts'
import { ALWAYS, type Call, list, ONCE_ANALYZED, SMALL } from '../calls.ts'
import { fillLarge } from '../large.ts'
import { openOwnPostgres } from './database.ts'
import { connectExplaining, type Explained, flattenSteps, type Step } from './explained.ts'

// How PostgreSQL carries out what the stores ask, in an installation of 20 000 videos: by an index. Pages of 8 kB that are looked at
// tell of each way to walk a table, of a sequential scan as of an index that is read from end to end.

/** A connection plans a prepared statement for each of its first five executions; then it may use one generic plan. */
const TIMES = 6

test('queries use an index, before and after the first ANALYZE', async () => {
  const { url } = await openOwnPostgres()
  const { db, explain } = await connectExplaining(await asSuperuser(url))
  await fillLarge(db)
  for (const call of ALWAYS) await check('before', call)
  await sql`vacuum analyze`.execute(db)
  for (const call of [...ALWAYS, ...ONCE_ANALYZED]) await check('after', call)

  const walk = (await explain(list({}, 400))).flatMap(({ Plan }) => (isOf(Plan, 'video') ? [scansOf(Plan)] : []))
  expect(walk, 'a deep page walks an index, then reads its rows').toEqual([
    ['Index Only Scan video_in_order'],
    ['Index Scan video_pkey'],
  ])
  const [search] = (await explain(list({ text: 'lecture 1' }))).filter(({ Plan }) => isOf(Plan, 'video_text'))
  expect(search?.['Query Text']).toContain('as materialized')
  const found = search && flattenSteps(search.Plan).find((step) => step['Subplan Name'] === 'CTE found')
  expect(found && scansOf(found)).toContain('Bitmap Index Scan video_text_trigrams')

  async function check(when: string, [what, mostPages, ask]: Call) {
    for (let time = 1; time <= TIMES; time++) {
      const done = await explain(ask)
      const scans = done.flatMap(({ Plan }) => scansOf(Plan))
      expect.soft(done.length, what).toBeGreaterThan(0)
      expect.soft(pagesOf(done), `${when} ANALYZE: ${what}, pages by ${scans}`).toBeLessThanOrEqual(mostPages)
      const whole = scans.filter((scan) => scan.startsWith('Seq Scan ') && !SMALL.has(scan.slice('Seq Scan '.length)))
      expect.soft(whole, `${when} ANALYZE: ${what}`).toEqual([])
    }
  }
})

/**
 * What was read to find rows. Storing one now and then tidies an index up as well, hundreds of pages of it: how often depends on what
 * else runs, not on the plan.
 */
const pagesOf = (done: readonly Explained[]) =>
  done
    .flatMap(({ Plan }) => (Plan['Node Type'] === 'ModifyTable' ? (Plan.Plans ?? []) : [Plan]))
    .reduce((sum, step) => sum + step['Shared Hit Blocks'] + step['Shared Read Blocks'], 0)

/** What is read of tables, with what it is read by. */
function scansOf(plan: Step): string[] {
  return flattenSteps(plan).flatMap((step) => {
    const read = step['Index Name'] ?? step['Relation Name']
    return step['Node Type'].endsWith('Scan') && read ? [`${step['Node Type']} ${read}`] : []
  })
}

function isOf(plan: Step, table: string): boolean {
  return flattenSteps(plan).some((step) => step['Relation Name'] === table)
}
