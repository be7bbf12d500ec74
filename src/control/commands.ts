import { type Static, type TSchema, Type } from 'typebox'
import { Value } from 'typebox/value'
import { type AccountDisablingDeps, changeAccount, createAccount, findAccounts, setAccountDisabled } from '../accounts/account.ts'
import { findAccountId } from '../accounts/account-id.ts'
import { createApiKey, findApiKeys, revokeKey, rotateKey } from '../accounts/api-key.ts'
import { PERMISSIONS } from '../accounts/permission.ts'
import { readWatchUrl } from '../accounts/watch-url.ts'
import { listAlerts } from '../alerts/alert.ts'
import { sendTestMail } from '../alerts/mail-test.ts'
import { beginCheck, type CheckDeps, nextBatch, saveCheck } from '../assets/media-check.ts'
import type { Transcriber } from '../assets/transcribe.ts'
import { readTranscribeLanguage } from '../assets/transcription.ts'
import { listAuditEvents } from '../audit/audit-log.ts'
import type { AlertMailConfig } from '../config/alert-mail.ts'
import { isDamaged } from '../encode/damage-store.ts'
import { Failure } from '../errors.ts'
import { forgetBackup, recordBackup } from '../installation/backup/last-backup.ts'
import { findMoved } from '../installation/located-files.ts'
import { findMasterKeyIds } from '../installation/master-key.ts'
import type { MasterKeyRotation } from '../installation/master-key-rotation.ts'
import { listSessions, type StopDeps, stopSessions } from '../playback/sessions/stop.ts'
import { type BanAdmin, liftBan, listBans } from '../rate-limits/bans.ts'
import { findAllUsers } from '../users/user.ts'
import type { RestoredCopy } from '../webhooks/restored-copy.ts'
import { listWebhooks } from '../webhooks/webhook.ts'
import type { Webhook } from '../webhooks/webhook-store.ts'
import { addWorker, findWorkers, removeWorker, setWorkerDrained, type WorkerDeps, type WorkerStatus } from '../workers/worker.ts'

/** What commands need. `signals` and `stops.sessions` reach a running server's memory. */
export type CommandDeps = {
  accounts: AccountDisablingDeps
  bans: BanAdmin
  workers: WorkerDeps
  media: CheckDeps & {
    /** Whether this process encodes, so that damage is repaired now and not after the next start. */
    isEncoding: boolean
  }
  stops: StopDeps
  copy(): Promise<Pick<RestoredCopy, 'resume'>>
  alertMail: AlertMailConfig | undefined
  transcriber: Transcriber | undefined
  rotation(): Promise<Pick<MasterKeyRotation, 'rotate'>>
}

/** One command of the command line, run here or by a running server. */
type Command<Deps> = { args: TSchema; run(deps: Deps, args: unknown): Promise<unknown> }

export function command<Deps, S extends TSchema>(args: S, run: (deps: Deps, args: Static<S>) => Promise<unknown>): Command<Deps> {
  return {
    args,
    run(deps, received) {
      if (!Value.Check(args, received))
        throw new Failure('invalid', 'The arguments of the command are invalid. See reelgate --help.')
      return run(deps, received)
    },
  }
}

const Name = Type.String({ minLength: 1, maxLength: 100 })
const Id = Type.String({ pattern: '^[0-9a-f]{32}$' })
const WorkerName = Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$' })
const Text = Type.String({ minLength: 1, maxLength: 100 })
const Count = Type.Integer({ minimum: 0 })
type SegmentKey = Static<typeof SegmentKey>
const SegmentKey = Type.Object({ videoId: Id, generation: Count, renditionId: Count, number: Count })
const Damage = Type.Object({ ...SegmentKey.properties, problem: Type.String(), mayHaveBeenSent: Type.Optional(Type.Boolean()) })
const ListedSegment = Type.Object({ ...SegmentKey.properties, file: Type.String(), sizeBytes: Count, sha256: Type.String() })
const Position = Type.Union([SegmentKey, Type.Object({ fileId: Count })])
const FileName = Type.Object({ videoId: Id, name: Type.String() })
const FileKind = Type.Union([
  Type.Literal('original'),
  Type.Literal('poster'),
  Type.Literal('poster-candidate'),
  Type.Literal('caption'),
  Type.Literal('mp4'),
  Type.Literal('storyboard'),
])
const BlobNames = Type.Array(Type.String({ maxLength: 300 }), { maxItems: 1000 })
const Base64 = Type.Union([Type.String(), Type.Null()])
/** What opens it is wrapped by the master key. */
const ListedFile = Type.Object({
  ...FileName.properties,
  id: Count,
  kind: FileKind,
  folder: Type.Union([Type.Literal('sources'), Type.Literal('posters'), Type.Literal('files')]),
  sizeBytes: Count,
  damaged: Count,
  generation: Type.Union([Count, Type.Null()]),
  ...{ wrappedKey: Base64, wrappedContentKey: Base64, iv: Base64, macs: Base64 },
})

// The results of the commands of a media check, checked by the client: the server may be another version.
export const MediaCheckStart = Type.Object({ after: Type.Optional(Position), sizeBytes: Type.Number() })
export const MediaBatch = Type.Object({
  segments: Type.Array(ListedSegment),
  files: Type.Array(ListedFile),
  last: Type.Optional(Position),
})
export const MediaCheckResult = Type.Object({
  damaged: Type.Array(Damage),
  damagedFiles: Type.Array(Type.Object({ ...FileName.properties, kind: FileKind, isMadeAgain: Type.Boolean() })),
})
export const MovedNames = Type.Array(Type.String())
/** Segments that are damaged now, and whether they are being encoded again. */
export const MediaRepair = Type.Object({ segments: Type.Array(SegmentKey), isRepairing: Type.Boolean() })

export const MasterKeyRotated = Type.Object({
  masterKeyId: Type.String(),
  /** How many secrets were wrapped again. */
  rewrapped: Count,
  /** Values that no key opens: they were damaged before. */
  unreadable: Count,
  /** Null when the key's owner stores it. */
  phrase: Type.Union([Type.String(), Type.Null()]),
  /** Where the old key is left, for its owner to remove. */
  removeOldKeyFrom: Type.Union([Type.String(), Type.Null()]),
})

const MAX_LISTED_SESSIONS = 1000
const MAX_LISTED_ALERTS = 1000

/** A century. */
const MAX_KEY_LIFE_S = 100 * 366 * 24 * 3600

export const COMMANDS = {
  'account create': command(
    Type.Object({ name: Name, mayUpload: Type.Boolean(), mayImport: Type.Boolean() }),
    ({ accounts }: CommandDeps, { name, ...switches }) => createAccount(accounts, name, switches),
  ),
  'account set': command(
    Type.Object({
      account: Name,
      mayUpload: Type.Optional(Type.Boolean()),
      mayImport: Type.Optional(Type.Boolean()),
      limitFactor: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
      pageMax: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
      streamLimit: Type.Optional(Type.Integer({ minimum: 0, maximum: 100 })),
      whenFull: Type.Optional(Type.Union([Type.Literal('refuse'), Type.Literal('stop-oldest')])),
      storageLimitBytes: Type.Optional(Type.Union([Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }), Type.Null()])),
      otpDefaultsRemovable: Type.Optional(Type.Boolean()),
      deletesToTrash: Type.Optional(Type.Boolean()),
      normalizesLoudness: Type.Optional(Type.Boolean()),
      transcribeLanguage: Type.Optional(Type.Union([Text, Type.Null()])),
      watchUrl: Type.Optional(Type.Union([Text, Type.Null()])),
    }),
    async ({ accounts, transcriber }: CommandDeps, { account, ...changes }) => {
      const transcribeLanguage = readTranscribeLanguage({ transcriber }, changes.transcribeLanguage)
      const watchUrl = readWatchUrl(changes.watchUrl)
      return changeAccount(accounts, account, { ...changes, transcribeLanguage, watchUrl })
    },
  ),
  'account disable': command(Type.Object({ account: Name }), ({ accounts }: CommandDeps, { account }) =>
    setAccountDisabled(accounts, account, true),
  ),
  'account enable': command(Type.Object({ account: Name }), ({ accounts }: CommandDeps, { account }) =>
    setAccountDisabled(accounts, account, false),
  ),
  'account list': command(Type.Object({}), ({ accounts }: CommandDeps) => findAccounts(accounts)),
  'console users': command(Type.Object({}), ({ accounts }: CommandDeps) => findAllUsers(accounts)),
  'key create': command(
    Type.Object({
      account: Name,
      name: Name,
      permissions: Type.Array(Type.Union(PERMISSIONS.map((name) => Type.Literal(name))), { minItems: 1 }),
      lifeS: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_KEY_LIFE_S })),
    }),
    ({ accounts }: CommandDeps, { account, ...key }) => createApiKey(accounts, account, key),
  ),
  'key list': command(Type.Object({ account: Name }), ({ accounts }: CommandDeps, { account }) => findApiKeys(accounts, account)),
  'key rotate': command(
    Type.Object({ keyId: Id, overlapS: Type.Integer({ minimum: 0, maximum: MAX_KEY_LIFE_S }) }),
    ({ accounts }: CommandDeps, { keyId, overlapS }) => rotateKey(accounts, keyId, overlapS),
  ),
  'key revoke': command(Type.Object({ keyId: Id }), async ({ accounts }: CommandDeps, { keyId }) => {
    await revokeKey(accounts, keyId)
    return { keyId, revoked: true }
  }),
  audit: command(
    Type.Object({ account: Type.Optional(Name), limit: Type.Integer({ minimum: 1, maximum: 1_000_000 }) }),
    async ({ accounts: { db } }: CommandDeps, { account, limit }) => {
      const events = await listAuditEvents(db, account === undefined ? undefined : await findAccountId(db, account), limit)
      return events.map(({ id: _, ...event }) => event)
    },
  ),
  'webhook list': command(Type.Object({ account: Name }), async ({ accounts: { db } }: CommandDeps, { account }) =>
    (await listWebhooks({ db }, await findAccountId(db, account))).map(formatWebhook),
  ),
  'webhook resume': command(Type.Object({}), async ({ copy }: CommandDeps) => ({ resumed: await (await copy()).resume() })),
  'ban list': command(Type.Object({}), ({ bans }: CommandDeps) => listBans(bans)),
  'ban lift': command(
    Type.Object({ subject: Type.String({ minLength: 1, maxLength: 100 }) }),
    ({ bans }: CommandDeps, { subject }) => liftBan(bans, subject),
  ),
  'session list': command(
    Type.Object({ account: Name, userId: Type.Optional(Text), video: Type.Optional(Text) }),
    async ({ accounts, stops }: CommandDeps, { account, userId, video: videoId }) =>
      listSessions(stops, await findAccountId(accounts.db, account), { userId, videoId }, MAX_LISTED_SESSIONS),
  ),
  'alert list': command(
    Type.Object({ account: Name, cause: Type.Optional(Text), userId: Type.Optional(Text) }),
    async ({ accounts: { db } }: CommandDeps, { account, cause, userId }) =>
      listAlerts({ db }, await findAccountId(db, account), { cause, userId }, { limit: MAX_LISTED_ALERTS }),
  ),
  'alert test': command(Type.Object({}), ({ alertMail }: CommandDeps) => sendTestMail(alertMail)),
  'session stop': command(
    Type.Object({
      account: Name,
      target: Type.Union([
        Type.Object({ sessionId: Text }),
        Type.Object({ userId: Text }),
        Type.Object({ videoId: Text }),
        Type.Object({ otp: Text }),
      ]),
    }),
    async ({ accounts, stops }: CommandDeps, { account, target }) => ({
      stopped: await stopSessions(stops, {
        accountId: await findAccountId(accounts.db, account),
        by: 'command-line',
        target,
      }),
    }),
  ),
  'media begin': command(Type.Object({ fromStart: Type.Boolean() }), ({ media }: CommandDeps, { fromStart }) =>
    beginCheck(media, fromStart),
  ),
  'media next': command(
    Type.Object({ after: Type.Optional(Position) }),
    async ({ media }: CommandDeps, { after }): Promise<Static<typeof MediaBatch>> => {
      const { segments, files, last } = await nextBatch(media.db, after)
      const base64 = (bytes: Buffer | null) => bytes?.toString('base64') ?? null
      return {
        segments: segments.map((segment) => ({ ...segment, sha256: segment.sha256.toString('hex') })),
        files: files.map(({ sha256: _, wrappedKey, wrappedContentKey, iv, macs, ...file }) => ({
          ...file,
          ...{ wrappedKey: base64(wrappedKey), wrappedContentKey: base64(wrappedContentKey), iv: base64(iv), macs: base64(macs) },
        })),
        last,
      }
    },
  ),
  'media moved': command(
    Type.Object({ names: BlobNames }),
    ({ media }: CommandDeps, { names }): Promise<Static<typeof MovedNames>> => findMoved(media.db, names),
  ),
  'media checked': command(
    Type.Object({
      last: Type.Optional(Position),
      damaged: Type.Array(Damage),
      damagedFiles: Type.Array(FileName),
      intactFiles: Type.Array(FileName),
    }),
    ({ media }: CommandDeps, { last, ...found }): Promise<Static<typeof MediaCheckResult>> => saveCheck(media, last, found),
  ),
  'media repair': command(
    Type.Object({ damaged: Type.Array(Damage) }),
    async ({ media }: CommandDeps, { damaged }): Promise<Static<typeof MediaRepair>> => {
      const segments: SegmentKey[] = []
      for (const { problem, ...segment } of damaged) if (await media.reportDamage({ ...segment, problem })) segments.push(segment)
      return { segments, isRepairing: media.isEncoding }
    },
  ),
  'media repairing': command(
    Type.Object({ segments: Type.Array(SegmentKey) }),
    async ({ media }: CommandDeps, { segments }): Promise<Static<typeof MediaRepair>> => {
      const damaged = await Promise.all(segments.map((segment) => isDamaged(media.db, segment)))
      return { segments: segments.filter((_, i) => damaged[i]), isRepairing: media.isEncoding }
    },
  ),
  'backup made': command(
    Type.Object({ name: Name, atS: Count, isGood: Type.Boolean() }),
    async ({ accounts: { write, nowS } }: CommandDeps, { name, atS, isGood }) => {
      await recordBackup({ write, nowS }, { name, atS }, isGood)
      return { recorded: true }
    },
  ),
  'backup damaged': command(Type.Object({ name: Name }), async ({ accounts: { write } }: CommandDeps, { name }) => {
    await forgetBackup({ write }, name)
    return { recorded: true }
  }),
  'worker add': command(Type.Object({ name: WorkerName, trusted: Type.Boolean() }), ({ workers }: CommandDeps, worker) =>
    addWorker(workers, worker, 'command-line'),
  ),
  'worker list': command(Type.Object({}), async ({ workers }: CommandDeps) => (await findWorkers(workers)).map(formatWorker)),
  'worker remove': command(Type.Object({ name: WorkerName }), ({ workers }: CommandDeps, { name }) =>
    removeWorker(workers, name, 'command-line'),
  ),
  'worker drain': command(Type.Object({ name: WorkerName }), ({ workers }: CommandDeps, { name }) =>
    setWorkerDrained(workers, name, true, 'command-line'),
  ),
  'worker resume': command(Type.Object({ name: WorkerName }), ({ workers }: CommandDeps, { name }) =>
    setWorkerDrained(workers, name, false, 'command-line'),
  ),
  'key rotate-master': command(
    Type.Object({}),
    async ({ rotation }: CommandDeps): Promise<Static<typeof MasterKeyRotated>> => (await rotation()).rotate(),
  ),
  'master key id': command(Type.Object({}), async ({ accounts }: CommandDeps) => ({
    ids: await findMasterKeyIds(accounts.db),
  })),
} as const satisfies Record<string, Command<CommandDeps>>

/** For people: without times in seconds and empty fields. */
function formatWebhook({ id, url, event, disabledReason }: Webhook) {
  return { id, url, event: event ?? '*', status: disabledReason ?? 'on' }
}

/** What each does now is one line; `tasks` has it in parts. */
function formatWorker({ speed, tasks, ...worker }: WorkerStatus) {
  const encodes = tasks.map(
    ({ videoId, kind, firstSegment, forS }) => `${kind} of ${videoId} from segment ${firstSegment} for ${forS} s`,
  )
  return { ...worker, speed: speed === null ? null : Math.round(100 * speed) / 100, encodes }
}

export type CommandName = keyof typeof COMMANDS
