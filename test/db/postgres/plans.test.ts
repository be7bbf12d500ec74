import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import * as acts from '../../../src/accounts/act-store.ts'
import { findKeyHolder } from '../../../src/accounts/api-key-store.ts'
import * as answers from '../../../src/accounts/idempotency-store.ts'
import * as files from '../../../src/catalogue/file-store.ts'
import * as folders from '../../../src/catalogue/folder-store.ts'
import * as posters from '../../../src/catalogue/poster-store.ts'
import type { VideoFilter } from '../../../src/catalogue/search-store.ts'
import * as tags from '../../../src/catalogue/tag-store.ts'
import { findVideos } from '../../../src/catalogue/video.ts'
import * as videos from '../../../src/catalogue/video-store.ts'
import type { Db } from '../../../src/db/database.ts'
import * as chunks from '../../../src/encode/chunk-store.ts'
import * as films from '../../../src/encode/film-store.ts'
import * as mp4s from '../../../src/files/mp4-store.ts'
import * as deliveries from '../../../src/hooks/delivery-store.ts'
import * as outbox from '../../../src/hooks/outbox-store.ts'
import * as imports from '../../../src/ingest/import-store.ts'
import * as policies from '../../../src/ingest/upload-policy-store.ts'
import * as bans from '../../../src/limits/ban-store.ts'
import * as otps from '../../../src/playback/otp-store.ts'
import * as sessions from '../../../src/playback/session-store.ts'
import * as slots from '../../../src/playback/stream-slot-store.ts'
import * as usage from '../../../src/usage/usage-store.ts'
import { asSuperuser } from '../../postgres.ts'
import { bareOtp } from '../bare-rows.ts'
import { openOwnPostgres } from './database.ts'
import { connectExplaining, type Explained, type Step, stepsOf } from './explained.ts'
import { ACCOUNTS, fillLarge, NOW_S } from './large.ts'

// How PostgreSQL carries out what the stores ask, in an installation of 20 000 videos: by an index. Pages of 8 kB that are looked at
// tell of each way to walk a table, of a sequential scan as of an index that is read from end to end.

/** What is asked, how many pages may be looked at (a few times what it needs: rows that were changed before leave versions behind), and how it is asked. */
type Row = readonly [what: string, mostPages: number, ask: (db: Db) => Promise<unknown>]

const md5 = (n: number) => createHash('md5').update(`${n}`).digest('hex')
const sha = (n: number) => createHash('sha256').update(`${n}`).digest()
const { large, small } = ACCOUNTS
const V = md5(7)
const FILM = { videoId: V, generation: 1 }
const list =
  (filter: VideoFilter, page = 1, accountId = large) =>
  (db: Db) =>
    findVideos({ db, slowDb: db }, accountId, filter, { page, limit: 20 })

/** Asked all the time: also before PostgreSQL knows anything about the tables. */
const OFTEN: readonly Row[] = [
  ['whose an API key is', 60, (db) => findKeyHolder(db, sha(7))],
  ['the first page of a list', 400, list({})],
  ['the same of a small account', 400, list({}, 1, small)],
  ['what follows a page', 400, (db) => findVideos({ db, slowDb: db } as never, large, {}, { below: 9000, limit: 20 })],
  ['a page of a tag', 400, list({ tags: ['all'] })],
  ['a page of a rare tag', 400, list({ tags: ['rare 2'] })],
  ['a page of a folder', 400, list({ folderId: 'f1' })],
  ['a page far behind', 1100, list({}, 400)],
  ['one video', 30, (db) => videos.findVideo(db, large, V)],
  ['one video of a small account', 30, (db) => videos.findVideo(db, small, md5(200))],
  ['a change of a video', 250, (db) => videos.updateVideo(db, large, V, { title: 'New' })],
  ['a new video', 250, (db) => videos.insertVideo(db, large, { id: 'x', title: 'X', uploadTimeS: 1 })],
  ['a video that moves', 300, (db) => videos.updateVideo(db, large, V, { folderId: 'f9' })],
  ['which videos there are', 30, (db) => videos.listPresent(db, large, [V, md5(9)])],
  ['where videos are', 30, (db) => videos.positionsOf(db, large, [V, md5(9)])],
  ['tags for a video', 250, (db) => tags.insertTags(db, large, [7], ['new', 'all'])],
  ['a video without its tags', 300, (db) => tags.removeTags(db, large, [7])],
  ['a folder', 20, (db) => folders.findFolder(db, large, 'f3')],
  ['folders in a folder', 30, (db) => folders.listFoldersIn(db, large, 'f3')],
  ['a new folder', 300, (db) => folders.insertFolder(db, large, { id: 'n', parentId: 'f3', name: 'x', createdAtS: 1 })],
  ['posters', 30, (db) => posters.postersOf(db, [V, md5(8)])],
  ['a public poster', 30, (db) => posters.findPublicPoster(db, 'token7')],
  ['files of a video', 30, (db) => files.filesOf(db, V)],
  ['a file', 30, (db) => files.findFileAnywhere(db, 30_000)],
  ['captions', 30, (db) => files.captionsOf(db, V)],
  ['a new OTP', 120, (db) => otps.insertOtp(db, bareOtp({ hash: sha(0), accountId: large, apiKeyId: md5(7), videoId: V }))],
  ['an OTP', 60, (db) => otps.findOtp(db, sha(7))],
  ['an OTP that is spent', 120, (db) => otps.spendOtp(db, sha(7), NOW_S)],
  ['an OTP that comes again', 120, (db) => otps.noteReuse(db, sha(7), NOW_S)],
  ['a session', 20, (db) => sessions.findSession(db, V)],
  ['the session of an OTP', 20, (db) => sessions.findSessionOfOtp(db, sha(7))],
  ['when a session was seen', 80, (db) => sessions.saveLastSeen(db, { id: V, lastSeenAtS: 1, leftAtS: null })],
  ['a view', 80, (db) => sessions.markViewed(db, { id: V, viewedAtS: 1 })],
  ['the end of a session', 120, (db) => sessions.endSession(db, V, 1, 'x')],
  ['the end of sessions on a video', 60, (db) => sessions.endSessionsOfVideos(db, [V], 1, 'x')],
  [
    'an attempt to redeem',
    100,
    (db) =>
      sessions.recordAttempt(db, {
        otpHash: sha(7),
        atS: 1,
        keyId: sha(1),
        address: '',
        userAgent: '',
        embeddingHost: '',
        outcome: 'x',
      }),
  ],
  ['who opened a session', 20, (db) => sessions.findOpening(db, sha(7))],
  [
    'a stream slot',
    100,
    (db) => slots.takeSlot(db, { sessionId: V, accountId: large, userId: 'viewer 5', limit: 3 }, NOW_S, NOW_S + 18),
  ],
  ['the keys of a film', 20, (db) => films.findFilm(db, V, 1)],
  ['a segment', 20, (db) => films.findSegment(db, FILM, 1, 0)],
  ['published segments', 20, (db) => films.listPublished(db, FILM, 1, 0)],
  ['how many are published', 20, (db) => films.countSegments(db, FILM)],
  ['a film to be planned', 20, (db) => films.findUnplanned(db, [])],
  ['whether a chunk waits', 20, (db) => chunks.isAnyWaiting(db)],
  [
    'a run of a chunk',
    100,
    (db) => chunks.beginRun(db, { videoId: md5(500), generation: 1, kind: 'picture', firstSegment: 0 }, undefined),
  ],
  ['a hook that is due', 20, (db) => deliveries.findDueHook(db, NOW_S, { hookIds: [], accountIds: [], onlyHealthy: false })],
  ['what a hook sends next', 120, (db) => deliveries.claimDelivery(db, 'h1', { nowS: NOW_S, endsAtS: NOW_S + 20 })],
  ['the numbers of events', 600, (db) => outbox.takeSequences(db, 'video:ready', [V])],
  ['what an event tells', 30, (db) => outbox.findEventVideos(db, [V])],
  [
    'accounts with imports that are due',
    30,
    (db) => imports.listAccountsWithImports(db, NOW_S, { videoIds: [], accountIds: [], hosts: ['host-1'] }),
  ],
  [
    'an import that is due',
    20,
    (db) => imports.findDueImport(db, large, NOW_S, { videoIds: [], accountIds: [], hosts: ['host-1'] }),
  ],
  ['an upload policy', 30, (db) => policies.findPolicy(db, 'orig/7')],
  ['strikes', 30, (db) => bans.countStrikes(db, 'key', md5(7), NOW_S - 60)],
  ['accounts that want an MP4', 20, (db) => mp4s.listAccountsWithMp4s(db, [])],
  ['an MP4 to be made', 20, (db) => mp4s.findUnmadeMp4(db, large, [])],
]

/** Asked now and then: well from the first ANALYZE on, which autovacuum makes within a minute. */
const NOW_AND_THEN: readonly Row[] = [
  ['two tags', 700, list({ tags: ['all', 'rare 2'] })],
  ['a folder and a tag', 900, list({ folderId: 'f1', tags: ['all'] })],
  ['a rare text', 900, list({ text: '1234' })],
  ['a text of a small account', 900, list({ text: '1200' }, 1, small)],
  ['a frequent text', 900, list({ text: 'lecture' })],
  ['levels of folders', 180, (db) => folders.countLevelsBelow(db, large, 'f3')],
  ['a folder that moves', 250, (db) => folders.updateFolder(db, large, 'f30', { parentId: 'f3' })],
  ['a folder that goes', 250, (db) => folders.removeFolder(db, large, 'f1999')],
  ['what leaves a folder that goes', 1300, (db) => folders.moveSomeContents(db, large, 'f1', 'root', 20)],
  ['folders of a name', 60, (db) => folders.listFoldersNamed(db, large, { name: 'folder 12', isWhole: false }, 20)],
  ['a deleted video', 450, (db) => videos.tombstoneVideos(db, large, [V], 1)],
  ['its keys', 250, (db) => videos.forgetKeys(db, [V])],
  ['its rows', 400, (db) => videos.removeTombstone(db, V)],
  ['all that are deleted', 20, (db) => videos.listTombstones(db)],
  ['a film whose chunks are all done', 250, (db) => films.findUnfinished(db, [])],
  ['the chunk that is needed first', 400, (db) => chunks.findNextChunk(db, { upToPriority: undefined, except: [V] })],
  ['deliveries of a hook', 40, (db) => deliveries.listDeliveries(db, 'h1', { limit: 20, offset: 0 })],
  ['hooks with something half done', 20, (db) => deliveries.listHalfDone(db)],
  ['abandoned uploads', 250, (db) => policies.listAbandoned(db, 5_000, 20)],
  ['old OTPs', 500, (db) => otps.removeOldOtps(db, NOW_S - 19_000, 20)],
  ['old sessions', 500, (db) => sessions.removeOldSessions(db, NOW_S - 19_000, 20)],
  ['old answers', 150, (db) => answers.removeAnswersBefore(db, NOW_S - 4_000, 20)],
  ['old acts', 150, (db) => acts.removeActsBefore(db, 500, 20)],
  ['old usage', 150, (db) => usage.removeUsageBefore(db, '2026-02-01', 20)],
  ['old deliveries', 200, (db) => deliveries.removeOldDeliveries(db, 100, 20)],
]

/** These have a row for each owner, or each of their endpoints. */
const SMALL = new Set(['account', 'hook'])
/** A connection plans a statement anew for each of its first five values; from then on it may keep one plan for all. */
const TIMES = 6

test('what is asked for is found by an index, before the first ANALYZE as after it', async () => {
  const { url } = await openOwnPostgres()
  const { db, explain } = await connectExplaining(await asSuperuser(url))
  await fillLarge(db)
  for (const row of OFTEN) await check('before', row)
  await sql`vacuum analyze`.execute(db)
  for (const row of [...OFTEN, ...NOW_AND_THEN]) await check('after', row)

  const walk = (await explain(list({}, 400))).flatMap(({ Plan }) => (isOf(Plan, 'video') ? [scansOf(Plan)] : []))
  expect(walk, 'a deep page walks an index, then reads its rows').toEqual([
    ['Index Only Scan video_in_order'],
    ['Index Scan video_pkey'],
  ])
  const [search] = (await explain(list({ text: 'lecture 1' }))).filter(({ Plan }) => isOf(Plan, 'video_text'))
  expect(search?.['Query Text']).toContain('as materialized')
  const found = search && stepsOf(search.Plan).find((step) => step['Subplan Name'] === 'CTE found')
  expect(found && scansOf(found)).toContain('Bitmap Index Scan video_text_trigrams')

  async function check(when: string, [what, mostPages, ask]: Row) {
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

const pagesOf = (done: readonly Explained[]) =>
  done.reduce((sum, { Plan }) => sum + Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks'], 0)

/** What is read of tables, with what it is read by. */
function scansOf(plan: Step): string[] {
  return stepsOf(plan).flatMap((step) => {
    const read = step['Index Name'] ?? step['Relation Name']
    return step['Node Type'].endsWith('Scan') && read ? [`${step['Node Type']} ${read}`] : []
  })
}

function isOf(plan: Step, table: string): boolean {
  return stepsOf(plan).some((step) => step['Relation Name'] === table)
}
