import { cp, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ensureFilled } from '../../../bench/fill.ts'
import { CACHE } from '../../../bench/row.ts'
import { makeLocation } from '../../installation-folder.ts'
import { changeRows, readRows } from '../../rows.ts'
import { rounds } from '../../seeded-random.ts'
import { hashDatabaseFiles, migrateSuccessfully, newTarget } from './installation.ts'

const VIDEOS = rounds(2_000, 100_000)

test('thousands of videos with tags, folders, files, OTPs, sessions, bans and webhooks are moved completely', async () => {
  await mkdir(CACHE, { recursive: true })
  const filled = await ensureFilled(VIDEOS)
  const location = await makeLocation({ database: 'sqlite' })
  onTestFinished(() => location.remove())
  await cp(join(filled, 'data'), location.dataDir, { recursive: true })
  await cp(join(filled, 'data.key'), location.masterKeyFile)
  for (const statement of MORE) changeRows(location, statement)
  const [files, url] = [hashDatabaseFiles(location), await newTarget()]

  const beganMs = performance.now()
  const { tables } = await migrateSuccessfully(location.env, url)
  const rows = tables.reduce((sum, table) => sum + table.rows, 0)
  process.stderr.write(`moved ${rows} rows in ${Math.round((performance.now() - beganMs) / 1000)} s\n`)
  expect(hashDatabaseFiles(location)).toEqual(files)
  for (const [table, least] of Object.entries(LEAST)) {
    const count = `select count(*) as count from ${table}`
    expect([table, readRows({ dataDir: '', databaseUrl: url }, count)]).toEqual([table, readRows(location, count)])
    expect(tables.find((each) => each.table === table)?.rows).toBeGreaterThanOrEqual(least * VIDEOS)
  }
}, 3_600_000)

/** For each table, how many rows a video has at least. */
const LEAST = { video: 1, video_tag: 1, file: 2, folder: 0.1, otp: 1, playback_session: 0.5, ban: 0.01, delivery: 1 }

/** From the videos that are there: an OTP for each, every second one spent, bans, a webhook that received each. */
const MORE = [
  `insert into otp (hash, account_id, api_key_id, video_id, user_id, watermarks, issued_at_s, expires_at_s, spent_at_s)
    select randomblob(32), account_id, 'key', id, 'viewer ' || (position % 1000), '[]', upload_time_s, upload_time_s + 300,
      case when position % 2 = 0 then upload_time_s + 60 end from video`,
  `insert into playback_session (id, otp_hash, account_id, video_id, generation, user_id, public_key, key_id, pages, watermarks,
      started_at_s, ends_at_s, last_seen_at_s)
    select lower(hex(randomblob(16))), hash, account_id, video_id, 1, user_id, randomblob(65), randomblob(16), '[]', watermarks,
      spent_at_s, spent_at_s + 21600, spent_at_s + 120 from otp where spent_at_s is not null`,
  `insert into ban (scope, subject, budget, began_at_s, ends_at_s)
    select 'ip', '2001:db8::' || position, 'reads', upload_time_s, upload_time_s + 1800 from video where position % 100 = 0`,
  `insert into webhook (id, account_id, url, wrapped_secret, created_at_s, last_sequence)
    select lower(hex(randomblob(16))), id, 'https://example.org/hook', randomblob(60), created_at_s, video_count from account`,
  `insert into delivery (webhook_id, sequence, event, body, time_ms, state, finished_at_s)
    select webhook.id, position, 'video:ready', '{"id":"' || video.id || '"}', upload_time_s * 1000, 'delivered', upload_time_s
    from video join webhook using (account_id)`,
]
