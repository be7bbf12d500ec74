import { findKeyHolder } from '../../src/accounts/api-key-store.ts'
import * as alerts from '../../src/alerts/alert-store.ts'
import * as alertMails from '../../src/alerts/mail-store.ts'
import * as fileDamage from '../../src/assets/file-damage-store.ts'
import * as mp4s from '../../src/assets/mp4-store.ts'
import * as acts from '../../src/audit/audit-store.ts'
import * as audioSettings from '../../src/catalogue/audio-settings-store.ts'
import * as chapters from '../../src/catalogue/chapters-store.ts'
import * as dubs from '../../src/catalogue/dub-store.ts'
import * as embedded from '../../src/catalogue/embedded-captions-store.ts'
import * as files from '../../src/catalogue/file-store.ts'
import * as folders from '../../src/catalogue/folder-store.ts'
import * as ownFields from '../../src/catalogue/own-fields-store.ts'
import * as posters from '../../src/catalogue/poster-store.ts'
import type { VideoFilter, VideoOrder } from '../../src/catalogue/search-store.ts'
import * as storyboards from '../../src/catalogue/storyboard-store.ts'
import * as tags from '../../src/catalogue/tag-store.ts'
import { findSortedVideos, findVideos } from '../../src/catalogue/video.ts'
import * as videos from '../../src/catalogue/video-store.ts'
import type { Db } from '../../src/db/database.ts'
import type { ChunkKind } from '../../src/encode/chunk-plan.ts'
import * as chunks from '../../src/encode/chunk-store.ts'
import * as damage from '../../src/encode/damage-store.ts'
import * as generations from '../../src/encode/generation-store.ts'
import * as answers from '../../src/idempotency/idempotency-store.ts'
import * as imports from '../../src/ingest/import-store.ts'
import * as sources from '../../src/ingest/source-store.ts'
import * as policies from '../../src/ingest/upload-policy-store.ts'
import * as uploadTokens from '../../src/ingest/upload-token-store.ts'
import * as budgets from '../../src/playback/keys/key-budget-store.ts'
import * as otpDefaults from '../../src/playback/otp-defaults-store.ts'
import * as otps from '../../src/playback/otp-store.ts'
import * as sessions from '../../src/playback/sessions/session-store.ts'
import * as slots from '../../src/playback/sessions/stream-slot-store.ts'
import * as refusals from '../../src/playback/suspicion/refusal-store.ts'
import * as accountQueue from '../../src/progress/account-queue-store.ts'
import * as bans from '../../src/rate-limits/ban-store.ts'
import * as usage from '../../src/usage/usage-store.ts'
import * as passkeys from '../../src/users/passkey-store.ts'
import * as signIns from '../../src/users/sign-in-store.ts'
import * as subjectNames from '../../src/users/subject-name-store.ts'
import * as users from '../../src/users/user-store.ts'
import * as viewers from '../../src/viewers/viewer-store.ts'
import * as viewings from '../../src/viewers/viewing-store.ts'
import * as deliveries from '../../src/webhooks/delivery-store.ts'
import * as outbox from '../../src/webhooks/outbox-store.ts'
import * as webhooks from '../../src/webhooks/webhook-store.ts'
import { makeOtpRow } from './bare-rows.ts'
import { ACCOUNTS, hashOf, idOf, NOW_S } from './large.ts'

// What the stores are asked in the installation of large.ts, for the tests that read how each database goes about it.

/**
 * What is asked, how many pages PostgreSQL may look at (a few times what it needs: rows that were changed before leave versions
 * behind), and how it is asked.
 */
export type Call = readonly [what: string, mostPages: number, ask: (db: Db) => Promise<unknown>]

/**
 * These have a row for each owner, each of their endpoints, each ban, each person, each day and cause of alerts, or each piece of work
 * that is being done; all other tables are large.
 */
export const SMALL: ReadonlySet<string> = new Set([
  'account',
  'webhook',
  'ban',
  'mail',
  'console_user',
  'claim',
  'resumable_upload',
])

const { large, small } = ACCOUNTS
const V = idOf(7)
const VIDEO = { videoId: V, generation: 1 }
/** A page of the list. */
export const list =
  (filter: VideoFilter, page = 1, accountId = large) =>
  (db: Db) =>
    findVideos({ db, slowQueryDb: db }, accountId, filter, { page, limit: 20 })

/** The same in another order. */
const listBy = (order: VideoOrder) => (db: Db) =>
  findSortedVideos({ db, slowQueryDb: db }, large, { filter: {}, order }, { page: 1, limit: 20 })

const NEW_ALERT = {
  ...{ accountId: large, day: 7, cause: 'keys-drawn', subject: 'user x', atS: NOW_S },
  ...{ sessionId: null, userId: 'x', videoId: V, numbers: '{}' },
}
const encoderAmong = (kinds: readonly ChunkKind[]) => ({
  fingerprint: '',
  kinds,
  others: { video: ['another'], audio: ['another'] },
})
const USAGE_DAYS = ['2026-03-01', '2026-03-02']
const TODAY = Math.floor(NOW_S / 86_400)
const viewingOf = (n: number) => ({ accountId: large, userId: `viewer ${n}`, videoId: idOf(n) })
const budgetOf = (n: number) => ({ accountId: large, viewer: `user viewer ${n}`, videoId: idOf(n), sourceNumber: 1 })

/** Found well whatever PostgreSQL knows about the tables: what is asked all the time, or by the clock. */
export const ALWAYS: readonly Call[] = [
  ['the holder of an API key', 60, (db) => findKeyHolder(db, hashOf(7))],
  ['who is signed in', 60, (db) => signIns.findSignIn(db, hashOf(7))],
  ['whether a sign-in is live', 60, (db) => signIns.isLiveSignIn(db, idOf(7), NOW_S)],
  ['the end of a sign-in', 60, (db) => signIns.removeSignInByToken(db, hashOf(7))],
  ['the end of all sign-ins of a person', 200, (db) => signIns.removeSignInsOfUser(db, 'user 7')],
  ['the sign-ins of a person', 200, (db) => signIns.listSignIns(db, 'user 7', 0, 0)],
  ['the account that is looked at', 60, (db) => signIns.setLookedAtAccount(db, idOf(7), small)],
  ['old sign-ins', 200, (db) => signIns.removeOldSignIns(db, NOW_S - 900, 20)],
  ['the passkeys of a person', 60, (db) => passkeys.listPasskeys(db, 'user 7')],
  ['a passkey', 30, (db) => passkeys.findPasskey(db, idOf(7))],
  ['a person by name', 30, (db) => users.findUserByName(db, 'user 7')],
  ['the first page of a list', 400, list({})],
  ['the same of a small account', 400, list({}, 1, small)],
  ['the page after a position', 400, (db) => findVideos({ db, slowQueryDb: db }, large, {}, { below: 9000, limit: 20 })],
  ['a page of a tag', 400, list({ tags: ['all'] })],
  ['a page of a rare tag', 400, list({ tags: ['rare 2'] })],
  ['a page of all metadata', 1300, list({ metadata: { all: 'yes' } })],
  ['a page of rare metadata', 400, list({ metadata: { all: 'yes', rare: '2' } })],
  ['a video by its own id', 60, list({ externalId: 'own 7' })],
  ['whether own ids are taken', 60, (db) => ownFields.listExternalIds(db, large, ['own 7', 'own 9'])],
  ['a page of a folder', 400, list({ folderId: 'f1' })],
  ['a deep page', 1100, list({}, 400)],
  ['one video', 30, (db) => videos.findVideo(db, large, V)],
  ['one video of a small account', 30, (db) => videos.findVideo(db, small, idOf(200))],
  ['a change of a video', 250, (db) => videos.updateVideo(db, large, V, { title: 'New' })],
  ['a new video', 250, (db) => videos.insertVideo(db, large, { id: 'x', title: 'X', uploadTimeS: 1 })],
  ['changing the metadata of a video', 300, (db) => videos.updateVideo(db, large, V, { metadata: '{"a":"b"}' })],
  ['moving a video', 300, (db) => videos.updateVideo(db, large, V, { folderId: 'f9' })],
  ['an upload token', 60, (db) => uploadTokens.findUploadToken(db, hashOf(2600))],
  ['whether pages of an origin may upload', 30, (db) => uploadTokens.hasLiveToken(db, 'https://2600.example', NOW_S)],
  ['a file of an upload token', 60, (db) => uploadTokens.takeFile(db, idOf(2600), NOW_S)],
  [
    'the end of an upload token',
    60,
    (db) => uploadTokens.revokeLiveToken(db, large, { id: idOf(2601), madeBy: undefined, nowS: NOW_S }),
  ],
  ['the token of a video', 250, (db) => uploadTokens.setUploadToken(db, V, { id: 'x', reference: 'y', consoleUserId: null })],
  ['what comes by a token', 30, (db) => uploadTokens.listUnfinishedOfToken(db, 'y')],
  ['existing videos', 30, (db) => videos.listExisting(db, large, [V, idOf(9)])],
  ['summaries of videos', 30, (db) => videos.listSummaries(db, large, [V, idOf(9)])],
  ['positions of videos', 30, (db) => videos.listPositions(db, large, [V, idOf(9)])],
  ['adding tags to a video', 250, (db) => tags.insertTags(db, large, [7], ['new', 'all'])],
  ['removing the tags of a video', 300, (db) => tags.removeVideoTags(db, large, [7])],
  ['a folder', 20, (db) => folders.findFolder(db, large, 'f3')],
  ['folders in a folder', 30, (db) => folders.listFoldersIn(db, large, 'f3')],
  ['parents of folders', 60, (db) => folders.listAncestors(db, large, ['f3', 'f1999'])],
  ['a new folder', 300, (db) => folders.insertFolder(db, large, { id: 'n', parentId: 'f3', name: 'x', createdAtS: 1 })],
  ['posters', 30, (db) => posters.listEnabledPosters(db, [V, idOf(8)])],
  ['a poster', 30, (db) => posters.findPosterByToken(db, 'token7')],
  ['files of a video', 30, (db) => files.listFileRows(db, V)],
  ['a file', 30, (db) => files.findFileAnywhere(db, 30_000)],
  ['files that have a row', 60, (db) => files.listReferencedFileBlobs(db, [`${V}/7`, `${V}/8`])],
  ['of which video one is a duplicate', 250, (db) => sources.setDuplicateOf(db, V, hashOf(9))],
  ['sources that have a row', 60, (db) => sources.listReferencedSources(db, [`${V}/7`, `${V}/8`])],
  [
    'which segments in a folder have a row',
    60,
    (db) => generations.listReferencedSegments(db, [`${V}/1/1/0.${'a'.repeat(12)}.m4s`]),
  ],
  ['captions', 30, (db) => files.listCaptions(db, V)],
  ['files of renditions', 30, (db) => files.findRenditionFiles(db, { videoId: V, generation: 1 })],
  ['captions, hidden ones too', 30, (db) => files.listHiddenCaptionsToo(db, V)],
  ['settings of audio tracks', 20, (db) => audioSettings.findAudioSettings(db, { videoId: V, sourceNumber: 1 })],
  ['added audio tracks', 20, (db) => dubs.listDubs(db, { videoId: V, ofSource: 1 })],
  ['accounts whose audio tracks wait', 900, (db) => dubs.listAccountsWithWaitingDubs(db, NOW_S)],
  ['the next audio track that waits', 900, (db) => dubs.findWaitingDub(db, large, NOW_S)],
  ['chapters', 20, (db) => chapters.findChapters(db, V)],
  ['setting chapters', 120, (db) => chapters.saveChapters(db, V, { language: null, chapters: [{ startS: 0, title: 'A' }] })],
  [
    'a new OTP',
    120,
    (db) => otps.insertOtp(db, makeOtpRow({ hash: hashOf(0), accountId: large, apiKeyId: idOf(7), videoId: V })),
  ],
  ['the defaults of an OTP', 30, (db) => otpDefaults.findBothDefaults(db, large, V)],
  ['the defaults of an account', 30, (db) => otpDefaults.findAccountDefaults(db, large)],
  ['setting the defaults of an account', 60, (db) => otpDefaults.saveAccountDefaults(db, large, '{}')],
  ['setting the defaults of a video', 120, (db) => otpDefaults.saveVideosDefaults(db, large, [V], '{}')],
  ['an OTP', 60, (db) => otps.findOtp(db, hashOf(7))],
  ['spending an OTP', 120, (db) => otps.spendOtp(db, hashOf(7), NOW_S)],
  ['recording the reuse of an OTP', 120, (db) => otps.recordReuse(db, hashOf(7), NOW_S)],
  ['a session', 20, (db) => sessions.findSession(db, V)],
  ['the session of an OTP', 20, (db) => sessions.findSessionOfOtp(db, hashOf(7))],
  [
    'saving when a session was seen',
    80,
    (db) => sessions.saveSession(db, { id: V, version: 0, lastSeenAtS: 1, leftAtS: null, keyWindows: null }),
  ],
  ['live sessions of an account', 2000, (db) => sessions.listWatchingSessions(db, large, {}, { seenSinceS: 0, limit: 20 })],
  [
    'live sessions of a viewer',
    2000,
    (db) => sessions.listWatchingSessions(db, large, { userId: 'viewer 5' }, { seenSinceS: 0, limit: 20 }),
  ],
  ['live sessions by id', 200, (db) => sessions.findLiveSessions(db, [V, idOf(9)])],
  [
    'stopping a viewer',
    1000,
    (db) =>
      sessions.endMatchingSessions(db, { accountId: large, filter: { userId: 'viewer 5' }, endedAtS: 1, endReason: 'stopped' }),
  ],
  ['an OTP that expires', 120, (db) => otps.expireOtp(db, large, hashOf(7), NOW_S)],
  ['freeing stream slots', 60, (db) => slots.freeSlots(db, [V])],
  ['recording a view', 80, (db) => sessions.markViewed(db, { id: V, viewedAtS: 1 })],
  ['the end of a session', 120, (db) => sessions.endSession(db, V, 1, 'x')],
  ['the end of sessions on a video', 60, (db) => sessions.endSessionsOfVideos(db, [V], 1, 'x')],
  [
    'an attempt to redeem',
    100,
    (db) =>
      sessions.recordAttempt(db, {
        otpHash: hashOf(7),
        atS: 1,
        keyId: hashOf(1),
        address: '',
        userAgent: '',
        embeddingHost: '',
        outcome: 'x',
      }),
  ],
  ['the attempt that opened a session', 20, (db) => sessions.findOpenAttempt(db, hashOf(7))],
  [
    'a stream slot',
    100,
    (db) => slots.takeSlot(db, { sessionId: V, accountId: large, userId: 'viewer 5', limit: 3 }, NOW_S, NOW_S + 18),
  ],
  [
    'the end of a viewer’s first slot',
    30,
    (db) => slots.findFirstSlotEnd(db, { sessionId: V, accountId: large, userId: 'viewer 5', limit: 3 }),
  ],
  ['keeping a slot for a lease', 30, (db) => slots.endSlotAt(db, V, NOW_S)],
  ['the keys of a video', 20, (db) => generations.findGeneration(db, { videoId: V, generation: 1 })],
  ['a segment', 20, (db) => generations.findSegment(db, VIDEO, 1, 0)],
  [
    'what is damaged of a chunk',
    40,
    (db) => damage.listDamaged(db, { ...VIDEO, kind: 'video', firstSegment: 0, segmentCount: 5 }),
  ],
  ['the chunk of a segment', 40, (db) => damage.findFinishedChunk(db, { ...VIDEO, renditionId: 1, number: 0 })],
  ['published segments', 20, (db) => generations.listPublishedNumbers(db, VIDEO, 1, 0)],
  ['how many are published', 20, (db) => generations.countSegments(db, VIDEO)],
  ['a video to be planned', 20, (db) => generations.findUnplanned(db, { nowS: NOW_S, lastAccountId: large })],
  [
    'whether one video is to be planned',
    60,
    (db) => generations.findUnplanned(db, { nowS: NOW_S, only: V, lastAccountId: large }),
  ],
  ['whether a video is still to be planned', 80, (db) => generations.findIfUnplanned(db, V)],
  ['whether a chunk waits', 20, (db) => chunks.hasPendingChunks(db)],
  [
    'a run of a chunk',
    100,
    (db) => chunks.beginRun(db, { videoId: idOf(500), generation: 1, kind: 'video', firstSegment: 0, attempt: 0 }),
  ],
  ['a webhook that is due', 20, (db) => deliveries.findDueWebhook(db, NOW_S, { accountIds: [], onlyHealthy: false })],
  ['what a webhook sends next', 120, (db) => deliveries.claimDelivery(db, 'h1', NOW_S, 'retry')],
  ['the oldest retries', 120, (db) => deliveries.listOldestRetries(db)],
  ['some of what failed, once more', 300, (db) => replayFromSequence(db, 'h38', 1)],
  [
    'some of what waits for a webhook that is off',
    400,
    (db) => webhooks.disableWebhook(db, 'h1', 'off').then(() => deliveries.failPendingBatch(db, 'h1', 1, 20)),
  ],
  ['some deliveries of a webhook that goes', 300, (db) => deliveries.removeDeliveries(db, 'h1', 20)],
  ['the numbers of events', 600, (db) => outbox.takeSequences(db, 'video:ready', [V])],
  ['the videos of an event', 30, (db) => outbox.findEventVideos(db, [V])],
  [
    'accounts with imports that are due',
    30,
    (db) => imports.listAccountsWithImports(db, NOW_S, { accountIds: [], hosts: ['host-1'] }),
  ],
  ['an import that is due', 20, (db) => imports.findDueImport(db, large, NOW_S, { accountIds: [], hosts: ['host-1'] })],
  ['an upload policy', 30, (db) => policies.findPolicy(db, 'orig/7')],
  [
    'what was sent of a video',
    150,
    (db) => usage.addVideoUsage(db, { day: '2026-01-01', videoId: V, userId: '', sentBytes: 1, viewCount: 1 }),
  ],
  ['views of a video', 100, (db) => usage.addViews(db, { videoId: V, viewCount: 1 })],
  ['strikes', 30, (db) => bans.countStrikes(db, { scope: 'key', budget: 'reads', subject: idOf(7) }, NOW_S - 60)],
  ['accounts that want an MP4', 250, (db) => mp4s.listAccountsWithPendingMp4s(db, NOW_S)],
  ['accounts with captions inside files to be read', 60, (db) => embedded.listAccountsWithUnreadCaptions(db, NOW_S)],
  ['captions inside a file to be read', 60, (db) => embedded.findUnreadCaptions(db, large, NOW_S)],
  ['candidates for a poster', 20, (db) => posters.listPosterCandidates(db, { videoId: V, generation: 1 })],
  ['first posters', 20, (db) => posters.listFirstPosters(db, { videoId: V, generation: 1 })],
  ['sheets of a storyboard', 20, (db) => storyboards.listStoryboardSheets(db, { videoId: V, generation: 1 })],
  ['an MP4 to be made', 60, (db) => mp4s.findPendingMp4(db, large, NOW_S)],
  ['an MP4 that is made', 400, finishAnMp4],
  ['a video whose chunks are all done', 300, (db) => generations.findUnfinished(db, { nowS: NOW_S })],
  ['segments with new addresses', 20, (db) => damage.listRepairs(db, VIDEO)],
  ['what is known of a damaged file', 30, (db) => fileDamage.findFileDamage(db, { videoId: V, name: 'x' })],
  ['files to be checked', 500, (db) => fileDamage.listFilesAfter(db, 100, 20)],
  ['segments to be checked', 250, (db) => damage.listSegmentsAfter(db, { ...VIDEO, renditionId: 1, number: 0 }, 20)],
  ['whether all chunks of one video are done', 20, (db) => generations.findUnfinished(db, { nowS: NOW_S, only: V })],
  ['abandoned uploads', 250, (db) => policies.listExpiredUploads(db, 5_000, 20)],
  ['old OTPs', 500, (db) => otps.removeOldOtps(db, NOW_S - 1_000, 20)],
  ['old sessions', 500, (db) => sessions.removeOldSessions(db, NOW_S - 1_000, 20)],
  ['old answers', 150, (db) => answers.removeStoredResponsesUntil(db, NOW_S - 1_000, 20)],
  ['old acts', 150, (db) => acts.removeAuditEventsBefore(db, 500, 20)],
  ['old usage', 150, (db) => usage.removeUsageBefore(db, '2026-02-01', 20)],
  ['old deliveries', 200, (db) => deliveries.removeOldDeliveries(db, 100, 20)],
  ['no OTP that is old', 20, (db) => otps.removeOldOtps(db, 0, 20)],
  ['no session that is old', 20, (db) => sessions.removeOldSessions(db, 0, 20)],
  ['no answer that is old', 20, (db) => answers.removeStoredResponsesUntil(db, 0, 20)],
  ['no act that is old', 20, (db) => acts.removeAuditEventsBefore(db, 0, 20)],
  ['no usage that is old', 20, (db) => usage.removeUsageBefore(db, '', 20)],
  ['no delivery that is old', 20, (db) => deliveries.removeOldDeliveries(db, 0, 20)],
  ['no upload that is abandoned', 20, (db) => policies.listExpiredUploads(db, 0, 20)],
  ['an answer that is kept', 20, (db) => answers.findStoredResponse(db, { accountId: large, idempotencyKey: idOf(7) }, 0)],
  ['acts', 60, (db) => acts.listAuditRows(db, undefined, { limit: 20 })],
  ['acts of an account', 60, (db) => acts.listAuditRows(db, small, { limit: 20, below: 900 })],
  ['what was done to a video', 60, (db) => acts.listAuditRowsOf(db, large, V, 20)],
  ['refused viewers', 400, (db) => refusals.listRefusedAttempts(db, large, { limit: 20 })],
  ['videos that wait', 60, (db) => accountQueue.listWaitingVideos(db, large, 20)],
  ['videos that are encoded', 400, (db) => accountQueue.listEncodingVideos(db, large, 20)],
  ['what a crash cut off of deliveries', 60, (db) => deliveries.releaseDeliveries(db, 'h1')],
  ['what a crash cut off of chunks', 60, (db) => chunks.releaseRun(db, `${idOf(500)}/1/video/0/1`)],
  ['the imports that run', 20, (db) => imports.listRunningImports(db)],
  ['the webhooks that are sent to', 20, (db) => deliveries.listSendingWebhooks(db)],
  ['the next chunk', 400, (db) => chunks.findNextChunk(db, { nowS: NOW_S })],
  ['the next chunk of the backlog', 400, (db) => chunks.findNextChunk(db, { nowS: NOW_S, abovePriority: 0 })],
  ['the oldest pending chunk', 400, (db) => chunks.findOldestChunk(db, { nowS: NOW_S })],
  [
    'the next chunk of a worker',
    400,
    (db) => chunks.findNextChunk(db, { nowS: NOW_S, kinds: ['video'], decodesFromStart: false }),
  ],
  ['the next chunk of one encoder', 400, (db) => chunks.findNextChunk(db, { nowS: NOW_S, by: encoderAmong(['video', 'audio']) })],
  ['the next chunk of an encoder of video', 400, (db) => chunks.findNextChunk(db, { nowS: NOW_S, by: encoderAmong(['video']) })],
]

/** Well from the first ANALYZE on, which autovacuum makes within a minute. */
export const ONCE_ANALYZED: readonly Call[] = [
  ['a storyboard to be made', 60, (db) => storyboards.findPendingStoryboard(db, NOW_S)],
  ['a list by title', 400, listBy({ by: 'title', descending: false })],
  ['the largest videos', 400, listBy({ by: 'size', descending: true })],
  ['the shortest videos', 400, listBy({ by: 'length', descending: false })],
  ['two tags', 700, list({ tags: ['all', 'rare 2'] })],
  ['a folder and a tag', 900, list({ folderId: 'f1', tags: ['all'] })],
  ['a rare text', 900, list({ text: '1234' })],
  ['a text of a small account', 900, list({ text: '1200' }, 1, small)],
  ['a frequent text', 900, list({ text: 'lecture' })],
  ['levels of folders', 180, (db) => folders.countLevelsBelow(db, large, 'f3')],
  ['a folder that moves', 250, (db) => folders.updateFolder(db, large, 'f30', { parentId: 'f3' })],
  ['a folder that goes', 250, (db) => folders.removeFolder(db, large, 'f1999')],
  [
    'what leaves a folder that goes',
    1300,
    (db) => folders.moveContentsBatch(db, { accountId: large, fromId: 'f1', toId: 'root', limit: 20 }),
  ],
  ['folders of a name', 60, (db) => folders.listFoldersByPrefix(db, large, { name: 'folder 12', isWhole: false }, 20)],
  ['a deleted video', 450, (db) => videos.tombstoneVideos(db, large, [V], 1)],
  ['its keys', 250, (db) => videos.destroyKeys(db, [V])],
  ['its rows', 400, (db) => videos.removeTombstone(db, V)],
  ['all that are deleted', 20, (db) => videos.listTombstones(db)],
  ['deliveries of a webhook', 40, (db) => deliveries.listDeliveryRows(db, 'h1', { limit: 20, offset: 0 })],
  ['webhooks with an interrupted batch', 20, (db) => deliveries.listInterruptedBatches(db)],
  ['what a viewer has watched of a video', 10, (db) => viewings.findViewing(db, viewingOf(1))],
  ['the same on a day', 10, (db) => viewings.findViewingDay(db, { ...viewingOf(1), day: 20_000 })],
  [
    'saving what a viewer has watched',
    60,
    (db) =>
      viewings.saveViewing(db, {
        ...viewingOf(1),
        version: 0,
        intervals: '0 60',
        watchedS: 60,
        positionS: 60,
        beganAtS: 1,
        lastAtS: 1,
      }),
  ],
  [
    'saving it for a day',
    60,
    (db) => viewings.saveViewingDay(db, { ...viewingOf(1), day: 20_000, intervals: '0 60', watchedS: 60 }),
  ],
  ['the key budget of a viewer', 10, (db) => budgets.findKeyBudget(db, budgetOf(1))],
  [
    'saving a key budget',
    60,
    (db) =>
      budgets.saveKeyBudget(db, {
        ...budgetOf(1),
        earning: null,
        version: 0,
        levelS: 1,
        earnedAtS: 1,
        released: hashOf(1),
        releasedOf: 1,
        usedAtS: 1,
      }),
  ],
  ...[{}, { cause: 'keys-drawn' }, { userId: 'viewer 1' }].map(
    (filter): Call => [
      `alerts by ${JSON.stringify(filter)}`,
      100,
      (db) => alerts.listAlertRows(db, large, filter, { limit: 20, below: 20_000 }),
    ],
  ),
  ['upload tokens', 100, (db) => uploadTokens.listUploadTokens(db, large, { limit: 20, below: 4000, madeBy: undefined })],
  ['old upload tokens', 200, (db) => uploadTokens.removeExpiredTokens(db, NOW_S - 900, 20)],
  ['a new alert', 100, (db) => alerts.insertAlert(db, NEW_ALERT, 1000)],
  ['the mail that is due', 20, (db) => alertMails.findDueMail(db, TODAY - 1, { nowS: NOW_S, maxAttempts: 7 })],
  ['the alerts of a mail', 2500, (db) => alertMails.listAlertsOfMail(db, { day: TODAY, cause: 'keys-drawn' }, 21)],
  ['old alerts', 200, (db) => alerts.removeOldAlerts(db, NOW_S - 900, 20)],
  ['old key budgets', 200, (db) => budgets.removeOldKeyBudgets(db, NOW_S - 900, 20)],
  [
    'names of viewers',
    60,
    (db) =>
      viewers.findViewerNames(
        db,
        large,
        ['viewer 5', 'viewer 6', 'nobody'].map((userId) => ({ userId })),
      ),
  ],
  ['old names of viewers', 200, (db) => viewers.removeOldViewerNames(db, NOW_S - 900, 20)],
  ['old viewings', 200, (db) => viewings.removeOldViewings(db, NOW_S - 900, 20)],
  ['old days of viewings', 200, (db) => viewings.removeOldViewingDays(db, 19_999, 20)],
  ['old slots', 100, (db) => slots.removeOldSlots(db, NOW_S - 900)],
  ['old bans', 150, (db) => bans.removeOldBans(db, NOW_S, NOW_S - 4_900)],
  ['bytes sent of videos on a day', 2500, (db) => usage.listSentBytes(db, large, '2026-03-01')],
  ['usage of two days', 5000, (db) => usage.listUsageOfDays(db, large, { days: USAGE_DAYS })],
  ['usage of a video on two days', 100, (db) => usage.listUsageOfDays(db, large, { days: USAGE_DAYS, videoId: V })],
  ['views of some videos', 60, (db) => usage.listViewTotals(db, large, [V, idOf(9)])],
  ['names of what events are about', 200, (db) => subjectNames.findSubjectNames(db, large, [V, idOf(9), 'user 7', 'f3'])],
]

async function finishAnMp4(db: Db): Promise<void> {
  const unmade = await mp4s.findPendingMp4(db, large, NOW_S)
  await mp4s.finishMp4(db, unmade?.id ?? 0, { blob: 'm', sizeBytes: 1 })
}

/** Continues a replay from this number. */
async function replayFromSequence(db: Db, webhookId: string, sequence: number): Promise<void> {
  await db.updateTable('webhook').set({ replayFromSequence: sequence }).where('id', '=', webhookId).execute()
  await deliveries.replayFailedBatch(db, webhookId, 20)
}
