import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import * as accounts from '../../src/accounts/account-store.ts'
import * as keys from '../../src/accounts/api-key-store.ts'
import * as storage from '../../src/accounts/storage-store.ts'
import * as alerts from '../../src/alerts/alert-store.ts'
import * as mails from '../../src/alerts/mail-store.ts'
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
import * as replacements from '../../src/catalogue/replacement-store.ts'
import * as search from '../../src/catalogue/search-store.ts'
import { moveStatus, setStatusReason } from '../../src/catalogue/status.ts'
import * as storyboards from '../../src/catalogue/storyboard-store.ts'
import * as tags from '../../src/catalogue/tag-store.ts'
import * as transcriptions from '../../src/catalogue/transcription-store.ts'
import * as trash from '../../src/catalogue/trash-store.ts'
import * as history from '../../src/catalogue/video-history-store.ts'
import * as videos from '../../src/catalogue/video-store.ts'
import type { Database, Db } from '../../src/db/database.ts'
import * as setting from '../../src/db/setting.ts'
import * as demo from '../../src/demo/demo-store.ts'
import * as capacities from '../../src/encode/capacity-store.ts'
import type { Chunk, ChunkKind } from '../../src/encode/chunk-plan.ts'
import * as chunks from '../../src/encode/chunk-store.ts'
import * as damage from '../../src/encode/damage-store.ts'
import * as dubRenditions from '../../src/encode/dub-rendition-store.ts'
import * as generations from '../../src/encode/generation-store.ts'
import type { Plan } from '../../src/encode/plan.ts'
import * as changeNumbers from '../../src/events/change-number-store.ts'
import * as answers from '../../src/idempotency/idempotency-store.ts'
import * as imports from '../../src/ingest/import-store.ts'
import * as resumable from '../../src/ingest/resumable-upload-store.ts'
import * as sources from '../../src/ingest/source-store.ts'
import * as policies from '../../src/ingest/upload-policy-store.ts'
import * as tokens from '../../src/ingest/upload-token-store.ts'
import * as movedBlobs from '../../src/installation/moved-blob-store.ts'
import { WRAPPED_COLUMNS } from '../../src/installation/wrapped-columns.ts'
import * as wrapped from '../../src/installation/wrapped-store.ts'
import * as claims from '../../src/jobs/claim-store.ts'
import * as grades from '../../src/lti/grade-store.ts'
import * as platforms from '../../src/lti/platform-store.ts'
import * as moves from '../../src/move-in/moved-video-store.ts'
import * as budgets from '../../src/playback/keys/key-budget-store.ts'
import * as otpDefaults from '../../src/playback/otp-defaults-store.ts'
import * as otps from '../../src/playback/otp-store.ts'
import * as serverKeys from '../../src/playback/sessions/server-key-store.ts'
import * as sessions from '../../src/playback/sessions/session-store.ts'
import * as slots from '../../src/playback/sessions/stream-slot-store.ts'
import * as refusals from '../../src/playback/suspicion/refusal-store.ts'
import * as accountQueue from '../../src/progress/account-queue-store.ts'
import * as progress from '../../src/progress/progress-store.ts'
import * as bans from '../../src/rate-limits/ban-store.ts'
import * as servers from '../../src/servers/server-store.ts'
import * as usage from '../../src/usage/usage-store.ts'
import * as passkeys from '../../src/users/passkey-store.ts'
import * as signIns from '../../src/users/sign-in-store.ts'
import * as subjectNames from '../../src/users/subject-name-store.ts'
import * as users from '../../src/users/user-store.ts'
import * as viewQualities from '../../src/view-quality/view-quality-store.ts'
import * as viewers from '../../src/viewers/viewer-store.ts'
import * as viewings from '../../src/viewers/viewing-store.ts'
import * as watermarkImages from '../../src/watermark/watermark-image-store.ts'
import * as deliveries from '../../src/webhooks/delivery-store.ts'
import * as outbox from '../../src/webhooks/outbox-store.ts'
import * as webhooks from '../../src/webhooks/webhook-store.ts'
import * as workers from '../../src/workers/worker-store.ts'
import { makeOtpRow, makeSessionRow } from './bare-rows.ts'
import { openSharedDatabase } from './database.ts'

// Each function of each store is called on both databases, in the life of two accounts: what it answers, and the rows that it
// leaves with their triggers, are the same. What they should be is checked, on SQLite, by the tests of the features.

let sqlite: Database
let postgres: Database
beforeAll(async () => {
  sqlite = await openSharedDatabase('sqlite')
  postgres = await openSharedDatabase('postgres')
})
afterAll(async () => {
  await sqlite.close()
  await postgres.close()
})

const id = (letter: string) => letter.repeat(32)
const bytes = (value: number, length = 32) => Buffer.alloc(length, value)
const [A, B] = [id('a'), id('b')]
const VIDEOS = ['1', '2', '3', '4', '5'].map(id)
const [V1 = '', V2 = '', V3 = '', V4 = '', V5 = ''] = VIDEOS
const KEY = id('c')
const VIDEO = { videoId: V1, generation: 1 }
const DUB = {
  ...{ videoId: V1, sourceNumber: 2, accountId: A, ofSource: 1, startS: 0.5, language: 'fr', name: null },
  ...{ isDefault: 0, requestedAtS: 7 },
}
/** As its row is found. */
const NEW_DUB = { ...DUB, attempts: 0, progress: 0, encoded: 0, differenceS: null, problem: null }
const POSTER_SIZE = { widthPx: 427, heightPx: 240 }
const FIRST_POSTER = { videoId: V1, ...POSTER_SIZE, token: 'f', blob: 'f1', sizeBytes: 9, createdAtS: 3 }
const PICTURES = {
  sheets: [{ widthPx: 1600, heightPx: 900, blob: 's1', sizeBytes: 2 ** 20 }],
  candidates: [{ ...POSTER_SIZE, timeS: 12.5, blob: 'c1', sizeBytes: 7 }],
  posters: [{ ...POSTER_SIZE, blob: 'b1', sizeBytes: 8 }],
}
const PLAN: Plan = { durationS: 29.97, isSeekable: true, audioTrack: { renditionId: 9, bitrateBps: 128_000, frameCount: 1405 } }

const chunk = (firstSegment: number, priority: number): Chunk => ({
  kind: 'audio',
  firstSegment,
  segmentCount: 2,
  decodesFromStart: firstSegment === 0,
  priority,
})
const runOf = (chunk: Chunk, attempt: number) => ({ ...VIDEO, ...chunk, state: 'running' as const, attempt, threads: 0 })
const BOTH = ['video', 'audio'] as const
const claiming = (fingerprint: string, kinds: readonly ChunkKind[], others: chunks.ClaimingEncoder['others']) => ({
  ...{ fingerprint, kinds, others },
})
const chunkKey = (firstSegment: number) => ({ ...VIDEO, kind: 'audio' as const, firstSegment })
const segment = (number: number, init: Buffer) => ({
  renditionId: 9,
  number,
  file: `s${number}`,
  sizeBytes: 10 ** 10,
  sha256: bytes(3),
  init,
})
const workClaim = (id: string) => ({ kind: 'mp4' as const, subject: V1, id, server: 's', endsAtS: 20 })
const caption = { videoId: V1, type: 'caption' as const, language: 'de' }
const captionFile = (blob: string, attachmentId: string) => ({ ...caption, createdAtS: 1, attachmentId, blob, sizeBytes: 7 })
const poster = {
  videoId: V1,
  widthPx: 640,
  heightPx: 360,
  token: 't',
  blob: `${V1}/${'x'.repeat(22)}.sealed`,
  sizeBytes: 5,
  createdAtS: 1,
}
const otp = (hash: number, expiresAtS: number) => ({
  ...makeOtpRow({ hash: bytes(hash), accountId: A, apiKeyId: KEY, videoId: V2 }),
  userId: 'viewer',
  rules: hash % 2 ? '{}' : null,
  expiresAtS,
})
const session = (name: string, hash: number) => ({
  ...makeSessionRow({ id: name, otpHash: bytes(hash), accountId: A, videoId: V2 }),
  pages: '["p"]',
  startedAtS: 10,
  endsAtS: 90,
  lastSeenAtS: 10,
})
const budget = (n: number, usedAtS: number) => ({
  ...{ accountId: A, viewer: `user ${n}`, videoId: V2, sourceNumber: 1, levelS: 12.5, earnedAtS: 1_800_000_000.125 },
  ...{ released: bytes(n), releasedOf: 1, earning: null, usedAtS, version: 0 },
})
const alert = (n: number) => ({
  ...{ accountId: A, day: 0, cause: 'keys-drawn', subject: `subject ${n}`, atS: n },
  ...{ sessionId: null, userId: 'viewer', videoId: V1, numbers: '{"drawnS":912}' },
})
const viewing = (n: number, lastAtS: number) => ({
  ...{ accountId: A, userId: `viewer-${n}`, videoId: V2, intervals: '0 60 90 120', watchedS: 90, positionS: 120.5 },
  ...{ beganAtS: 1, lastAtS, version: 0 },
})
const viewerNamed = (namedAtS: number) => ({ accountId: A, userId: 'viewer-1', namedAtS })
const viewQuality = (sessionId: string, measuredMs: number) => ({
  ...{ sessionId, pageId: 'p', day: '2026-11-21', accountId: A, videoId: V2, country: 'DE', browser: 'Chrome', network: '4g' },
  ...{ measuredMs, startMs: measuredMs === 5 ? null : 400, waitCount: 1, waitedMs: 2 ** 20, playedMs: 3, frameCount: 4 },
  ...{ droppedFrameCount: 5, error: null, rungs: '360:3' },
})
const viewingDay = (n: number, day: number) => ({
  ...{ accountId: A, day, videoId: V2, userId: `viewer-${n}`, intervals: '0 60', watchedS: 60 },
})
const user = (n: number, name: string) => ({
  ...{ id: id(`${n}`), accountId: A, name, foldedName: name.toLowerCase(), role: 'owner' as const },
  ...{ isAdministrator: n % 2, wrappedPasswordHash: null, createdAtS: n },
})
const passkey = (n: number) => ({
  ...{ id: `p${n}`, consoleUserId: id('1'), name: 'Passkey', publicKey: bytes(n), signCount: 0 },
  ...{ transports: '["internal"]', createdAtS: n, lastUsedAtS: null },
})
const signIn = (n: number, expiresAtS: number) => ({
  ...{ id: `s${n}`, tokenHash: bytes(n), consoleUserId: id('1'), accountId: A, method: 'password' as const },
  ...{ address: `192.0.2.${n}`, userAgent: 'browser', createdAtS: n, lastSeenAtS: n, expiresAtS },
})
const link = (hash: number, userId: string) => ({ hash: bytes(hash), consoleUserId: userId, createdAtS: 1, expiresAtS: 50 })
const serverKey = (n: number) => ({ id: `k${n}`, publicKey: bytes(n), wrappedPrivateKey: bytes(n), createdAtS: n })
const claim = (sessionId: string) => ({ sessionId, accountId: A, userId: 'viewer', limit: 2 })
const stopping = { accountId: A, endedAtS: 29, endReason: 'stopped' } as const
const attempt = (outcome: string) => ({
  accountId: A,
  otpHash: bytes(1),
  atS: 11,
  keyId: bytes(5),
  address: '192.0.2.1',
  userAgent: 'x'.repeat(400),
  embeddingHost: '-',
  outcome,
})
const refusal = (hash: number) =>
  ({ otpHash: bytes(hash), outcome: 'stream-limit', address: '192.0.2.2', atS: 12, count: 2 }) as const
const idle = { accountIds: [], onlyHealthy: false }
const PROGRESS = { lengthBytes: 2 ** 40, receivedBytes: 0, receivedState: null, expiresAtS: 6 }
const RESUMABLE = {
  ...{ ...PROGRESS, accountId: A, metadata: 'title QQ==', fileName: 'a.mp4' },
  ...{ file: `${V2}/${'f'.repeat(32)}.sealed`, wrappedKey: bytes(4), iv: bytes(5, 16) },
}
const TOKEN = {
  ...{ accountId: A, origin: 'https://school.example', folderId: 'root', tags: '["a"]', maxFiles: 1 },
  ...{ createdAtS: 1, expiresAtS: 10 },
}
const free = { accountIds: [], hosts: [] }
const delivery = (sequence: number) => ({ webhookId: 'h1', sequence, body: `body ${sequence}`, attempts: 1 })
const webhook = {
  id: 'h1',
  accountId: A,
  url: 'https://a.example',
  event: null,
  wrappedSecret: bytes(1),
  createdAtS: 1,
  disabledReason: null,
}
const platformRow = (platformId: string) => ({
  ...{ id: platformId, name: 'Moodle', issuer: 'https://lms.example', clientId: 'x', authorizationUrl: 'https://lms.example/a' },
  ...{ tokenUrl: 'https://lms.example/t', keysUrl: 'https://lms.example/k', deploymentIds: '[]', publicKey: '{}' },
  ...{
    wrappedPrivateKey: bytes(3),
    folderId: null,
    confirmedAtS: null,
    lastLaunchAtS: null,
    lastError: null,
    lastErrorAtS: null,
  },
})
const COURSE = { platformId: id('a'), courseId: '42', accountId: A }
const gradeRow = (gradeId: string) => ({
  ...{ id: gradeId, platformId: id('a'), accountId: A, userId: 'ann', videoId: V1, lineItem: 'https://lms.example/1' },
  ...{ wrappedSubject: bytes(8), completedAtTenths: 9 },
})

type Call = (tx: Db) => Promise<unknown>

const SERVER = {
  ...{ name: 'right', version: '0.3.0', startedAtS: 1, beatAtS: 2.5, backend: '7 1.5' },
  ...{ state: 'joining' as const, knows: '', sessions: 0, load: 0 },
} as const

/** In the order in which an installation comes to call them: what a store is asked needs the rows of those before it. */
const STORES: readonly (readonly [store: string, calls: readonly Call[]])[] = [
  [
    'accounts',
    [
      (tx) => accounts.insertAccount(tx, { id: A, name: 'Ä', createdAtS: 2 ** 33, mayUpload: true, mayImport: false }),
      (tx) => accounts.insertAccount(tx, { id: B, name: 'b', createdAtS: 2, mayUpload: false, mayImport: true }),
      (tx) => accounts.updateAccount(tx, B, { mayUpload: true, mayImport: true, pageMax: 100, whenFull: 'stop-oldest' }),
      ...[2 ** 45, null, 7].map((storageLimitBytes) => async (tx: Db) => {
        await accounts.updateAccount(tx, B, { storageLimitBytes })
        return accounts.findStorageLimit(tx, B)
      }),
      (tx) => accounts.findStorageLimit(tx, A),
      ...['https://school.example/{id}', null].map((watchUrl) => async (tx: Db) => {
        await accounts.updateAccount(tx, B, { watchUrl })
        return accounts.findWatchUrl(tx, B)
      }),
      ...['{"en":{"play":"Go"}}', null].map((playerSentences) => async (tx: Db) => {
        await accounts.updateAccount(tx, B, { playerSentences })
        return accounts.findStoredSentences(tx, B)
      }),
      (tx) => accounts.listStorageLimits(tx),
      (tx) => accounts.setDisabled(tx, B, true),
      (tx) => accounts.setDisabled(tx, B, true),
      (tx) => accounts.setDisabled(tx, B, false),
      (tx) => accounts.isAccountDisabled(tx, B),
      (tx) => accounts.findAccountIds(tx, 'Ä'),
      (tx) => accounts.countAccounts(tx),
      (tx) => accounts.listAccounts(tx),
      (tx) => accounts.findAccountById(tx, B),
      (tx) => accounts.findAccountById(tx, 'none'),
      ...[A, 'none'].map((account) => (tx: Db) => changeNumbers.findChangeNumber(tx, account)),
    ],
  ],
  [
    'API keys',
    [
      (tx) =>
        keys.insertApiKey(tx, {
          id: KEY,
          accountId: A,
          hash: bytes(1),
          prefix: 'p',
          name: 'n',
          permissions: '["otpCreator"]',
          createdAtS: 1,
          expiresAtS: null,
        }),
      (tx) =>
        keys.insertApiKey(tx, {
          id: id('d'),
          accountId: B,
          hash: bytes(1),
          prefix: 'p',
          name: 'a hash twice',
          permissions: '[]',
          createdAtS: 1,
          expiresAtS: null,
        }),
      (tx) =>
        keys.insertApiKey(tx, {
          id: id('d'),
          accountId: A,
          hash: bytes(2),
          prefix: 'p',
          name: 'm',
          permissions: '[]',
          createdAtS: 2,
          expiresAtS: 50,
        }),
      (tx) => keys.findKeyHolder(tx, bytes(1)),
      (tx) => keys.findKeyHolder(tx, bytes(9)),
      (tx) => keys.saveLastUse(tx, { id: KEY, lastUsedAtS: 12 }),
      (tx) => keys.listApiKeys(tx, A),
      (tx) => keys.listKeyNames(tx, [KEY, id('d'), 'none']),
      (tx) => keys.listKeyNames(tx, []),
      (tx) => keys.findLiveKey(tx, id('d'), 49),
      (tx) => keys.findLiveKey(tx, id('d'), 50),
      (tx) => keys.findAccountOfKey(tx, id('d')),
      (tx) => keys.setExpiry(tx, id('d'), 60),
      (tx) => keys.revokeApiKey(tx, id('d'), 70),
      (tx) => keys.revokeApiKey(tx, id('d'), 70),
    ],
  ],
  [
    'users of the console',
    [
      (tx) => users.insertUser(tx, user(1, 'Ann')),
      (tx) => users.insertUser(tx, user(2, 'ANN')),
      (tx) => users.insertUser(tx, user(2, 'bob')),
      (tx) => users.isNameTaken(tx, 'bob'),
      (tx) => users.isNameTaken(tx, 'eve'),
      (tx) => users.isNameTaken(tx, 'bob', id('2')),
      async (tx) => (await users.listNames(tx, id('2'))).toSorted(),
      (tx) => users.listUserNames(tx, [id('1'), 'none']),
      (tx) => users.listUserNames(tx, []),
      async (tx) => [...(await subjectNames.findSubjectNames(tx, A, [id('1'), KEY, V1, V3, 'none']))].toSorted(),
      (tx) => users.insertUser(tx, user(3, 'not for long')),
      (tx) => users.updateUser(tx, id('3'), { name: 'Carl', foldedName: 'carl', email: 'c@d', role: 'viewer', disabled: 1 }),
      (tx) => users.setPasswordHash(tx, id('1'), bytes(7)),
      (tx) => users.findUser(tx, id('1')),
      (tx) => users.findUserByName(tx, 'bob'),
      (tx) => users.findFirstAdministrator(tx),
      (tx) => users.hasUserWithCredential(tx),
      (tx) => users.listUsers(tx, A),
      (tx) => users.listAllUsers(tx),
      (tx) => users.hasOwner(tx, A),
      (tx) => users.hasOwner(tx, 'none'),
      (tx) => users.removeUser(tx, id('3')),
    ],
  ],
  [
    'passkeys',
    [
      ...[1, 2, 2].map((n) => (tx: Db) => passkeys.insertPasskey(tx, passkey(n))),
      (tx) => passkeys.listPasskeys(tx, id('1')),
      (tx) => passkeys.findPasskey(tx, 'p2'),
      (tx) => passkeys.findPasskey(tx, 'p9'),
      ...[5, 5, 4, 0].map((signCount) => (tx: Db) => passkeys.savePasskeyUse(tx, { id: 'p1', signCount, lastUsedAtS: 9 })),
      ...[0, 3].map((signCount) => (tx: Db) => passkeys.savePasskeyUse(tx, { id: 'p2', signCount, lastUsedAtS: 9 })),
      (tx) => users.hasUserWithCredential(tx),
      (tx) => users.listUsers(tx, A),
      (tx) => passkeys.removePasskey(tx, id('2'), 'p1'),
      (tx) => passkeys.removePasskey(tx, id('1'), 'p1'),
      (tx) => passkeys.removePasskeysOfUser(tx, id('1')),
    ],
  ],
  [
    'sign-ins',
    [
      ...[1, 2, 3].map((n) => (tx: Db) => signIns.insertSignIn(tx, signIn(n, 60 * n))),
      (tx) => signIns.insertSignIn(tx, { ...signIn(4, 60), tokenHash: bytes(1) }),
      (tx) => signIns.findSignIn(tx, bytes(1)),
      (tx) => signIns.findSignIn(tx, bytes(9)),
      (tx) => signIns.saveSignInSeen(tx, 's1', 44),
      (tx) => signIns.isLiveSignIn(tx, 's1', 59),
      (tx) => signIns.isLiveSignIn(tx, 's1', 60),
      (tx) => signIns.listSignIns(tx, id('1'), 1, 70),
      (tx) => signIns.setLookedAtAccount(tx, 's3', B),
      (tx) => signIns.setLookedAtAccount(tx, 's3', 'none'),
      (tx) => users.listUsers(tx, A),
      (tx) => signIns.removeSignInByToken(tx, bytes(1)),
      (tx) => signIns.removeSignInByToken(tx, bytes(1)),
      (tx) => signIns.removeOldSignIns(tx, 150, 5),
      ...[4, 5, 6].map((n) => (tx: Db) => signIns.insertSignIn(tx, signIn(n, 600))),
      (tx) => signIns.removeSignIn(tx, id('2'), 's4'),
      (tx) => signIns.removeSignIn(tx, id('1'), 's4'),
      (tx) => signIns.removeOtherSignIns(tx, id('1'), 's5'),
      (tx) => signIns.replaceLink(tx, link(1, id('1'))),
      (tx) => signIns.replaceLink(tx, link(2, id('1'))),
      (tx) => signIns.replaceLink(tx, link(3, id('2'))),
      (tx) => signIns.spendLink(tx, bytes(1), 9),
      (tx) => signIns.spendLink(tx, bytes(2), 50),
      (tx) => signIns.spendLink(tx, bytes(2), 49),
      (tx) => signIns.removeOldLinks(tx, 50),
      (tx) => signIns.replaceLink(tx, link(4, id('1'))),
      (tx) => signIns.removeLinkOfUser(tx, id('1')),
      (tx) => signIns.removeSignInsOfUser(tx, id('1')),
    ],
  ],
  [
    'the audit log',
    [
      (tx) => acts.insertAuditEvents(tx, []),
      (tx) =>
        acts.insertAuditEvents(
          tx,
          Array.from({ length: 1001 }, (_, i) => ({
            atS: i,
            accountId: i % 2 ? A : null,
            actor: KEY,
            kind: 'k',
            subject: `${i}`,
            details: null,
          })),
        ),
      (tx) => acts.listAuditRows(tx, A, { limit: 3, below: 900 }),
      (tx) => acts.listAuditRows(tx, undefined, { limit: 3 }),
      (tx) => acts.listAuditRowsOf(tx, A, 'none', 3),
      (tx) => acts.findLastOfInstallation(tx, 'master-key:rotated', 'none'),
      (tx) => acts.removeAuditEventsBefore(tx, 990, 1000),
    ],
  ],
  [
    'kept answers',
    [
      (tx) =>
        answers.insertStoredResponse(
          tx,
          { accountId: A, idempotencyKey: 'k', requestHash: bytes(1), wrappedResponse: bytes(2), respondedAtS: 10 },
          0,
        ),
      (tx) =>
        answers.insertStoredResponse(
          tx,
          { accountId: A, idempotencyKey: 'k', requestHash: bytes(3), wrappedResponse: bytes(4), respondedAtS: 11 },
          9,
        ),
      (tx) =>
        answers.insertStoredResponse(
          tx,
          { accountId: A, idempotencyKey: 'k', requestHash: bytes(3), wrappedResponse: bytes(4), respondedAtS: 11 },
          10,
        ),
      (tx) => answers.findStoredResponse(tx, { accountId: A, idempotencyKey: 'k' }, 10),
      (tx) => answers.findStoredResponse(tx, { accountId: A, idempotencyKey: 'k' }, 11),
      (tx) => answers.removeStoredResponsesUntil(tx, 12, 5),
    ],
  ],
  [
    'folders',
    [
      (tx) => folders.insertFolder(tx, A, { id: 'f1', parentId: 'root', name: 'ÜBER', createdAtS: 1 }),
      (tx) => folders.insertFolder(tx, A, { id: 'f2', parentId: 'f1', name: 'über alles', createdAtS: 1 }),
      (tx) => folders.insertFolder(tx, A, { id: 'f3', parentId: 'root', name: 'zuletzt', createdAtS: 1 }),
      (tx) => folders.findFolder(tx, A, 'f1'),
      (tx) => folders.findFolder(tx, B, 'f1'),
      (tx) => folders.findFolderIdIn(tx, A, 'root', 'ÜBER'),
      (tx) => folders.countFolders(tx, A),
      (tx) => folders.listFoldersIn(tx, A, 'root'),
      (tx) => folders.listFoldersByPrefix(tx, A, { name: 'Üb', isWhole: false }, 10),
      (tx) => folders.listFoldersByPrefix(tx, A, { name: 'ÜBER', isWhole: true }, 10),
      (tx) => folders.listAncestors(tx, A, ['f2', 'f1', 'f3']),
      (tx) => folders.countLevelsBelow(tx, A, 'root'),
      (tx) => folders.updateFolder(tx, A, 'f3', { name: 'Zuerst', parentId: 'f1' }),
    ],
  ],
  [
    'videos',
    [
      ...VIDEOS.map(
        (each, i) => (tx: Db) =>
          videos.insertVideo(tx, i < 4 ? A : B, {
            id: each,
            title: `Video № ${i} ΑΣ %_\\'"`,
            uploadTimeS: i,
            ...(i === 1 ? { folderId: 'f1' } : {}),
            ...(i === 0 ? { addedBy: 'ann' } : {}),
          }),
      ),
      (tx) => videos.insertVideo(tx, A, { id: V1, title: 'an id twice', uploadTimeS: 1 }),
      (tx) => videos.findAccountOfVideo(tx, V1),
      (tx) => videos.hasAddedAll(tx, A, 'ann', [V1, V1]),
      (tx) => videos.hasAddedAll(tx, A, 'ann', [V1, V5]),
      (tx) => videos.hasAddedAll(tx, A, 'ben', [V1]),
      (tx) => videos.findVideo(tx, A, V1),
      (tx) => videos.findVideo(tx, B, V1),
      (tx) => videos.findVideosByPosition(tx, A, [1, 2, 5, 99]),
      (tx) => videos.listPositions(tx, A, [V1, V5]),
      (tx) => videos.updateVideo(tx, A, V3, { title: 'Ein anderer Titel', description: '🎬', public: 0, folderId: 'f2' }),
      (tx) => videos.updateVideo(tx, B, V3, { title: 'not theirs' }),
      (tx) => videos.updateVideo(tx, A, V3, { externalId: 'own ä', metadata: '{"ä \\"b":"c\\n"}' }),
      (tx) => ownFields.listExternalIds(tx, A, ['own ä', 'other']),
      (tx) => ownFields.listDeletedExternalIds(tx, [V3, V4]),
      (tx) => tx.selectFrom('videoMetadata').selectAll().execute(),
      (tx) => videos.listExisting(tx, A, [V3, V5]),
      (tx) => videos.listSummaries(tx, A, [V3, V5]),
      (tx) => videos.listExisting(tx, A, [V3, V4], 'ready'),
      (tx) => videos.setFileName(tx, V1, 'VIDEO.MP4'),
      (tx) => videos.addSize(tx, V1, 2 ** 40),
      (tx) => videos.findVideoDetails(tx, V3),
    ],
  ],
  [
    'tags',
    [
      (tx) => tags.insertTags(tx, A, [1, 2], ['b', 'ä', 'a']),
      (tx) => tags.insertTags(tx, A, [1, 3], ['c', 'a']),
      (tx) => tags.insertTags(tx, A, [], ['c']),
      (tx) => tags.insertTags(tx, A, [1], []),
      (tx) => tags.listTagRows(tx, A),
      (tx) => tags.listTagsOfVideos(tx, [1, 2, 3, 4]),
      (tx) => tags.removeVideoTags(tx, A, [1, 2], ['b', 'unknown']),
      (tx) => tags.maxTagCount(tx, [1, 2]),
      (tx) => tags.removeVideoTags(tx, A, [3]),
    ],
  ],
  [
    'search',
    [
      ...[
        {},
        { text: 'video' },
        { text: 'f' },
        { title: '%_\\' },
        { id: '11' },
        { fileName: 'mp4' },
        { tags: ['a'] },
        { tags: ['a', 'c'] },
        { folderId: 'f1' },
        { folderId: 'nowhere' },
        { text: 'ας', tags: ['a'], folderId: 'f1' },
      ].flatMap((filter) =>
        [
          { limit: 3, offset: 0 },
          { limit: 3, offset: 1, below: 3 },
        ].map((slice) => (tx: Db) => search.findPositions(tx, A, filter, slice)),
      ),
      ...(['title', 'uploadTime', 'length', 'size', 'views'] as const).flatMap((by) =>
        [{}, { tags: ['a'] }, { text: 'video' }].map(
          (filter) => (tx: Db) =>
            search.findSortedPositions(tx, A, { filter, order: { by, descending: by !== 'title' } }, { limit: 3, offset: 1 }),
        ),
      ),
    ],
  ],
  [
    'upload policies',
    [
      (tx) => policies.insertPolicy(tx, A, { key: 'orig/1', videoId: V1, expiresAtS: 10 }),
      (tx) => policies.insertPolicy(tx, A, { key: 'orig/4', videoId: V4, expiresAtS: 10 }),
      (tx) => policies.findPolicy(tx, 'orig/1'),
      (tx) => policies.spendPolicy(tx, 'orig/1', { spentAtS: 5, replaces: 4 }),
      (tx) => policies.spendPolicy(tx, 'orig/1', { spentAtS: 5, replaces: 0 }),
      (tx) => policies.listExpiredUploads(tx, 11, 5),
    ],
  ],
  [
    'resumable uploads',
    [
      (tx) => resumable.insertResumableUpload(tx, { ...RESUMABLE, id: 'a', videoId: V2, lengthBytes: 2 ** 40 }),
      (tx) => resumable.insertResumableUpload(tx, { ...RESUMABLE, id: 'b', videoId: V2, expiresAtS: 4 }),
      (tx) => resumable.findResumableUpload(tx, A, 'a'),
      (tx) => resumable.findResumableUpload(tx, B, 'a'),
      (tx) => resumable.updateResumableUpload(tx, 'a', 0, { ...PROGRESS, receivedBytes: 2 ** 39, receivedState: bytes(3) }),
      (tx) => resumable.updateResumableUpload(tx, 'a', 0, PROGRESS),
      (tx) => storage.sumStoredBytes(tx, A),
      (tx) => resumable.finishResumableUpload(tx, 'a', 0, { sizeBytes: 9, finishedAtS: 7, expiresAtS: 8 }),
      (tx) => resumable.finishResumableUpload(tx, 'a', 2 ** 39, { sizeBytes: 2 ** 40, finishedAtS: 7, expiresAtS: 8 }),
      (tx) => resumable.findResumableUpload(tx, A, 'a'),
      (tx) => resumable.listExpiredResumableUploads(tx, 8, 10),
      (tx) => resumable.removeFinishedResumableUploads(tx, ['a', 'b']),
      (tx) => resumable.removeUnfinishedResumableUpload(tx, 'b'),
      (tx) => resumable.removeUnfinishedResumableUpload(tx, 'b'),
      (tx) => resumable.listExpiredResumableUploads(tx, 8, 10),
    ],
  ],
  [
    'upload tokens',
    [
      (tx) => tokens.insertUploadToken(tx, { ...TOKEN, id: 't1', hash: bytes(71), apiKeyId: KEY, reference: 'ann' }),
      (tx) => tokens.insertUploadToken(tx, { ...TOKEN, id: 't2', hash: bytes(72), consoleUserId: 'u1', maxSizeBytes: 2 ** 40 }),
      (tx) => tokens.findUploadToken(tx, bytes(71)),
      (tx) => tokens.findUploadToken(tx, bytes(72)),
      (tx) => tokens.hasLiveToken(tx, TOKEN.origin, 9),
      (tx) => tokens.hasLiveToken(tx, TOKEN.origin, 10),
      (tx) => tokens.takeFile(tx, 't1', 9),
      (tx) => tokens.takeFile(tx, 't1', 9),
      (tx) => tokens.takeFile(tx, 't2', 10),
      (tx) => videos.returnFilesOfToken(tx, 't1', 1),
      (tx) => tokens.setUploadToken(tx, V3, { id: 't1', reference: 'ann', consoleUserId: null }),
      (tx) => tokens.listUnfinishedOfToken(tx, 't1'),
      (tx) => tokens.setUploadReference(tx, V2, 't1'),
      (tx) => tokens.setUploadReference(tx, V2, null),
      (tx) => tokens.removeReplacingOfToken(tx, 't1', V2),
      (tx) => tokens.listTokenReferences(tx, ['t1', 't2']),
      (tx) => tokens.revokeLiveToken(tx, B, { id: 't2', madeBy: undefined, nowS: 9 }),
      (tx) => tokens.revokeLiveToken(tx, A, { id: 't2', madeBy: 'u2', nowS: 9 }),
      (tx) => tokens.revokeLiveToken(tx, A, { id: 't2', madeBy: 'u1', nowS: 9 }),
      (tx) => tokens.listUploadTokens(tx, A, { limit: 5, below: undefined, madeBy: undefined }),
      (tx) => tokens.listUploadTokens(tx, A, { limit: 5, below: 2, madeBy: 'u1' }),
      (tx) => tokens.removeExpiredTokens(tx, 10, 5),
      (tx) => tokens.removeExpiredTokens(tx, 11, 1),
    ],
  ],
  [
    'imports',
    [
      (tx) => imports.insertImport(tx, { videoId: V2, accountId: A, host: 'a.example', wrappedUrl: bytes(1), nextAttemptAtS: 5 }),
      (tx) => imports.insertImport(tx, { videoId: V5, accountId: B, host: 'b.example', wrappedUrl: bytes(1), nextAttemptAtS: 0 }),
      (tx) => imports.countImports(tx, A),
      (tx) => imports.listAccountsWithImports(tx, 5, free),
      (tx) => imports.listAccountsWithImports(tx, 5, { accountIds: ['x'], hosts: ['c.example'] }),
      (tx) => imports.findDueImport(tx, A, 5, free),
      (tx) => imports.findImport(tx, V2),
      (tx) => imports.beginImportAttempt(tx, V2, { nowS: 5, maxS: 95 }),
      (tx) => imports.beginImportAttempt(tx, V2, { nowS: 4, maxS: 95 }),
      (tx) =>
        imports.updateImport(tx, V2, {
          file: `${V2}/${'e'.repeat(32)}.sealed`,
          receivedBytes: 2 ** 40,
          receivedState: bytes(3),
        }),
      (tx) => imports.resumeImports(tx),
      (tx) => imports.isImportHeld(tx, B, V5),
      (tx) => imports.holdImport(tx, V5),
      (tx) => imports.resumeImports(tx),
      ...[A, B].map((account) => async (tx: Db) => [
        await imports.isImportHeld(tx, account, V5),
        await imports.countImports(tx, account),
        await imports.findDueImport(tx, account, 2 ** 40, free),
      ]),
      ...[1, 2].map(() => (tx: Db) => imports.resumeHeldImport(tx, V5)),
    ],
  ],
  [
    'sources',
    [
      (tx) =>
        sources.insertSource(tx, {
          videoId: V1,
          file: `${V1}/${'f'.repeat(32)}.sealed`,
          sizeBytes: 2 ** 41,
          sha256: bytes(1),
          wrappedKey: bytes(2),
          iv: bytes(3),
          macs: bytes(4),
        }),
      (tx) => sources.findSource(tx, V1),
      (tx) => sources.setDuplicateOf(tx, V3, Buffer.alloc(32, 1)),
      (tx) => moves.insertMovedVideo(tx, { accountId: A, origin: 'https://a.example', originId: V4, videoId: V1 }),
      (tx) => moves.setFilesMoved(tx, { accountId: A, origin: 'https://a.example', originId: V4 }),
      (tx) => moves.findMovedVideo(tx, { accountId: A, origin: 'https://a.example', originId: V4 }),
      (tx) => moves.findMovedVideo(tx, { accountId: B, origin: 'https://a.example', originId: V4 }),
      (tx) => moves.listMovedVideos(tx, { accountId: A, origin: 'https://a.example' }),
      (tx) =>
        sources.listReferencedSources(tx, [
          `${V1}/${'f'.repeat(32)}.sealed`,
          `${V2}/${'e'.repeat(32)}.sealed`,
          `${V3}/${'e'.repeat(32)}.sealed`,
        ]),
      (tx) => imports.removeImport(tx, V2),
      (tx) => imports.removeImport(tx, V2),
    ],
  ],
  [
    'generations, chunks and segments',
    [
      (tx) => moveStatus(tx, V1, 'Queued'),
      (tx) => generations.findUnplanned(tx, { nowS: 1, lastAccountId: '' }),
      (tx) => generations.findUnplanned(tx, { nowS: 1, only: V1, lastAccountId: '' }),
      (tx) => generations.findUnplanned(tx, { nowS: 1, only: V2, lastAccountId: '' }),
      (tx) => generations.findIfUnplanned(tx, V1),
      (tx) => moveStatus(tx, V1, 'Processing'),
      (tx) => setStatusReason(tx, VIDEO, 'It breaks off.'),
      (tx) =>
        generations.insertGeneration(tx, { ...VIDEO, wrappedContentKey: bytes(1), plan: PLAN, encoder: 'e', createdAtS: 1 }),
      (tx) => generations.findGeneration(tx, { videoId: V1, generation: 1 }),
      (tx) => chunks.insertChunks(tx, { videoId: V1, generation: 1, attempt: 0 }, [chunk(0, 0), chunk(2, 1), chunk(4, 2)]),
      (tx) => chunks.insertChunks(tx, { videoId: V1, generation: 1, attempt: 0 }, []),
      (tx) => chunks.findNextChunk(tx, { nowS: 1, upToPriority: 0 }),
      (tx) => chunks.findNextChunk(tx, { nowS: 1, abovePriority: 0 }),
      (tx) => chunks.findOldestChunk(tx, { nowS: 1 }),
      (tx) => chunks.findNextChunk(tx, { nowS: 1, only: V1 }),
      (tx) => chunks.findNextChunk(tx, { nowS: 1, only: V2 }),
      (tx) => chunks.findNextChunk(tx, { nowS: 1, by: claiming('g', BOTH, { video: ['f'], audio: ['f'] }) }),
      (tx) => chunks.findNextChunk(tx, { nowS: 1, by: claiming('g', BOTH, { video: ['e', 'f'], audio: [] }) }),
      (tx) => chunks.findNextChunk(tx, { nowS: 1, by: claiming('g', BOTH, { video: [], audio: ['e'] }) }),
      (tx) => chunks.findNextChunk(tx, { nowS: 1, by: claiming('g', ['audio'], { video: [], audio: [] }) }),
      (tx) => chunks.findNextChunk(tx, { nowS: 1, by: claiming('e', ['audio'], { video: [], audio: [] }) }),
      (tx) => capacities.countPendingSegments(tx).then((counts) => [...counts]),
      (tx) => capacities.listWaiting(tx),
      (tx) => chunks.beginRun(tx, runOf(chunk(0, 0), 0)),
      (tx) => chunks.beginRun(tx, runOf(chunk(0, 0), 0)),
      (tx) => chunks.releaseRun(tx, chunks.subjectOfNextRun(runOf(chunk(0, 0), 0))),
      (tx) => chunks.beginRun(tx, runOf(chunk(0, 0), 1)),
      (tx) => chunks.beginRun(tx, runOf(chunk(2, 1), 0)),
      (tx) => chunks.hasPendingChunks(tx),
      (tx) => chunks.isRunning(tx, chunkKey(0)),
      (tx) => chunks.isCurrentRun(tx, runOf(chunk(0, 0), 1)),
      (tx) => chunks.isCurrentRun(tx, runOf(chunk(0, 0), 2)),
      (tx) => generations.insertSegment(tx, VIDEO, segment(0, bytes(1))),
      (tx) => generations.insertSegment(tx, VIDEO, segment(0, bytes(1))),
      (tx) => generations.insertSegment(tx, VIDEO, segment(1, bytes(1))),
      (tx) => generations.insertSegment(tx, VIDEO, segment(2, bytes(2))),
      (tx) => generations.moveToReadyIfPlayable(tx, { ...VIDEO, plan: PLAN }),
      (tx) => chunks.endRun(tx, runOf(chunk(0, 0), 2), 'done'),
      (tx) => chunks.endRun(tx, runOf(chunk(0, 0), 2), 'done'),
      (tx) => chunks.releaseRun(tx, chunks.subjectOfNextRun(runOf(chunk(2, 1), 0))),
      (tx) => chunks.findPendingChunk(tx, { ...VIDEO, kind: 'audio' }, 3),
      (tx) => chunks.replaceChunk(tx, { ...runOf(chunk(2, 1), 1), state: 'pending' }, []),
      (tx) => chunks.listUnfinishedChunks(tx, { videoId: V1, generation: 1, kind: 'audio' }),
      (tx) => chunks.listChunks(tx, { videoId: V1, generation: 1, kind: 'audio' }),
      (tx) => {
        const segments = [{ ...segment(0, bytes(1)), renditionId: 102, file: 'added' }]
        return dubRenditions.insertCompleteRendition(tx, VIDEO, { id: 102, gainDb: 1.5, segments, plan: PLAN })
      },
      (tx) => generations.renditionSizes(tx, VIDEO),
      (tx) => dubRenditions.removeRendition(tx, VIDEO, { id: 102, plan: PLAN }),
      (tx) => generations.renditionSizes(tx, VIDEO),
      (tx) => chunks.countSequentialChunks(tx, { ...VIDEO, kind: 'video' }),
      (tx) => progress.countChunks(tx, VIDEO),
      (tx) => progress.countOpenChunks(tx),
      (tx) => progress.findEncodeState(tx, A, V1),
      (tx) => chunks.abandonChunks(tx, V1),
      (tx) => generations.countSegments(tx, VIDEO),
      (tx) => generations.renditionSizes(tx, VIDEO),
      (tx) => generations.listPublishedNumbers(tx, VIDEO, 9, 1),
      (tx) => generations.findSegment(tx, VIDEO, 9, 1),
      (tx) => generations.listSegmentFiles(tx, VIDEO, 9),
      (tx) => damage.setDamaged(tx, { ...VIDEO, renditionId: 9, number: 1 }, 1),
      (tx) => damage.setDamaged(tx, { ...VIDEO, renditionId: 9, number: 1 }, 1),
      (tx) => damage.setDamaged(tx, { ...VIDEO, renditionId: 9, number: 7 }, 1),
      (tx) => damage.isDamaged(tx, { ...VIDEO, renditionId: 9, number: 1 }),
      (tx) => damage.hasDamage(tx, VIDEO),
      (tx) => damage.listDamagedNumbers(tx, VIDEO, 9),
      async (tx) => [...(await damage.mapWholeFiles(tx, VIDEO, 9))],
      (tx) => damage.hasDamage(tx, { ...VIDEO, generation: 2 }),
      (tx) => generations.findSegment(tx, VIDEO, 9, 1),
      (tx) => damage.listPublished(tx, runOf(chunk(0, 0), 2)),
      (tx) => damage.listDamaged(tx, runOf(chunk(0, 0), 2)),
      (tx) => damage.listDamaged(tx, runOf(chunk(2, 1), 2)),
      (tx) => damage.findFinishedChunk(tx, { ...VIDEO, renditionId: 9, number: 1 }),
      (tx) => damage.listSegmentsAfter(tx, undefined, 1),
      (tx) => damage.listSegmentsAfter(tx, { ...VIDEO, renditionId: 9, number: 0 }, 5),
      (tx) => damage.totalSizeAfter(tx, { ...VIDEO, renditionId: 9, number: 0 }),
      (tx) => damage.totalSizeAfter(tx, { ...VIDEO, renditionId: 9, number: 1 }),
      (tx) => damage.findPlayable(tx, [V1, V2]),
      (tx) => setting.saveSetting(tx, 'a check', '1'),
      (tx) => setting.saveSetting(tx, 'a check', '2'),
      (tx) => setting.findSetting(tx, 'a check'),
      (tx) => chunks.reopenChunk(tx, chunkKey(0)),
      (tx) => chunks.reopenChunk(tx, chunkKey(0), true),
      (tx) => chunks.setPriority(tx, chunkKey(0), -1),
      (tx) => chunks.beginRun(tx, { ...chunkKey(0), attempt: 2 }),
      (tx) => chunks.endRun(tx, runOf(chunk(0, 0), 3), 'done', 'worker'),
      (tx) => chunks.setPriority(tx, chunkKey(0), 5),
      (tx) => chunks.findChunkOfWorker(tx, 'worker', []),
      (tx) => chunks.findChunkOfWorker(tx, 'worker', [V1]),
      (tx) => chunks.forgetWorker(tx, chunkKey(0)),
      (tx) => chunks.findChunkOfWorker(tx, 'worker', []),
      (tx) => damage.setDamaged(tx, { ...VIDEO, renditionId: 9, number: 1 }, 0),
      (tx) => damage.countRepair(tx, { ...VIDEO, renditionId: 9, number: 1 }),
      (tx) => damage.listRepairs(tx, VIDEO),
      (tx) => generations.listTrackKinds(tx, VIDEO),
      (tx) => generations.findInit(tx, VIDEO, 9),
      (tx) => generations.findGain(tx, VIDEO, 9),
      ...[12.3, 4].map((gainDb) => async (tx: Db) => {
        await generations.setGain(tx, VIDEO, 9, gainDb)
        return generations.findGain(tx, VIDEO, 9)
      }),
      ...[V1, 'none'].map((videoId) => (tx: Db) => accounts.isLoudnessNormalized(tx, videoId)),
      (tx) => accounts.findTranscribeLanguage(tx, A),
      (tx) => generations.findUnfinished(tx, { nowS: 9 }),
      (tx) =>
        tx
          .deleteFrom('chunk')
          .where('state', '=', 'failed')
          .execute()
          .then(() => undefined),
      (tx) => generations.findUnfinished(tx, { nowS: 9 }),
      (tx) => generations.findUnfinished(tx, { nowS: 9, only: V1 }),
      (tx) => generations.findUnfinished(tx, { nowS: 9, only: V2 }),
      (tx) => generations.isFinished(tx, VIDEO),
      (tx) => generations.finishGeneration(tx, VIDEO, { segmentBytes: 2 ** 42, nowS: 9 }),
      (tx) => generations.finishGeneration(tx, VIDEO, { segmentBytes: 2 ** 42, nowS: 9 }),
      (tx) => generations.isFinished(tx, VIDEO),
      (tx) => generations.findLaterGeneration(tx, VIDEO),
      (tx) => generations.findPlayedGeneration(tx, V1),
      (tx) => generations.switchToGeneration(tx, VIDEO),
      (tx) =>
        generations.insertGeneration(tx, {
          ...VIDEO,
          generation: 2,
          wrappedContentKey: bytes(2),
          plan: PLAN,
          encoder: 'e',
          createdAtS: 2,
        }),
      (tx) => generations.findLaterGeneration(tx, VIDEO),
      (tx) => posters.publishExtractedPosters(tx, { ...VIDEO, generation: 2 }),
      (tx) => generations.switchToGeneration(tx, { ...VIDEO, generation: 2 }),
      (tx) => tx.updateTable('video').set({ status: 'ready', generation: 1 }).where('id', '=', V1).execute(),
      (tx) => replacements.takeNumber(tx, V1),
      (tx) => replacements.takeNumber(tx, V1),
      (tx) => replacements.insertReplacement(tx, { videoId: V1, kind: 'replace', sourceNumber: 1, requestedAtS: 5 }),
      (tx) => replacements.findReplacement(tx, V1),
      (tx) => replacements.listReplacements(tx, [V1, V2]),
      (tx) =>
        replacements.assertNoReplacement(tx, V1).then(
          () => 'none',
          () => 'one',
        ),
      (tx) => generations.findUnplannedReplacement(tx, { nowS: 9 }),
      (tx) => replacements.updateReplacement(tx, V1, { problem: 'It is no video.' }),
      (tx) => replacements.assertReplaceable(tx, A, V1),
      (tx) => generations.findUnplannedReplacement(tx, { nowS: 9, only: V1 }),
      (tx) => replacements.removeReplacement(tx, V1),
      (tx) => posters.hideExtractedPosters(tx, VIDEO),
      (tx) => generations.keepGeneration(tx, VIDEO, { keptUntilS: 20, keptBy: 'replace', segmentBytes: 2 ** 40 }),
      (tx) => generations.isKept(tx, VIDEO),
      (tx) => generations.listKept(tx, V1),
      (tx) => generations.listEndedKept(tx, 20, 5),
      (tx) => generations.listEndedKept(tx, 19, 5),
      (tx) => generations.alignSource(tx, VIDEO),
      (tx) => generations.findTimelineStart(tx, V1, 1),
      (tx) => generations.playGeneration(tx, { ...VIDEO, generation: 2 }),
      (tx) => generations.playGeneration(tx, VIDEO),
      (tx) => generations.releaseKept(tx, VIDEO),
      (tx) => generations.removeUnusedSource(tx, V1, 1),
      (tx) => damage.listDamagedChunks(tx, VIDEO),
      (tx) => files.renewMp4(tx, { videoId: V1, createdAtS: 7 }),
      (tx) => generations.removeGeneration(tx, { ...VIDEO, generation: 2 }),
      (tx) => generations.listReferencedSegments(tx, [`${V1}/1/9/0.${'a'.repeat(12)}.m4s`]),
    ],
  ],
  [
    'posters and files',
    [
      (tx) => posters.insertExtractedPosters(tx, VIDEO, [poster], 3),
      (tx) => posters.insertExtractedPosters(tx, VIDEO, [poster], 3),
      (tx) => posters.isPosterExtractionDone(tx, VIDEO),
      (tx) => posters.listGenerationBlobs(tx, VIDEO),
      (tx) => posters.listEnabledPosters(tx, [V1, V2]),
      (tx) => posters.findPosterByToken(tx, 't'),
      (tx) => files.insertAttachment(tx, A, caption, [captionFile('c1', 'one'), captionFile('c2', 'one')]),
      (tx) => files.insertAttachment(tx, A, caption, [captionFile(`${V1}/${'y'.repeat(22)}.sealed`, 'two')]),
      (tx) => files.insertAttachment(tx, B, caption, [captionFile('c4', 'three')]),
      (tx) => files.hasPublicFile(tx, caption),
      async (tx) => {
        const file = (await files.listFileRows(tx, V1)).findLast(({ type }) => type === 'caption') ?? expect.fail('no captions')
        return [
          await files.setShown(tx, file, false),
          await files.hasPublicFile(tx, caption),
          await files.setShown(tx, file, true),
          await files.hasPublicFile(tx, caption),
        ]
      },
      (tx) => embedded.hasEmbeddedCaptions(tx, V1),
      (tx) =>
        embedded.insertEmbeddedCaptions(tx, { videoId: V1, createdAtS: 4 }, [
          { streamIndex: 2, language: 'fr', title: null },
          { streamIndex: 3, language: 'und', title: 'Signs' },
        ]),
      (tx) => embedded.hasEmbeddedCaptions(tx, V1),
      (tx) => embedded.listAccountsWithUnreadCaptions(tx, 5),
      (tx) => embedded.listUnreadTracks(tx, V1),
      async (tx) => {
        const unread = (await embedded.findUnreadCaptions(tx, A, 5)) ?? expect.fail('no captions to be read')
        return [
          await embedded.beginReadingCaptions(tx, unread),
          await embedded.findUnreadCaptions(tx, A, 5),
          await embedded.refundReadingCaptions(tx, unread),
          await embedded.findUnreadCaptions(tx, A, 5),
        ]
      },
      async (tx) => {
        const [track] = await embedded.listUnreadTracks(tx, V1)
        const read = { blob: 'e', sizeBytes: 3 }
        return [
          await embedded.finishReadingCaptions(tx, track?.id ?? 0, read),
          await embedded.finishReadingCaptions(tx, track?.id ?? 0, read),
        ]
      },
      (tx) => embedded.failReadingCaptions(tx, V1, 'Why'),
      (tx) => embedded.findUnreadCaptions(tx, A, 5),
      (tx) => transcriptions.insertTranscription(tx, { videoId: V1, language: 'en', createdAtS: 4 }),
      (tx) => transcriptions.hasReviewedCaptions(tx, V1, 'en'),
      (tx) => transcriptions.listAccountsToTranscribe(tx, 5),
      async (tx) => {
        const wanted = (await transcriptions.findUntranscribed(tx, A, 5)) ?? expect.fail('nothing to be transcribed')
        return [
          await transcriptions.beginTranscription(tx, wanted),
          await transcriptions.findUntranscribed(tx, A, 5),
          await transcriptions.refundTranscription(tx, wanted),
          await transcriptions.findUntranscribed(tx, A, 5),
          await transcriptions.updateUntranscribed(tx, wanted.id, { problem: 'Why' }),
          await transcriptions.findUntranscribed(tx, A, 5),
          await transcriptions.insertTranscription(tx, { videoId: V1, language: 'en', createdAtS: 5 }),
          await transcriptions.updateUntranscribed(tx, wanted.id, { blob: 'made', sizeBytes: 3, enabled: 1 }),
          await transcriptions.disableAutomatic(tx, V1, 'en'),
          await files.setReviewed(tx, wanted),
          await transcriptions.hasReviewedCaptions(tx, V1, 'en'),
        ]
      },
      async (tx) => {
        for (const file of await files.listFileRows(tx, V1)) if (file.streamIndex !== null) await files.removeFile(tx, file)
        return files.listFileRows(tx, V1)
      },
      (tx) => files.listCaptions(tx, V1),
      (tx) => files.listHiddenCaptionsToo(tx, V1),
      (tx) => files.findRenditionFiles(tx, VIDEO),
      (tx) =>
        files.listReferencedFileBlobs(tx, [poster.blob, `${V1}/${'y'.repeat(22)}.sealed`, `${V1}/${'z'.repeat(22)}.sealed`]),
      (tx) => files.findFile(tx, A, V1, 4),
      (tx) => files.findFileAnywhere(tx, 4),
      async (tx) => files.removeFile(tx, (await files.listFileRows(tx, V1)).at(-1) ?? expect.fail('no file')),
      (tx) => mp4s.hasMp4(tx, V1),
      (tx) => mp4s.insertRequestedMp4(tx, { videoId: V1, createdAtS: 5, widthPx: 640, heightPx: 360 }),
      (tx) => mp4s.insertRequestedMp4(tx, { videoId: V1, createdAtS: 6 }),
      (tx) => mp4s.hasMp4(tx, V1),
      (tx) => mp4s.listAccountsWithPendingMp4s(tx, 5),
      (tx) => mp4s.findPendingMp4(tx, A, 5),
      async (tx) => {
        const unmade = (await mp4s.findPendingMp4(tx, A, 5)) ?? expect.fail('no MP4')
        return [
          await mp4s.beginMp4Attempt(tx, unmade),
          await mp4s.findPendingMp4(tx, A, 5),
          await mp4s.refundMp4Attempt(tx, unmade),
          await mp4s.refundMp4Attempt(tx, unmade),
          await mp4s.findPendingMp4(tx, A, 5),
        ]
      },
      async (tx) => mp4s.finishMp4(tx, (await mp4s.findPendingMp4(tx, A, 5))?.id ?? 0, { blob: 'm', sizeBytes: 2 ** 40 }),
      (tx) => mp4s.finishMp4(tx, 0, { enabled: 0 }),
      (tx) => fileDamage.listFilesAfter(tx, 0, 3),
      (tx) => fileDamage.listFilesAfter(tx, 3, 100),
      (tx) => fileDamage.totalFileSizeAfter(tx, 0),
      (tx) => fileDamage.totalFileSizeAfter(tx, 10 ** 6),
      async (tx) => {
        const name = { videoId: V1, name: poster.blob }
        const found = (await fileDamage.findFileDamage(tx, name)) ?? expect.fail('no poster')
        await fileDamage.setFileDamaged(tx, found.id, 1)
        return [found, await fileDamage.findFileDamage(tx, name), await fileDamage.findFileDamage(tx, { ...name, name: 'x' })]
      },
      (tx) => posters.forgetPosterExtraction(tx, VIDEO),
      (tx) => posters.insertExtractedPosters(tx, VIDEO, [{ ...poster, blob: 'again', token: 'u' }], 4),
      (tx) => fileDamage.findFileDamage(tx, { videoId: V1, name: 'again' }),
      (tx) => mp4s.requeueMp4(tx, 'm'),
      (tx) => demo.insertDemo(tx, V1),
      (tx) => demo.findDemoVideo(tx),
    ],
  ],
  [
    'claims',
    [
      (tx) => claims.insertClaim(tx, workClaim('one'), 5),
      (tx) => claims.insertClaim(tx, workClaim('two'), 99),
      ...['one', 'two'].map((id) => (tx: Db) => claims.hasClaim(tx, workClaim(id))),
      (tx) => claims.renewClaims(tx, ['one', 'two'], 30),
      (tx) => claims.isClaimed(tx, workClaim('one')),
      (tx) => claims.listSuspects(tx, { server: 's', isOnlyServer: false }, 5),
      (tx) => claims.listSuspects(tx, { server: 'other', isOnlyServer: false }, 29),
      (tx) => claims.listSuspects(tx, { server: 'other', isOnlyServer: false }, 30),
      (tx) => claims.listSuspects(tx, { server: 'other', isOnlyServer: true }, 5),
      (tx) => claims.removeClaimsOfOthers(tx, { server: 's', kinds: ['mp4'], videoIds: [V1] }),
      (tx) => claims.removeClaimsOfOthers(tx, { server: 'other', kinds: ['video', 'chunk'], videoIds: [V1] }),
      ...['two', 'one', 'one'].map((id) => (tx: Db) => claims.removeClaim(tx, workClaim(id))),
      (tx) => claims.insertClaim(tx, { ...workClaim('five'), subject: `${V1}/1` }, 5),
      (tx) => claims.removeClaimsOfOthers(tx, { server: 'other', kinds: [workClaim('five').kind], videoIds: [V1] }),
      (tx) => claims.hasClaim(tx, { ...workClaim('five'), subject: `${V1}/1` }),
      (tx) => claims.insertBackOff(tx, { kind: 'mp4', subject: V1 }, 40, true),
      (tx) => claims.insertBackOff(tx, { kind: 'mp4', subject: V1 }, 50, true),
      (tx) => claims.insertBackOff(tx, { kind: 'mp4', subject: V2 }, 50, false),
      ...[49, 50].map((nowS) => (tx: Db) => claims.claimedSubjects(tx, 'mp4', nowS).orderBy('subject').execute()),
      (tx) => claims.countFailures(tx, { kind: 'mp4', subject: V1 }),
      (tx) => claims.countFailures(tx, { kind: 'video', subject: V1 }),
      (tx) => claims.resetFailures(tx, { kind: 'mp4', subject: V1 }),
      ...[49, 50].map((nowS) => (tx: Db) => claims.insertClaim(tx, workClaim('three'), nowS)),
      (tx) => claims.forgetFailures(tx, { kind: 'mp4', subject: V1 }),
      (tx) => claims.removeBackOffs(tx, 51),
      (tx) => claims.removeClaim(tx, workClaim('three')),
      (tx) => imports.listRunningImports(tx),
    ],
  ],
  [
    'webhooks and deliveries',
    [
      (tx) => webhooks.insertWebhook(tx, webhook, 2),
      (tx) => webhooks.insertWebhook(tx, { ...webhook, id: 'h2', event: 'video:ready', disabledReason: 'off' }, 2),
      (tx) => webhooks.insertWebhook(tx, { ...webhook, id: 'h3' }, 2),
      (tx) => outbox.takeSequences(tx, 'video:readyall', [V1, V2]),
      (tx) => outbox.takeSequences(tx, 'video:ready', [V1]),
      (tx) => outbox.takeSequence(tx, 'alert', A),
      (tx) => outbox.findEventVideos(tx, [V2, V1]),
      (tx) =>
        outbox.insertDelivery(
          tx,
          { id: 'h2', lastSequence: 1, disabledReason: 'off' },
          { sequence: 1, event: 'video:ready', timeMs: 1_800_000_000_123, body: '{"é":1}' },
        ),
      ...[1, 2, 3].map(
        (sequence) => (tx: Db) =>
          outbox.insertDelivery(
            tx,
            { id: 'h1', lastSequence: 3, disabledReason: null },
            { sequence, event: 'video:ready', timeMs: 1_800_000_000_000 + sequence, body: `body ${sequence}` },
          ),
      ),
      (tx) => deliveries.findDueWebhook(tx, 5, idle),
      (tx) => deliveries.findDueWebhook(tx, 5, { accountIds: ['x'], onlyHealthy: true }),
      (tx) => deliveries.claimDelivery(tx, 'h1', 5, 'new'),
      (tx) => deliveries.claimDelivery(tx, 'h1', 5, 'new'),
      (tx) => deliveries.settleDelivery(tx, delivery(1), { state: 'delivered', status: 200, finishedAtS: 6 }),
      (tx) => deliveries.settleDelivery(tx, delivery(1), { state: 'delivered' }),
      (tx) => deliveries.settleDelivery(tx, delivery(2), { state: 'failed', problem: 'refused', finishedAtS: 6 }),
      (tx) => deliveries.recordSuccess(tx, 'h1', 6),
      (tx) => deliveries.recordFailure(tx, 'h1', 7),
      (tx) => deliveries.recordFailure(tx, 'h1', 8),
      (tx) => deliveries.backOffWebhook(tx, 'h1', 9),
      (tx) => deliveries.listOldestRetries(tx),
      (tx) => deliveries.claimDelivery(tx, 'h1', 9, 'retry'),
      (tx) => claims.insertClaim(tx, { ...workClaim('four'), kind: 'webhook', subject: 'h1' }, 5),
      (tx) => deliveries.listSendingWebhooks(tx),
      (tx) => deliveries.findDueWebhook(tx, 9, idle),
      (tx) => deliveries.releaseDeliveries(tx, 'h1'),
      (tx) => deliveries.listDeliveryRows(tx, 'h1', { limit: 2, offset: 1 }),
      (tx) => deliveries.countDeliveries(tx, 'h1'),
      (tx) => deliveries.countOpenDeliveries(tx),
      (tx) => webhooks.countDisabledWebhooks(tx),
      (tx) => webhooks.findAccountOfWebhook(tx, 'h1'),
      (tx) => deliveries.replayDelivery(tx, 'h1', 1),
      (tx) => deliveries.replayDelivery(tx, 'h1', 99),
      (tx) => webhooks.beginReplay(tx, 'h1'),
      (tx) => deliveries.listInterruptedBatches(tx),
      (tx) => deliveries.replayFailedBatch(tx, 'h1', 1),
      (tx) => deliveries.replayFailedBatch(tx, 'h1', 1),
      (tx) => webhooks.disableWebhook(tx, 'h1', 'off'),
      (tx) => deliveries.failPendingBatch(tx, 'h1', 30, 9),
      (tx) => webhooks.enableWebhook(tx, 'h1'),
      (tx) => webhooks.replaceSecret(tx, A, 'h1', { wrapped: bytes(7), previousEndsAtS: 99 }),
      (tx) => webhooks.findWebhook(tx, A, 'h1'),
      (tx) => webhooks.listWebhookRows(tx, A),
      (tx) => deliveries.removeOldDeliveries(tx, 29, 9),
      (tx) => deliveries.removeDeliveries(tx, 'h1', 9),
      (tx) => webhooks.removeWebhook(tx, A, 'h1'),
    ],
  ],
  [
    'strikes and bans',
    [
      (tx) => bans.insertStrike(tx, { scope: 'key', budget: 'reads', subject: KEY }, 5),
      (tx) => bans.findAccountOfUser(tx, id('1')),
      (tx) => bans.countStrikes(tx, { scope: 'key', budget: 'reads', subject: KEY }, 4),
      (tx) => bans.countStrikes(tx, { scope: 'key', budget: 'otp', subject: KEY }, 4),
      (tx) => bans.saveBan(tx, { scope: 'key', subject: KEY, budget: 'reads', beganAtS: 5, endsAtS: 10 }),
      (tx) => bans.saveBan(tx, { scope: 'key', subject: KEY, budget: 'writes', beganAtS: 6, endsAtS: 11 }),
      (tx) => bans.saveBan(tx, { scope: 'ip', subject: '192.0.2.1', budget: 'reads', beganAtS: 5, endsAtS: 20 }),
      (tx) => bans.lengthenBan(tx, { scope: 'key', budget: 'writes', subject: KEY }, 30),
      ...[29, 30].map((nowS) => (tx: Db) => bans.findCurrentBan(tx, { scope: 'key', budget: 'writes', subject: KEY }, nowS)),
      (tx) => bans.listBanRows(tx, 10),
      (tx) => bans.listAccountBanRows(tx, A, 10),
      (tx) => bans.hasAccountBan(tx, B, KEY),
      (tx) => bans.hasAccountBan(tx, A, KEY),
      (tx) => bans.removeAccountBan(tx, B, KEY),
      (tx) => bans.removeAccountBan(tx, A, KEY),
      (tx) => bans.removeBans(tx, '192.0.2.1'),
      (tx) => bans.removeOldBans(tx, 100, 4),
      (tx) => bans.removeStrikes(tx, KEY),
    ],
  ],
  [
    'files that have moved to another place',
    [
      (tx) => movedBlobs.addMovedBlob(tx, `sources/${V1}/a`),
      (tx) => movedBlobs.addMovedBlob(tx, `sources/${V1}/a`),
      (tx) => movedBlobs.addMovedBlob(tx, `files/${V1}/b`),
      (tx) => movedBlobs.findMovedBlobs(tx, [`sources/${V1}/a`, `sources/${V1}/b`]),
      (tx) => movedBlobs.listMovedBlobs(tx).then((names) => names.sort()),
      (tx) => movedBlobs.removeMovedBlobs(tx, [`sources/${V1}/a`]),
      (tx) => sources.listGrowingSources(tx).then((names) => names.sort()),
    ],
  ],
  [
    'images of watermarks',
    [
      (tx) =>
        watermarkImages.saveWatermarkImage(
          tx,
          { accountId: A, urlHash: bytes(1), sealed: bytes(9), problem: null, triedAtS: 1 },
          2,
        ),
      (tx) =>
        watermarkImages.saveWatermarkImage(
          tx,
          { accountId: A, urlHash: bytes(1), sealed: null, problem: 'gone', triedAtS: 2 },
          2,
        ),
      (tx) =>
        watermarkImages.saveWatermarkImage(tx, { accountId: A, urlHash: bytes(2), sealed: null, problem: 'no', triedAtS: 3 }, 1),
      (tx) => watermarkImages.findWatermarkImage(tx, A, bytes(2)),
      (tx) =>
        tx
          .updateTable('video')
          .set({ status: 'ready' })
          .where('id', '=', V2)
          .execute()
          .then(() => undefined),
    ],
  ],
  [
    'key budgets',
    [
      ...[1, 2, 3].map((n) => (tx: Db) => budgets.saveKeyBudget(tx, budget(n, n))),
      ...[1, 1].map(
        (version) => (tx: Db) => budgets.saveKeyBudget(tx, { ...budget(1, 9), version, levelS: 0.25, released: bytes(9) }),
      ),
      ...[1, 2, 9].map((n) => (tx: Db) => budgets.findKeyBudget(tx, budget(n, 0))),
      (tx) => budgets.removeOldKeyBudgets(tx, 4, 1),
      (tx) => budgets.removeOldKeyBudgets(tx, 4, 9),
      (tx) => budgets.removeOldKeyBudgets(tx, 4, 9),
    ],
  ],
  [
    'alerts',
    [
      ...[1, 1, 2, 3].map((n) => (tx: Db) => alerts.insertAlert(tx, alert(n), 2)),
      (tx) => alerts.insertAlert(tx, { ...alert(3), day: 1, userId: null }, 2),
      (tx) => alerts.insertAlert(tx, { ...alert(1), accountId: B }, 2),
      ...[{}, { cause: 'keys-drawn' }, { cause: 'none' }, { userId: 'viewer' }, { userId: 'viewer', cause: 'keys-drawn' }].map(
        (filter) => (tx: Db) => alerts.listAlertRows(tx, A, filter, { limit: 2 }),
      ),
      (tx) => alerts.listAlertRows(tx, A, {}, { limit: 2, below: 2 }),
      ...[2, 99, 1].map((id) => (tx: Db) => alerts.markAlertsSeen(tx, A, id)),
      (tx) => alerts.findSeenAlertId(tx, A),
      (tx) => alerts.countAlertsSince(tx, 2),
      (tx) => alerts.findFirstAccount(tx),
      (tx) => alerts.listEndingKeys(tx, 0, 9),
      ...[1, 2, 0, 1].map((day) => (tx: Db) => mails.insertAlertMail(tx, { day, cause: 'keys-drawn', dueAtS: day })),
      (tx) => mails.insertAlertMail(tx, { day: 1, cause: 'backup-old', dueAtS: 1 }),
      (tx) => mails.insertNotice(tx, { id: 'n', cause: 'password-set', recipient: 'a@b', subject: 'S', text: 'T' }, 3 * 86_400),
      (tx) => mails.findDueMail(tx, 3, { nowS: 3 * 86_400, maxAttempts: 7 }),
      (tx) => mails.beginAttempt(tx, { id: '1 keys-drawn', attempts: 1 }, 5),
      (tx) => mails.endAttempt(tx, '1 backup-old', { sentAtS: 3, problem: null }),
      (tx) => mails.endAttempt(tx, '2 keys-drawn', { sentAtS: null, problem: 'refused' }),
      ...[
        [0, 9, 7],
        [1, 9, 7],
        [1, 9, 2],
        [1, 4, 7],
        [3, 9, 7],
      ].map(
        ([day = 0, nowS = 0, maxAttempts = 0]) =>
          (tx: Db) =>
            mails.findDueMail(tx, day, { nowS, maxAttempts }),
      ),
      (tx) => mails.listAlertsOfMail(tx, { day: 0, cause: 'keys-drawn' }, 2),
      (tx) => mails.listAlertsOfMail(tx, { day: 1, cause: 'keys-drawn' }, 2),
      (tx) => mails.listAlertsOfMail(tx, { day: 9, cause: 'backup-old' }, 2),
      (tx) => mails.removeOldMails(tx, 2),
      (tx) => mails.findDueMail(tx, 0, { nowS: 9, maxAttempts: 7 }),
      (tx) => alerts.removeOldAlerts(tx, 3, 1),
      (tx) => alerts.removeOldAlerts(tx, 3, 9),
    ],
  ],
  [
    'server keys',
    [
      ...[3, 1, 2].map((n) => (tx: Db) => serverKeys.insertServerKey(tx, serverKey(n))),
      (tx) => serverKeys.insertServerKey(tx, serverKey(1)),
      (tx) => serverKeys.listServerKeys(tx),
    ],
  ],
  [
    'defaults of OTPs',
    [
      (tx) => otpDefaults.findBothDefaults(tx, A, V1),
      (tx) => otpDefaults.saveAccountDefaults(tx, A, '{"ttl":60}'),
      (tx) => otpDefaults.saveVideosDefaults(tx, A, [V1], '{"ttl":30}'),
      (tx) => otpDefaults.saveVideosDefaults(tx, B, [V1], '{"ttl":20}'),
      (tx) => otpDefaults.findAccountDefaults(tx, A),
      (tx) => otpDefaults.findBothDefaults(tx, A, V1),
      (tx) => otpDefaults.findBothDefaults(tx, B, V1),
    ],
  ],
  [
    'storyboards',
    [
      (tx) => storyboards.findPendingStoryboard(tx, 5),
      async (tx) => {
        const pending = (await storyboards.findPendingStoryboard(tx, 5)) ?? { ...VIDEO, attempts: 0 }
        return [
          await storyboards.beginStoryboardAttempt(tx, pending),
          await storyboards.beginStoryboardAttempt(tx, pending),
          await storyboards.refundStoryboardAttempt(tx, pending),
        ]
      },
      (tx) => storyboards.hasStoryboard(tx, VIDEO),
      (tx) => posters.insertExtractedPosters(tx, VIDEO, [FIRST_POSTER], 3),
      (tx) => posters.listFirstPosters(tx, VIDEO),
      (tx) => posters.replaceFirstPosters(tx, VIDEO, []),
      (tx) => storyboards.insertStoryboard(tx, VIDEO, PICTURES, 6),
      (tx) => storyboards.insertStoryboard(tx, VIDEO, PICTURES, 7),
      (tx) => storyboards.hasStoryboard(tx, VIDEO),
      (tx) => storyboards.listStoryboardSheets(tx, VIDEO),
      (tx) => posters.listPosterCandidates(tx, VIDEO),
      (tx) => posters.listEnabledPosters(tx, [V1]),
      (tx) => storyboards.requeueStoryboard(tx, VIDEO),
      (tx) => storyboards.listStoryboardSheets(tx, VIDEO),
    ],
  ],
  [
    'settings of audio tracks',
    [
      (tx) => audioSettings.findAudioSettings(tx, { videoId: V1, sourceNumber: 1 }),
      (tx) => audioSettings.saveAudioSettings(tx, { videoId: V1, sourceNumber: 1 }, [{ id: 3, name: 'Übung' }]),
      (tx) => audioSettings.findAudioSettings(tx, { videoId: V1, sourceNumber: 1 }),
      (tx) => audioSettings.findAudioSettings(tx, { videoId: V1, sourceNumber: 2 }),
      (tx) => audioSettings.saveAudioSettings(tx, { videoId: V1, sourceNumber: 1 }, []),
      (tx) => audioSettings.findAudioSettings(tx, { videoId: V1, sourceNumber: 1 }),
      (tx) => audioSettings.saveAudioSettings(tx, { videoId: V2, sourceNumber: 1 }, [{ id: 4, isDefault: true }]),
    ],
  ],
  [
    'added audio tracks',
    [
      (tx) => dubs.insertDub(tx, DUB),
      (tx) => dubs.insertDub(tx, { ...DUB, sourceNumber: 3, name: 'Übung', isDefault: 1 }),
      (tx) => dubs.listDubs(tx, { videoId: V1, ofSource: 1 }),
      (tx) => dubs.listDubs(tx, { videoId: V1, ofSource: 2 }),
      (tx) => dubs.listAccountsWithWaitingDubs(tx, 1),
      (tx) => dubs.findWaitingDub(tx, A, 1),
      (tx) => dubs.beginDubAttempt(tx, NEW_DUB),
      (tx) => dubs.beginDubAttempt(tx, NEW_DUB),
      (tx) => dubs.updateDub(tx, DUB, { progress: 0.25 }),
      (tx) => dubs.updateDub(tx, DUB, { encoded: 1, differenceS: -2.5 }),
      (tx) => dubs.findDub(tx, DUB),
      (tx) => dubs.deleteDub(tx, DUB),
      (tx) => generations.removeDubFile(tx, { videoId: V1, sourceNumber: 3 }),
      (tx) => dubs.findDub(tx, DUB),
    ],
  ],
  [
    'chapters',
    [
      (tx) => chapters.findChapters(tx, V1),
      (tx) => chapters.saveChapters(tx, V1, { language: 'de', chapters: [{ startS: 1.5, title: 'Übung' }] }),
      (tx) => chapters.findChapters(tx, V1),
      (tx) => chapters.saveChapters(tx, V1, { language: null, chapters: [{ startS: 0, title: 'A' }] }),
      (tx) => chapters.findChapters(tx, V1),
      (tx) => chapters.saveChapters(tx, V1, { language: null, chapters: [] }),
      (tx) => chapters.findChapters(tx, V1),
      (tx) => chapters.saveChapters(tx, V2, { language: 'fr', chapters: [{ startS: 0, title: 'A' }] }),
    ],
  ],
  [
    'OTPs, sessions and stream slots',
    [
      ...[1, 2, 3, 4].map((hash) => (tx: Db) => otps.insertOtp(tx, otp(hash, hash === 4 ? 20 : 100))),
      (tx) => otps.insertOtp(tx, { ...otp(6, 100), accountId: B }),
      (tx) => otps.findOtp(tx, bytes(1)),
      (tx) => otps.findRulesOfOtp(tx, bytes(1)),
      (tx) => otps.findRulesOfOtp(tx, bytes(2)),
      ...[1, 9].map((n) => (tx: Db) => otps.findPageOptions(tx, bytes(n))),
      (tx) => otps.isOpenOtp(tx, bytes(1), 5),
      (tx) => otps.isOpenOtp(tx, bytes(9), 5),
      ...[1, 2, 3, 4, 1].map((hash) => (tx: Db) => otps.spendOtp(tx, bytes(hash), 20)),
      (tx) => otps.recordReuse(tx, bytes(1), 21),
      (tx) => otps.recordReuse(tx, bytes(1), 21),
      ...[1, 2, 3].map((hash) => (tx: Db) => sessions.insertSession(tx, session(`s${hash}`, hash))),
      (tx) => sessions.insertSession(tx, session('s4', 1)),
      (tx) => sessions.findSession(tx, 's1'),
      (tx) => sessions.findSessionOfOtp(tx, bytes(2)),
      (tx) => sessions.setPages(tx, 's1', ['p', 'q']),
      ...[0, 1].map(
        (version) => (tx: Db) =>
          sessions.saveSession(tx, { id: 's1', version, lastSeenAtS: 12 + version, leftAtS: null, keyWindows: bytes(3) }),
      ),
      (tx) => sessions.markViewed(tx, { id: 's1', viewedAtS: 12 }),
      (tx) => sessions.markViewed(tx, { id: 's1', viewedAtS: 13 }),
      ...[
        ['s1', 5],
        ['s1', 9],
        ['s1', 7],
        ['s2', 1],
        ['none', 1],
      ].map(
        ([sessionId, measuredMs]) =>
          (tx: Db) =>
            viewQualities.saveViewQuality(tx, viewQuality(String(sessionId), Number(measuredMs))),
      ),
      ...['p', 'q'].map((pageId) => (tx: Db) => viewQualities.findViewQuality(tx, { sessionId: 's1', pageId })),
      (tx) => viewQualities.listViewQualities(tx, A, { days: ['2026-11-20', '2026-11-21'] }, 9),
      (tx) => viewQualities.listViewQualities(tx, A, { days: ['2026-11-21'], videoId: V1 }, 9),
      ...[1, 3].map((minViews) => (tx: Db) => viewQualities.listWatchedAccounts(tx, '2026-11-21', minViews)),
      ...['2026-11-21', '2026-11-22'].map((day) => (tx: Db) => viewQualities.removeOldViewQualities(tx, day, 1)),
      (tx) => sessions.recordAttempt(tx, attempt('opened')),
      ...Array.from({ length: 22 }, () => (tx: Db) => sessions.recordAttempt(tx, attempt('otp-used'))),
      (tx) => sessions.findOpenAttempt(tx, bytes(1)),
      ...[1, 1, 4, 1, 9, 1].map((hash) => (tx: Db) => refusals.addSessionRefusal(tx, refusal(hash))),
      (tx) => refusals.listRefusedAttempts(tx, A, { limit: 3 }),
      (tx) => refusals.listRefusedAttempts(tx, A, { limit: 3, below: 3, videoId: V1 }),
      ...['s1', 's2', 's3', 's1'].map((each) => (tx: Db) => slots.takeSlot(tx, claim(each), 20, 38)),
      (tx) => slots.takeOldestSlot(tx, claim('s3'), 21, 39),
      (tx) => accounts.updateAccount(tx, A, { whenFull: 'stop-oldest', limitFactor: 2, streamLimit: 2 }),
      (tx) => slots.takeOldestSlot(tx, claim('s3'), 21, 39),
      (tx) => slots.extendSlots(tx, 20, 60),
      (tx) => slots.findFirstSlotEnd(tx, claim('s3')),
      (tx) => slots.findFirstSlotEnd(tx, { ...claim('s3'), userId: 'nobody' }),
      ...[99, 40, 60].map((endsAtS) => (tx: Db) => slots.endSlotAt(tx, 's1', endsAtS)),
      (tx) => slots.freeSlot(tx, 's3'),
      ...[{}, { userId: 'viewer' }, { userId: 'nobody' }, { videoId: V2 }].map(
        (filter) => (tx: Db) => sessions.listWatchingSessions(tx, A, filter, { seenSinceS: 10, limit: 2 }),
      ),
      (tx) => sessions.findLiveSessions(tx, []),
      (tx) => sessions.findLiveSessions(tx, ['s1', 's2', 'none']),
      (tx) => sessions.endMatchingSessions(tx, { ...stopping, filter: { userId: 'nobody' } }),
      (tx) => sessions.endMatchingSessions(tx, { ...stopping, filter: { otpHash: bytes(3), videoId: V2, sessionId: 's3' } }),
      (tx) => slots.freeSlots(tx, ['s2', 's9']),
      (tx) => otps.expireOtp(tx, A, bytes(1), 22),
      (tx) => otps.expireOtp(tx, A, bytes(4), 5),
      (tx) => otps.expireOtp(tx, A, bytes(4), 6),
      (tx) => sessions.endSession(tx, 's1', 30, 'stopped'),
      (tx) => slots.takeSlot(tx, claim('s3'), 31, 49),
      (tx) => slots.freeSlotsOfVideos(tx, [V2]),
      (tx) => slots.removeOldSlots(tx, 1000),
      (tx) => sessions.endSessionsOfVideos(tx, [V2], 40, 'video-deleted'),
      (tx) => sessions.endSessionsOfAccount(tx, A, 41),
      ...[40, 42].map((sinceS) => (tx: Db) => sessions.listEndedSessions(tx, sinceS)),
      (tx) => sessions.removeOldSessions(tx, 31, 9),
      (tx) => otps.removeOldOtps(tx, 2 ** 31, 9),
    ],
  ],
  [
    'viewings',
    [
      ...[1, 2, 3].map((n) => (tx: Db) => viewings.saveViewing(tx, viewing(n, n))),
      ...[1, 1].map(
        (version) => (tx: Db) =>
          viewings.saveViewing(tx, { ...viewing(1, 9), version, beganAtS: 8, intervals: '0 120', watchedS: 120 }),
      ),
      (tx) => viewings.saveViewing(tx, { ...viewing(1, 9), videoId: 'none' }),
      ...[1, 9].map((n) => (tx: Db) => viewings.findViewing(tx, viewing(n, 0))),
      ...[1, 2].map((n) => (tx: Db) => viewings.saveViewingDay(tx, viewingDay(n, 20_000))),
      (tx) => viewings.saveViewingDay(tx, { ...viewingDay(1, 20_000), intervals: '0 61', watchedS: 61 }),
      ...[1, 9].map((n) => (tx: Db) => viewings.findViewingDay(tx, viewingDay(n, 20_000))),
      (tx) => viewings.markCompleted(tx, viewing(1, 9), 12),
      (tx) => viewings.markCompleted(tx, viewing(1, 9), 13),
      (tx) => viewings.listViewingsOfViewer(tx, viewing(1, 9), { limit: 2 }),
      (tx) => viewings.listViewingsOfVideo(tx, viewing(1, 9).videoId, { limit: 2 }),
      (tx) => viewings.listViewingsOfVideo(tx, viewing(1, 9).videoId, { limit: 2, below: 2 }),
      (tx) => viewings.listViewingsOfViewer(tx, viewing(1, 9), { limit: 2, below: 1 }),
      (tx) => viewings.listViewingDays(tx, A, { fromDay: 20_000, toDay: 20_001, limit: 9 }),
      (tx) => viewings.listViewingDays(tx, A, { fromDay: 20_001, toDay: 20_001, limit: 9 }),
      ...[3, 3].map((beforeS) => (tx: Db) => viewings.removeOldViewings(tx, beforeS, 9)),
      ...[20_000, 20_001].map((day) => (tx: Db) => viewings.removeOldViewingDays(tx, day, 1)),
      (tx) => viewers.saveViewerName(tx, { ...viewerNamed(1), name: 'Ann', email: null }),
      (tx) => viewers.saveViewerName(tx, { ...viewerNamed(2), name: null, email: 'ann@example.org' }),
      (tx) => viewers.findViewerNames(tx, A, [viewing(1, 9), { userId: 'nobody' }, { userId: null }]),
      (tx) => viewers.findViewerNames(tx, 'another', [viewing(1, 9)]),
      ...[2, 3].map((beforeS) => (tx: Db) => viewers.removeOldViewerNames(tx, beforeS, 9)),
      (tx) => viewers.saveViewerName(tx, { ...viewerNamed(3), name: 'Ann', email: null }),
      (tx) => viewings.removeViewer(tx, viewing(1, 9)),
      (tx) => viewers.findViewerNames(tx, A, [viewing(1, 9)]),
      (tx) => viewings.listOtpsOfViewer(tx, viewing(1, 9)),
      async (tx) => viewings.removeOtps(tx, [...(await viewings.listOtpsOfViewer(tx, viewing(1, 9))), bytes(0)]),
    ],
  ],
  [
    'usage',
    [
      (tx) => usage.addVideoUsage(tx, { day: '2026-01-01', videoId: V1, userId: '', sentBytes: 2 ** 40, viewCount: 1 }),
      (tx) => usage.addVideoUsage(tx, { day: '2026-01-01', videoId: V1, userId: '', sentBytes: 1, viewCount: 1 }),
      (tx) => usage.addViews(tx, { videoId: V1, viewCount: 2 }),
      (tx) => usage.addViews(tx, { videoId: V1, viewCount: 3 }),
      ...[A, 'another'].map((accountId) => (tx: Db) => usage.listViewTotals(tx, accountId, [V1, V2])),
      (tx) => usage.listSentBytes(tx, A, '2026-01-01'),
      ...['ann', 'ben'].map(
        (userId) => (tx: Db) => usage.addVideoUsage(tx, { day: '2026-01-01', videoId: V1, userId, sentBytes: 5, viewCount: 1 }),
      ),
      (tx) => usage.listUsageOfViewer(tx, { accountId: A, userId: 'ann' }),
      (tx) => usage.listNamedUsageBefore(tx, '2026-01-02', 9),
      (tx) => usage.listNamedUsageBefore(tx, '2026-01-01', 9),
      ...['ann', 'none'].map(
        (userId) => (tx: Db) => usage.unnameUsage(tx, { day: '2026-01-01', accountId: A, videoId: V1, userId }),
      ),
      (tx) => usage.listUsageOfDays(tx, A, { days: ['2026-01-01', '2026-01-02'] }),
      (tx) => usage.listUsageOfDays(tx, A, { days: ['2026-01-01'], videoId: V2 }),
      (tx) => usage.listMostViewed(tx, A, ['2026-01-01'], 5),
      (tx) => storage.sumStorage(tx, A),
      (tx) => storage.sumStorage(tx, A, [V1]),
      (tx) => storage.sumStoredBytes(tx, A, [V2]),
      ...[2 ** 41, 7].map((sizeBytes) => (tx: Db) => usage.setStorageOfDay(tx, { day: '2026-01-01', accountId: A, sizeBytes })),
      (tx) => usage.setStorageOfDay(tx, { day: '2025-12-31', accountId: A, sizeBytes: 1 }),
      (tx) => usage.removeStorageBefore(tx, '2026-01-01'),
      (tx) => usage.listStorageOfDays(tx, A, ['2025-12-31', '2026-01-01', '2026-01-02']),
      (tx) => accounts.listAccountIds(tx),
      (tx) => accountQueue.listWaitingVideos(tx, A, 5),
      (tx) => accountQueue.listEncodingVideos(tx, A, 5),
      (tx) => accountQueue.listImportingVideos(tx, A, 5),
      (tx) => history.listGenerations(tx, V1),
      (tx) => history.listAddedFiles(tx, V1),
      (tx) => usage.removeUsageBefore(tx, '2026-01-02', 9),
    ],
  ],
  [
    'deletion',
    [
      (tx) => folders.moveContentsBatch(tx, { accountId: A, fromId: 'f1', toId: 'root', limit: 2 }),
      (tx) => folders.moveContentsBatch(tx, { accountId: A, fromId: 'f1', toId: 'root', limit: 9 }),
      (tx) => folders.removeFolder(tx, A, 'f1'),
      (tx) => generations.removeGeneration(tx, VIDEO),
      (tx) => videos.setFolder(tx, A, [V1, V3], 'root'),
      (tx) => trash.listWithSource(tx, [V1, V2, V3]),
      (tx) => trash.listTagsByVideo(tx, [V1, V2]),
      (tx) => trash.insertTrashed(tx, [{ videoId: V1, accountId: A, trashedAtS: 40, endsAtS: 45, tags: '["a"]' }]),
      (tx) => videos.tombstoneVideos(tx, A, [V1], 40),
      (tx) => videos.listTombstones(tx),
      (tx) => trash.listTrashRows(tx, A, { limit: 10, offset: 0 }),
      (tx) => trash.listTrashRows(tx, B, { limit: 10, offset: 0 }),
      (tx) => trash.listEndedTrash(tx, 44, 10),
      (tx) => trash.listEndedTrash(tx, 45, 10),
      (tx) => trash.removeTrashed(tx, B, [V1]),
      (tx) => trash.removeTrashed(tx, A, [V1, V2]),
      (tx) => trash.leaveDeletedFolders(tx, [V1]),
      (tx) => videos.restoreVideos(tx, A, [V1]),
      (tx) => videos.tombstoneVideos(tx, A, [V1, V2], 50),
      (tx) => videos.destroyKeys(tx, [V1, V2]),
      (tx) => videos.listTombstones(tx).then((ids) => ids.sort()),
      (tx) => videos.removeTombstone(tx, V1),
    ],
  ],
  [
    'workers',
    [
      (tx) => workers.insertWorker(tx, { id: id('d'), name: 'office', hash: bytes(5), trusted: 1, createdAtS: 3 }),
      (tx) => workers.insertWorker(tx, { id: id('e'), name: 'office', hash: bytes(6), createdAtS: 4 }),
      (tx) => workers.insertWorker(tx, { id: id('f'), name: 'rented', hash: bytes(7), createdAtS: 5 }),
      (tx) =>
        workers.updateWorker(tx, id('d'), {
          lastSeenAtS: 9,
          encoder: 'ffmpeg 5',
          jobs: 4,
          kinds: 'audio',
          speed: 1.5,
          suspendedReason: 'silence',
        }),
      (tx) => capacities.listWorkerCapacities(tx, 9),
      (tx) => workers.updateWorker(tx, id('d'), { suspendedReason: null }),
      (tx) => capacities.listWorkerCapacities(tx, 9),
      (tx) => capacities.listWorkerCapacities(tx, 10),
      (tx) => workers.findWorkerByHash(tx, bytes(5)),
      (tx) => workers.findWorkerByHash(tx, bytes(6)),
      (tx) => workers.findWorkerByName(tx, 'rented'),
      (tx) => workers.deleteWorker(tx, id('f')),
      (tx) => workers.listWorkers(tx),
    ],
  ],
  [
    'learning platforms',
    [
      (tx) => platforms.insertPlatform(tx, { ...platformRow(id('a')), accountId: A, createdAtS: 3 }),
      (tx) => platforms.insertPlatform(tx, { ...platformRow(id('b')), accountId: A, createdAtS: 4 }),
      (tx) => platforms.insertPlatform(tx, { ...platformRow(id('c')), accountId: B, createdAtS: 5 }),
      (tx) => platforms.findPlatform(tx, id('a')),
      (tx) => platforms.findPlatformOf(tx, B, id('a')),
      (tx) => platforms.listPlatformRows(tx, A),
      (tx) =>
        platforms.updatePlatform(tx, id('a'), {
          name: 'Ärzte',
          folderId: id('9'),
          showsNames: 1,
          lastError: 'no',
          confirmedAtS: 5,
        }),
      (tx) => platforms.setFirstDeployment(tx, id('a'), '1'),
      (tx) => platforms.setFirstDeployment(tx, id('a'), '2'),
      (tx) => platforms.insertRegistration(tx, { hash: bytes(1), accountId: A, createdAtS: 1, expiresAtS: 10 }),
      (tx) => platforms.findRegistration(tx, bytes(1), 9),
      (tx) => platforms.findRegistration(tx, bytes(1), 10),
      (tx) => platforms.spendRegistration(tx, bytes(1), 10),
      (tx) => platforms.spendRegistration(tx, bytes(1), 9),
      (tx) => platforms.spendRegistration(tx, bytes(1), 9),
      (tx) => platforms.insertRegistration(tx, { hash: bytes(2), accountId: A, createdAtS: 1, expiresAtS: 10 }),
      (tx) => platforms.spendNonce(tx, bytes(1), 10),
      (tx) => platforms.spendNonce(tx, bytes(1), 11),
      (tx) => platforms.spendNonce(tx, bytes(2), 11),
      (tx) => platforms.removeExpired(tx, 10),
      (tx) => platforms.saveCourse(tx, { ...COURSE, title: 'Light', lastLaunchAtS: 5 }),
      (tx) => platforms.setCourseFolder(tx, COURSE, id('9')),
      (tx) => platforms.setCourseFolder(tx, { ...COURSE, courseId: 'none' }, null),
      (tx) => platforms.saveCourse(tx, { ...COURSE, title: 'Shadow', lastLaunchAtS: 6 }),
      (tx) => platforms.findCourse(tx, id('a'), '42'),
      (tx) => platforms.listCourses(tx, id('a'), 10),
      (tx) => grades.saveGrade(tx, { ...gradeRow('1'), tenths: 2, dueAtS: null, launchedAtS: 5 }),
      (tx) => grades.saveGrade(tx, { ...gradeRow('2'), tenths: 9, dueAtS: 1, launchedAtS: 6 }),
      (tx) => grades.raiseTenths(tx, { accountId: A, userId: 'ann', videoId: V1 }, { tenths: 2, nowS: 7 }),
      (tx) => grades.findDueScore(tx, 7),
      (tx) => grades.raiseTenths(tx, { accountId: A, userId: 'ann', videoId: V1 }, { tenths: 3, nowS: 7 }),
      (tx) => grades.raiseTenths(tx, { accountId: A, userId: 'ann', videoId: V1 }, { tenths: 4, nowS: 9 }),
      (tx) => grades.findDueScore(tx, 6),
      (tx) => grades.findDueScore(tx, 7),
      (tx) => platforms.updatePlatform(tx, id('a'), { confirmedAtS: null }),
      (tx) => grades.findDueScore(tx, 7),
      (tx) => grades.updateGrade(tx, '1', { attempts: 1, problem: 'no', dueAtS: 20, sentAtMs: 1_700_000_000_123 }),
      (tx) => grades.findGrade(tx, '1'),
      (tx) => grades.findWatched(tx, { accountId: A, userId: 'ann', videoId: V1 }),
      (tx) => grades.removeOldGrades(tx, 6, 10),
      (tx) => platforms.deletePlatform(tx, id('b')),
    ],
  ],
  [
    'servers',
    [
      (tx) => servers.insertServer(tx, { ...SERVER, id: id('a'), run: 'first' }),
      (tx) => servers.insertServer(tx, { ...SERVER, id: id('b'), run: 'other', name: 'left' }),
      (tx) => servers.insertServer(tx, { ...SERVER, id: id('a'), run: 'second', beatAtS: 4 }),
      (tx) => servers.saveDrained(tx, id('a'), true),
      (tx) => servers.saveDrained(tx, id('c'), true),
      (tx) => servers.saveBeat(tx, { id: id('a'), run: 'first' }, { ...SERVER, beatAtS: 5 }),
      (tx) =>
        servers.saveBeat(
          tx,
          { id: id('a'), run: 'second' },
          { beatAtS: 5.25, state: 'serving', knows: id('b'), sessions: 1, load: 0.5 },
        ),
      (tx) => capacities.saveServerCapacity(tx, id('a'), { encoder: 'ffmpeg 5', slots: 2 }),
      (tx) => capacities.listServerCapacities(tx),
      (tx) => servers.listServers(tx),
      (tx) => servers.hasLivingServer(tx, 15),
      (tx) => servers.hasLivingServer(tx, 16),
      (tx) => servers.removeServer(tx, { id: id('b'), run: 'before' }),
      (tx) => servers.removeServer(tx, { id: id('b'), run: 'other' }),
      (tx) => servers.endClaims(tx, 's'),
    ],
  ],
  [
    'what the master key wrapped',
    WRAPPED_COLUMNS.flatMap((column): Call[] => {
      const page = (tx: Db, id: number, after?: wrapped.WrappedRow) =>
        wrapped.listWrappedByOthers(tx, column, bytes(id, 4), { after, limit: 2 })
      return [
        async (tx) => page(tx, 0, (await page(tx, 0))[1]),
        async (tx) =>
          wrapped.replaceWrapped(
            tx,
            column,
            (await page(tx, 0)).map((row) => ({ ...row, next: bytes(0) })),
          ),
        async (tx) => page(tx, 0),
        async (tx) =>
          wrapped.replaceWrapped(
            tx,
            column,
            (await page(tx, 7)).map((row) => ({ ...row, wrapped: bytes(1), next: bytes(9) })),
          ),
      ]
    }),
  ],
]

const TABLES = [
  'account',
  'apiKey',
  'auditEvent',
  'video',
  'folder',
  'tag',
  'videoTag',
  'videoText',
  'uploadPolicy',
  'uploadToken',
  'import',
  'source',
  'generation',
  'rendition',
  'chunk',
  'segment',
  'file',
  'chapters',
  'audioSettings',
  'dub',
  'otp',
  'playbackSession',
  'streamSlot',
  'redeemAttempt',
  'alert',
  'watermarkImage',
  'movedBlob',
  'setting',
  'strike',
  'ban',
  'storedResponse',
  'webhook',
  'delivery',
  'videoUsage',
  'viewTotal',
  'storageDay',
  'viewing',
  'viewingDay',
  'viewQuality',
  'worker',
  'ltiPlatform',
  'ltiRegistration',
  'ltiCourse',
  'ltiNonce',
  'ltiGrade',
  'server',
] as const

/** How many of STORES have been called. */
let called = 0

test.each(STORES.map(([store, calls], index) => ({ store, calls, index })))(
  '$store: results are the same on both databases, and so are the rows afterwards',
  async ({ calls, index }) => {
    // Alone, a test makes the rows that it needs.
    for (; called < index; called++) for (const call of STORES[called]?.[1] ?? []) await onBoth(call)
    called = index + 1
    for (const call of calls) {
      const [ours, theirs] = await onBoth(call)
      expect.soft(theirs, String(call)).toEqual(ours)
    }
    for (const table of TABLES) expect.soft(await rowsOf(postgres.db, table), table).toEqual(await rowsOf(sqlite.db, table))
  },
)

async function onBoth(call: Call): Promise<[unknown, unknown]> {
  return [await sqlite.write(call).then(plain, kindOf), await postgres.write(call).then(plain, kindOf)]
}

/** SQLite's table is an index of texts, and keeps those of a deleted video until its row goes. */
const SEARCHED = sql<Record<string, unknown>>`select rowid, id, title, file_name from video_text
  where rowid in (select position from video where deleted_at_s is null)`

/** Rows as texts, in no order of their own. An account's change number rises by row or by statement: only that it rises counts. */
async function rowsOf(db: Db, table: (typeof TABLES)[number]): Promise<string[]> {
  const all = table === 'videoText' ? SEARCHED : sql<Record<string, unknown>>`select * from ${sql.table(table)}`
  const { rows } = await all.execute(db)
  return rows
    .map(({ changeNumber, ...row }) => JSON.stringify([changeNumber !== 0, ...Object.entries(row).map(plain).sort()]))
    .sort()
}

/** Maps and sets as lists, counts of rows as numbers. */
function plain(answer: unknown): unknown {
  if (answer instanceof Map || answer instanceof Set) return plain([...answer].sort())
  if (Buffer.isBuffer(answer)) return answer.toString('hex')
  if (Array.isArray(answer)) return answer.map(plain)
  if (typeof answer === 'object' && answer !== null) {
    if ('numAffectedRows' in answer) return Number(answer.numAffectedRows)
    return Object.fromEntries(Object.entries(answer).map(([name, value]) => [name, plain(value)]))
  }
  return answer
}

/** A call that breaks a rule of the tables is refused on both. */
function kindOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return /^SQLITE_CONSTRAINT|^23/.test(code) ? 'breaks a rule' : String(error)
}
