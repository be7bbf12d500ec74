import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { REQUEST_METRICS, STATE_METRICS } from '../../src/http/metrics/metrics.ts'
import { type Reelgate, startReelgate } from '../reelgate.ts'
import { changeRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'

test('metrics say what the server does, and nothing about videos or viewers', async () => {
  const reelgate = await startReelgate({ video: await makeVideo(), env: { REELGATE_METRICS_PORT: '0' } })
  const { owner, videoId } = reelgate
  const before = await readMetrics(reelgate)
  expect(before.get('reelgate_database_up')).toBe(1)
  expect(before.has('reelgate_backup_age_seconds')).toBe(false)
  expect(before.get('reelgate_disk_free_bytes')).toBeGreaterThan(0)
  expect(before.get('reelgate_chunks{state="pending"}')).toBe(0)

  const viewer = reelgate.newViewer()
  await viewer.redeem(await owner.issueOtp(videoId, { userId: 'ann-of-class-3' }))
  expect((await viewer.key(0)).status).toBe(200)
  await owner.readyVideo(await makeVideo({ seconds: 1 }))
  changeRows(reelgate, `insert into setting (name, value) values ('last-backup', '{"name":"x","atS":1000}')`)

  const after = await readMetrics(reelgate)
  expect(after.get('reelgate_keys_released_total')).toBe(1)
  expect(after.get('reelgate_playback_sessions')).toBe(1)
  expect(after.get('reelgate_segments_published_total')).toBeGreaterThan(0)
  expect([...after.keys()].find((name) => /route="\/api\/videos\/:\w+\/otp",status="200"/.test(name))).toBeDefined()
  expect(after.get('reelgate_backup_age_seconds')).toBeGreaterThan(1e9)
  const names = [...after.keys()].join('\n')
  for (const secret of [videoId, 'ann-of', owner.apiKey]) expect(names).not.toContain(secret)
})

test('L05: metrics have a port of their own, only where it is asked for; the port of the viewers has none', async () => {
  const reelgate = await startReelgate({ env: { REELGATE_METRICS_PORT: '0' } })
  expect((await fetch(`${reelgate.url}/metrics`)).status).toBe(404)
  const own = new URL(metricsUrl(reelgate))
  expect(own.hostname).toBe('127.0.0.1')
  expect((await fetch(new URL('/api/videos', own))).status).toBe(404)
  expect((await fetch(own, { method: 'POST' })).status).toBe(404)
  expect((await startReelgate()).output()).not.toContain('metrics: served')
})

test('docs/operations.md has every metric', async () => {
  const page = await readFile(join(import.meta.dirname, '../../docs/operations.md'), 'utf8')
  const metrics = Object.entries({ ...STATE_METRICS, ...REQUEST_METRICS })
  const rows = metrics.map(([name, { type, help }]) => `| \`${name}\` | ${type} | ${help} |`)
  expect(page).toContain(rows.join('\n'))
})

function metricsUrl(reelgate: Reelgate): string {
  return /"url":"(http:[^"]+\/metrics)","msg":"metrics: served"/.exec(reelgate.output())?.[1] ?? ''
}

/** The values by their names with labels. */
async function readMetrics(reelgate: Reelgate): Promise<Map<string, number>> {
  const response = await fetch(metricsUrl(reelgate))
  expect(response.status).toBe(200)
  const lines = (await response.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]))
}
