import { percentile, timeMs } from './interleaved.ts'
import { formatRequest, measureFlooded } from './load.ts'
import type { Row } from './row.ts'

const REQUESTS = 500
const KIB = 1024

export const HEALTH_ROWS: readonly Row[] = [
  {
    name: 'healthz-flood',
    what: '/healthz while another client posts bodies that are slow to parse, without a key, on 8 connections: 99 of 100; peer: without',
    unit: 'ms',
    aim: { ratioAtMost: 3 },
    measure: (scope) =>
      measureFlooded(
        scope,
        FLOOD,
        async ({ url }) =>
          () =>
            measureHealthP99Ms(url),
      ),
  },
]

/** Each from an address of its own, which an address may not ask so often. */
async function measureHealthP99Ms(url: string): Promise<number> {
  const timesMs: number[] = []
  for (let n = 0; n < REQUESTS; n++) {
    const headers = { 'X-Forwarded-For': `203.0.${n >> 8}.${n & 255}` }
    timesMs.push(
      await timeMs(async () => {
        const response = await fetch(`${url}/healthz`, { headers })
        await response.text()
        if (response.status !== 200) throw new Error(`healthz: ${response.status}`)
      }),
    )
  }
  return percentile(timesMs, 99)
}

const FORM = 'application/x-www-form-urlencoded'
const JSON_TYPE = 'application/json'

/** What expressions that backtrack, deep recursion and parsers of many parts are slow for. */
const FLOOD: readonly string[] = [
  post('/v2/otp', FORM, `%7b${' '.repeat(64 * KIB)}x`),
  post('/v2/tags/add', FORM, 'a=1&'.repeat(64 * KIB)),
  post('/v2/videos', JSON_TYPE, `{"a":"${'\\"'.repeat(120 * KIB)}`),
  post('/v2/files', JSON_TYPE, '['.repeat(250 * KIB)),
  post('/v2/uploadPolicy', 'multipart/form-data; boundary=b', '--b\r\n'.repeat(50 * KIB)),
  post('/console/api/sign-in', JSON_TYPE, `{"name":"${'\\"'.repeat(32 * KIB)}`),
  post('/api/videos', JSON_TYPE, '{"a":'.repeat(50 * KIB)),
]

function post(path: string, type: string, body: string): string {
  return formatRequest('POST', path, { 'X-Forwarded-For': '198.51.100.1', 'Content-Type': type, 'Reelgate-Console': '1' }, body)
}
