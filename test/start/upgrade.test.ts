import { expect, test } from 'vitest'
import { makeSmallVideo } from '../browser/videos.ts'
import { startReelgate } from '../in-process.ts'
import { startReelgate as startProcess } from '../reelgate.ts'
import { changeRows, readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'

/** What the versions after 0.2.0 added to its tables. */
const ADDED_SINCE = [
  'drop index file_damaged',
  'alter table file drop column damaged',
  'drop index chunk_open',
  'drop index chunk_by_age',
  'drop index segment_repaired',
  'alter table segment drop column repairs',
  'alter table video drop column added_by',
  'alter table account drop column storage_limit_bytes',
  'drop table storage_day',
  'drop index video_by_title',
  'drop index video_by_upload_time',
  'drop index video_by_length',
  'drop index video_by_size',
  'drop index redeem_attempt_refused',
  'alter table redeem_attempt drop column account_id',
  'drop index audit_event_of_subject',
  'alter table account drop column alerts_seen_id',
  'drop index video_usage_named',
  'drop trigger video_restored',
  'drop table trashed_video',
  'alter table account drop column deletes_to_trash',
  'drop table mail',
  'drop table sign_in_link',
  'drop table sign_in',
  'drop table passkey',
  'drop table console_user',
  'alter table account drop column otp_defaults',
  'alter table account drop column otp_defaults_removable',
  'alter table video drop column otp_defaults',
  `create table watch_position (account_id text not null, user_id text not null, video_id text not null, position_s real not null,
    saved_at_s integer not null, primary key (account_id, user_id, video_id)) without rowid`,
  'create index watch_position_of_video on watch_position (video_id)',
  'create index watch_position_age on watch_position (saved_at_s)',
  `insert into watch_position select account_id, 'ann', id, 25.5, upload_time_s from video`,
  'drop table viewer',
  'alter table otp drop column viewer',
  'drop table viewing',
  'drop table viewing_day',
  'alter table playback_session drop column key_windows',
  'drop table alert',
  'drop table key_budget',
  'drop table server_key',
  'drop index playback_session_of_viewer',
  'alter table playback_session drop column server_key_id',
  "delete from kysely_migration where name > '0001-tables'",
]

test('F-37: an installation of 0.2.0 is upgraded by a start: its videos play, an OTP that it issued opens one, and its viewers resume', async () => {
  const reelgate = await startReelgate({ video: await makeSmallVideo() })
  const otp = await reelgate.owner.issueOtp(reelgate.videoId, { userId: 'ann' })
  const before = reelgate.newViewer()
  await before.redeem(await reelgate.owner.issueOtp(reelgate.videoId))
  await reelgate.stop()
  for (const statement of ADDED_SINCE) changeRows(reelgate, statement)

  await reelgate.restart()
  const viewer = reelgate.newViewer()
  expect(await viewer.redeem(otp)).toMatchObject({ playing: true, body: { resumeAtS: 25 } })
  expect((await viewer.key(0)).status).toBe(200)
  await before.openPage()
  expect((await before.key(0)).status).toBe(403) // its proofs were of another kind: its viewer reloads the owner's page
})

test('F-37: an upgrade backs up the rows first, and says how to go back: by that command the installation is as it was before', async () => {
  const reelgate = await startProcess({ database: 'sqlite', video: await makeVideo() })
  const { videoId } = reelgate
  await reelgate.stop()
  for (const statement of ADDED_SINCE) changeRows(reelgate, statement)
  await reelgate.restart()
  const [, ...command] = /npx reelgate (restore \S+before-upgrade --rows --at [\w.-]+)"/.exec(reelgate.output()) ?? []
  const args = command.join(' ').split(' ')
  expect(args).toHaveLength(5)
  await reelgate.owner.call('POST', '/api/videos/tags', { body: { videos: [videoId], tags: ['after'] } })
  expect((await reelgate.cli(...args)).stderr).toMatch(/A server runs on/)
  await reelgate.stop()

  expect(await reelgate.cli(...args)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Restored the rows of .*: 1 videos/),
  })
  // The tables are those of the version before, for that version to be installed.
  expect(readRows(reelgate, 'select name from kysely_migration')).toEqual([{ name: '0001-tables' }])
  await reelgate.restart()
  expect((await reelgate.owner.list()).rows).toMatchObject([{ id: videoId, tags: [] }])
  expect(reelgate.output()).not.toMatch(/webhook: held/)
  const viewer = reelgate.newViewer()
  await viewer.redeem(await reelgate.owner.issueOtp(videoId))
  expect((await viewer.key(0)).status).toBe(200)
})
