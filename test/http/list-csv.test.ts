import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { changeRows, readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { RULES } from './route-rules.ts'

// Every list of the API as a file for spreadsheets.

let reelgate: Reelgate & { videoId: string; remove(): Promise<void> }
beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeVideo(), title: '=HYPERLINK("http://x","y"), and more' })
})
afterAll(() => reelgate?.remove())

const get = (path: string, owner = reelgate.owner) => owner.call('GET', path)

test('U36: a list with format=csv is a file with a column for each field of a row, and no cell is a formula', async () => {
  const response = await get('/api/videos?format=csv')
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8')
  expect(response.headers.get('content-disposition')).toBe('attachment; filename="videos.csv"')
  const [heads = '', row = ''] = (await response.text()).split('\r\n')
  expect(heads).toMatch(/^id,title,description,/)
  expect(row.startsWith(`${reelgate.videoId},"'=HYPERLINK(""http://x"",""y""), and more",`)).toBe(true)
})

test('U36: each list of the API and of the console is there as CSV, also while it is empty', async () => {
  const document = (await (await fetch(`${reelgate.url}/docs/api/openapi.json`)).json()) as {
    paths: Record<string, { get?: { parameters: { name: string; schema: unknown }[] } }>
  }
  const lists = Object.entries(document.paths)
    .filter(([, { get: read }]) => read?.parameters.some(({ name, schema }) => name === 'format' && offersCsv(schema)))
    .map(([path]) => path)
  expect(lists).toEqual(
    expect.arrayContaining([
      '/api/videos',
      '/api/sessions',
      '/api/refusals',
      '/api/alerts',
      '/api/audit-log',
      '/api/viewers/{userId}',
      '/api/videos/{id}/viewers',
      '/api/videos/{id}/history',
      '/api/videos/{id}/files',
      '/api/queue',
      '/api/keys',
      '/api/hooks',
      '/api/bans',
      '/api/trash',
      '/console/api/users',
      '/console/api/accounts',
      '/console/api/sign-ins',
      '/console/api/passkeys',
      '/console/api/system/checks',
      '/console/api/system/servers',
      '/console/api/system/workers',
    ]),
  )
  for (const path of lists.filter((one) => one.startsWith('/api/') && !/\{uuid|\{platformId/.test(one))) {
    const rule = RULES[`GET ${path.replace(/\{(\w+)\}/g, ':$1')}`]
    const url = (rule?.path ?? path)
      .replace('VIDEO', reelgate.videoId)
      .replace('{id}', reelgate.videoId)
      .replace('{userId}', 'ann')
    const response = await get(`${url}${url.includes('?') ? '&' : '?'}format=csv`)
    expect.soft([path, response.status, response.headers.get('content-type')]).toEqual([path, 200, 'text/csv; charset=utf-8'])
    expect.soft((await response.text()).split('\r\n')[0], path).toMatch(/^[a-zA-Z_]+(,[a-zA-Z0-9_.]+)*$/)
  }
})

/** Others are WebVTT. */
function offersCsv(schema: unknown): boolean {
  return JSON.stringify(schema).includes('"csv"')
}

test('U36: a file has the rows of all pages, and a page is still a page', async () => {
  const owner = await reelgate.newOwner('With a long log')
  const [account] = readRows<{ id: string }>(reelgate, `select id from account where name = 'With a long log'`)
  const insert = `with recursive n (i) as (select 1 union all select i + 1 from n where i < 2500)
    insert into audit_event (at_s, account_id, actor, kind, subject, details) select i, ?, 'server', 'video:edited', 'v' || i, null from n`
  changeRows(reelgate, insert, account?.id ?? '')
  const lines = (await (await get('/api/audit-log?format=csv', owner)).text()).trim().split('\r\n')
  expect(lines[0]).toMatch(/^id,at,kind,.*subject,.*actor\.type,actor\.id,actor\.name/)
  expect(new Set(lines).size).toBeGreaterThanOrEqual(2501)
  const page = await get('/api/audit-log?format=csv&limit=10', owner)
  expect((await page.text()).trim().split('\r\n')).toHaveLength(11)
  expect(page.headers.get('link')).toMatch(/\/api\/audit-log\?format=csv&limit=10&after=[\w-]+>; rel="next"/)
  const json = (await (await get('/api/audit-log', owner)).json()) as { rows: unknown[] }
  expect(json.rows).toHaveLength(100)
})

test('U36: of two files that are asked for at the same time one is made, and the other can be asked for again', async () => {
  const answers = await Promise.all(Array.from({ length: 4 }, () => get('/api/videos?format=csv')))
  const statuses = answers.map(({ status }) => status)
  expect(statuses).toContain(200)
  expect(new Set(statuses.filter((status) => status !== 200))).toEqual(new Set(statuses.includes(429) ? [429] : []))
  expect((await get('/api/videos?format=csv')).status).toBe(200)
})

test('a refused list is refused in JSON, whatever its format', async () => {
  const response = await get(`/api/videos/${'0'.repeat(32)}/viewers?format=csv`)
  expect(response.status).toBe(404)
  expect(await response.json()).toMatchObject({ code: 'not-found' })
})
