import type { Generated, Insertable, Selectable } from 'kysely'

/**
 * The rows. Booleans are 0/1, times Unix seconds (`…S`), lists and records JSON text: both databases store these alike.
 * Wire names stop at `http/`; these are ours.
 */
export type Tables = {
  account: AccountTable
  apiKey: ApiKeyTable
  auditEvent: AuditEventTable
  video: VideoTable
  folder: FolderTable
  tag: TagTable
  videoTag: VideoTagTable
  videoText: VideoTextTable
  uploadPolicy: UploadPolicyTable
  import: ImportTable
  source: SourceTable
  generation: GenerationTable
  rendition: RenditionTable
  chunk: ChunkTable
  segment: SegmentTable
  file: FileTable
  otp: OtpTable
  playbackSession: PlaybackSessionTable
  streamSlot: StreamSlotTable
  watchPosition: WatchPositionTable
  redeemAttempt: RedeemAttemptTable
  watermarkImage: WatermarkImageTable
  setting: SettingTable
  strike: StrikeTable
  ban: BanTable
  storedResponse: StoredResponseTable
  webhook: WebhookTable
  delivery: DeliveryTable
  videoUsage: VideoUsageTable
  viewTotal: ViewTotalTable
}

type AccountTable = {
  id: string
  name: string
  createdAtS: number
  mayUpload: number
  mayImport: number
  disabled: Generated<number>
  /** Largest page of a list. */
  pageMax: Generated<number>
  /** How many times the limits of a key and an account it may ask for. */
  limitFactor: Generated<number>
  /** Most streams of one userId at once, where its OTP does not say; 0: no limit. */
  streamLimit: Generated<number>
  /** What becomes of one stream more: it is refused, or the viewer's oldest is stopped. */
  streamLimitPolicy: Generated<'refuse' | 'stop-oldest'>
  /** Videos not deleted: kept in step with `video` in the same transaction, so that a list needs no count. */
  videoCount: Generated<number>
  /** Folders besides the root; kept by triggers. */
  folderCount: Generated<number>
  /** Rises with every change that a list of its videos could show; kept by triggers. */
  changeNumber: Generated<number>
}

type ApiKeyTable = {
  id: string
  accountId: string
  /** SHA-256 of the key's text; the text is shown once and kept nowhere. */
  hash: Buffer
  /** First characters, so that an owner can tell keys apart. */
  prefix: string
  name: string
  /** JSON list of permissions. */
  permissions: string
  createdAtS: number
  revokedAtS: number | null
  /** From then on it is as good as revoked; null: never. */
  expiresAtS: number | null
  /** Written behind: up to a minute late. */
  lastUsedAtS: number | null
}

/** What somebody did to an account, and who it was. */
type AuditEventTable = {
  id: Generated<number>
  atS: number
  /** Null where it concerns no account: the ban of an address. */
  accountId: string | null
  /** The id of an API key, or a word of audit/audit-log.ts. */
  actor: string
  action: string
  /** The id of what it was done to. */
  subject: string
  /** JSON, without secrets. */
  details: string | null
}

type VideoTable = {
  id: string
  accountId: string
  /** Rises by one per video: the total order of lists, newest first, whatever the clock does. */
  position: Generated<number>
  title: string
  description: string
  fileName: string
  uploadTimeS: number
  status: string
  statusReason: string | null
  /** 0 before the probe. */
  durationS: Generated<number>
  aspectRatio: number | null
  totalSizeBytes: Generated<number>
  public: Generated<number>
  folderId: Generated<string>
  /** The generation that plays, or is being made. 0 before the first plan. */
  generation: Generated<number>
  /** 1 once its source is there: kept by a trigger. */
  hasSource: Generated<number>
  /** Set when deleted: the row is a tombstone till its files are gone. */
  deletedAtS: number | null
}

/** Videos lie in exactly one folder; each account has its root, whose id is `root`. */
type FolderTable = {
  accountId: string
  id: string
  /** Null: the root. */
  parentId: string | null
  name: string
  /** By db/fold-case.ts: the order of lists, and what the beginning of a name is compared with. */
  foldedName: string
  createdAtS: number
  /** Videos, not deleted, and folders directly in it; kept by triggers. */
  videoCount: Generated<number>
  folderCount: Generated<number>
}

/** A tag that videos of the account carry, and how many; kept by triggers on `video_tag`. */
type TagTable = { accountId: string; name: string; videoCount: number }

/** Pairs of tag and video. */
type VideoTagTable = {
  accountId: string
  name: string
  /** The video's. */
  position: number
  /** Rises in the order in which the video got its tags. */
  ordinal: number
}

/** What is searched, folded by db/fold-case.ts; kept by triggers on `video`. */
type VideoTextTable = {
  /** The video's position. */
  rowid: number
  id: string
  title: string
  fileName: string
}

type UploadPolicyTable = {
  /** The form's `key`. */
  key: string
  accountId: string
  videoId: string
  expiresAtS: number
  /** Set by the one upload that was accepted. */
  spentAtS: number | null
}

/** A video whose source is being fetched from an address, or waits for it. Gone when the source is there, or will not come. */
type ImportTable = {
  videoId: string
  accountId: string
  /** The video's: whoever asked first is first. */
  position: number
  /** Of the address, so that no host is asked too often at once. */
  host: string
  /** The address may be signed: it is a secret as long as it is kept. */
  wrappedUrl: Buffer
  /** What has come so far, sealed, by its name below the sources folder; null while nothing has. */
  file: string | null
  /** As `source.wrappedKey` and `iv`. */
  wrappedKey: Buffer | null
  iv: Buffer | null
  /** The strong ETag under which it began to come: the rest may be asked for. Null: what breaks off begins anew. */
  etag: string | null
  /** Durable clear bytes of the file; what lies behind them does not count. */
  receivedBytes: Generated<number>
  /** Of those bytes. */
  receivedSha256: Buffer | null
  /** The most that was ever received: only a try that gets further is no lost one. */
  maxReceivedBytes: Generated<number>
  /** Tries that got no further. */
  attempts: Generated<number>
  nextAttemptAtS: number
  /** When it is given up; null before the first try. */
  endsAtS: number | null
}

type SourceTable = {
  videoId: string
  /** Name below the sources folder. */
  file: string
  sizeBytes: number
  sha256: Buffer
  /** Key of this source alone, wrapped by the master key; null once the video is deleted. */
  wrappedKey: Buffer | null
  iv: Buffer
  /** HMAC-SHA-256 of each MiB of the sealed file: CBC alone would not notice changed bytes. */
  macs: Buffer
}

type GenerationTable = {
  videoId: string
  number: number
  /** Null once the video is deleted. */
  wrappedContentKey: Buffer | null
  /** JSON of encode/plan.ts `Plan`. */
  plan: string
  /** ffmpeg and arguments that made its first segment: gaps may be filled only by the same. */
  encoder: string
  createdAtS: number
  /** When its posters were drawn, or found to be impossible. */
  postersAtS: number | null
  /** When its last segment was published. */
  finishedAtS: number | null
}

type RenditionTable = {
  videoId: string
  generation: number
  id: number
  kind: 'video' | 'audio'
  /** The init segment: codec headers only, the same bytes from every chunk. */
  init: Buffer | null
}

type ChunkTable = {
  videoId: string
  generation: number
  kind: 'video' | 'audio'
  firstSegment: number
  segmentCount: number
  /** 1: decoded from the video's start, without a seek. */
  decodesFromStart: number
  state: 'pending' | 'running' | 'done' | 'failed'
  /** Rises with each start; names the files of one run and fences off an older one. */
  attempt: Generated<number>
  /** Lower runs first. */
  priority: number
  /** Of its video: of one priority, older videos run first. */
  position: number
  /** Of each encoder in the run that finished it; 0: as many as it chose. Other threads make other bytes. */
  threads: Generated<number>
}

type SegmentTable = {
  videoId: string
  generation: number
  renditionId: number
  number: number
  file: string
  sizeBytes: number
  /** Of the file, as it was published. */
  sha256: Buffer
  /** 1: its file was found missing or changed; it is not sent until it has been encoded again. */
  damaged: Generated<number>
}

/** Every file of a video: `original` and `rendition` are named here alone, by triggers; of the others the blob is here, too. */
type FileTable = {
  /** What the interfaces call it by: unique in the installation, never given twice. */
  id: Generated<number>
  videoId: string
  type: 'original' | 'rendition' | 'poster' | 'caption' | 'mp4'
  createdAtS: number
  /** 0: a newer one has taken its place; of an MP4, it could not be made. */
  enabled: Generated<number>
  /** What was added by one call, such as the sizes of one poster, which come and go together; `drawn`: the video's own posters. */
  attachmentId: string | null
  /** What comes with a generation goes with it, and its content key opens it; null: it has a key of its own. */
  generation: number | null
  renditionId: number | null
  /** Name below its folder; null of an MP4 while it is being made. */
  blob: string | null
  sizeBytes: Generated<number>
  widthPx: number | null
  heightPx: number | null
  /** Makes a poster's address unguessable. */
  token: string | null
  /** Of a caption: BCP 47, in lower case. */
  language: string | null
  /** Wrapped by the master key; null once the video is deleted. */
  wrappedKey: Buffer | null
  /** With `macs`, of what is large and read in parts: see crypto/sealed-file.ts. */
  iv: Buffer | null
  macs: Buffer | null
  /** Of an MP4: how often its making was begun. */
  attempts: Generated<number>
  /** Of an MP4 that could not be made: why, for its owner. */
  problem: string | null
}

type OtpTable = {
  /** SHA-256 of the OTP's text. */
  hash: Buffer
  accountId: string
  apiKeyId: string
  videoId: string
  userId: string | null
  /** JSON of watermark/watermark.ts `Watermark[]`. */
  watermarks: string
  forcedBitrateKbps: number | null
  /** JSON kept for DRM licences. */
  licenseRules: string | null
  issuedAtS: number
  expiresAtS: number
  spentAtS: number | null
  /** When another browser tried to redeem it first, after it was spent. */
  reusedAtS: number | null
  /** Most streams of this userId at once; null: no limit. */
  streamLimit: number | null
  /** JSON of playback/rules.ts `Rules`; null: none. */
  rules: string | null
}

type PlaybackSessionTable = {
  id: string
  otpHash: Buffer
  accountId: string
  videoId: string
  generation: number
  userId: string | null
  /** 65 raw bytes of the browser's P-256 point. */
  publicKey: Buffer
  keyId: Buffer
  /** JSON list of page ids, newest last. */
  pages: string
  watermarks: string
  forcedBitrateKbps: number | null
  startedAtS: number
  endsAtS: number
  lastSeenAtS: number
  leftAtS: number | null
  endedAtS: number | null
  endReason: string | null
  /** As its OTP or its account said when it was opened. */
  streamLimit: number | null
  /** Its OTP's. */
  rules: string | null
  /** When its first key was counted as a view. */
  viewedAtS: number | null
}

/** A place among the streams that one viewer may have at once, leased by a session (playback-protocol.md, section 7). */
type StreamSlotTable = {
  accountId: string
  userId: string
  /** 1 to the limit. */
  n: number
  sessionId: string
  takenAtS: number
  /** On the playback clock; from then on another session may take it. */
  endsAtS: number
}

/** Where a viewer left a video. */
type WatchPositionTable = {
  accountId: string
  /** The owner's own label of the viewer. */
  userId: string
  videoId: string
  positionS: number
  /** On the playback clock. */
  savedAtS: number
}

type RedeemAttemptTable = {
  id: Generated<number>
  otpHash: Buffer
  atS: number
  keyId: Buffer
  address: string
  userAgent: string
  embeddingHost: string
  outcome: string
  /** Of the OTP's rules the one that refused. */
  rule: string | null
  /** More than 1 on the last row that is kept of an OTP: attempts that came after it are only counted. */
  attemptCount: Generated<number>
}

type WatermarkImageTable = {
  accountId: string
  /** SHA-256 of the address it comes from. */
  urlHash: Buffer
  /** PNG, sealed; null while no try has brought one. */
  sealed: Buffer | null
  /** Why the last try failed; null when it did not. */
  problem: string | null
  triedAtS: number
}

type SettingTable = { name: string; value: string }

/** Twice a limit in one window. */
type StrikeTable = { id: Generated<number>; scope: LimitScope; subject: string; budget: string; atS: number }

type BanTable = {
  scope: LimitScope
  /** An IPv4 address, the /64 of an IPv6 one, the id of a key or an account. */
  subject: string
  budget: string
  beganAtS: number
  endsAtS: number
}

/** What was sent and viewed of a video on one day; kept when the video is deleted. */
type VideoUsageTable = {
  /** Of UTC, `YYYY-MM-DD`. */
  day: string
  accountId: string
  videoId: string
  /** The `userId` of its OTPs; '' where they had none. */
  userId: string
  sentBytes: number
  viewCount: number
}

/** All views of a video, ever. */
type ViewTotalTable = { videoId: string; viewCount: number }

/** What a call with an Idempotency-Key was answered. */
type StoredResponseTable = {
  accountId: string
  idempotencyKey: string
  /** SHA-256 of what was asked: the same key for something else is refused. */
  requestHash: Buffer
  /** Wrapped by the master key, since it may hold a secret. */
  wrappedResponse: Buffer
  respondedAtS: number
}

/** `viewer`: an address, as players ask from it. */
type LimitScope = 'ip' | 'key' | 'account' | 'viewer'

/** An owner's webhook endpoint. Its times are of the playback clock, as those of its deliveries. */
type WebhookTable = {
  id: string
  accountId: string
  url: string
  /** The one event that it hears; null: all. */
  event: string | null
  /** Wrapped by the master key. */
  wrappedSecret: Buffer
  /** The secret before the last rotation: what is sent is signed with it, too, until then. */
  previousWrappedSecret: Buffer | null
  previousSecretExpiresAtS: number | null
  createdAtS: number
  /** Of the newest delivery: numbers of an endpoint rise by one, in the order in which things happened. */
  lastSequence: Generated<number>
  /** Why nothing is sent to it; null while it is on. */
  disabledReason: string | null
  /** Since the last delivery that arrived. */
  consecutiveFailures: Generated<number>
  failingSinceS: number | null
  /** Nothing is sent before then; also the time of the last delivery that arrived, so that whoever has waited longest is next. */
  nextAttemptAtS: Generated<number>
  /** What failed is sent again from this number on, some at a time; null: it is not, or all has been taken. */
  replayFromSequence: number | null
}

/** One event on its way to one endpoint. */
type DeliveryTable = {
  webhookId: string
  sequence: number
  event: string
  /** As it is sent, byte for byte, in every attempt. */
  body: string
  /** When it happened, in Unix milliseconds of the wall clock. */
  timeMs: number
  state: 'waiting' | 'sending' | 'delivered' | 'failed'
  /** Rises with each attempt: whoever records an outcome must have made the last one. */
  attempts: Generated<number>
  /** Not before then; while it is being sent, the end of the sender's lease. 0: now. */
  dueAtS: Generated<number>
  triedAtS: number | null
  /** Of the last answer. */
  status: number | null
  /** Why the last attempt failed, in words for the owner. */
  problem: string | null
  /** When it was delivered or given up; null before. */
  finishedAtS: number | null
}

export type VideoRow = Selectable<VideoTable>
export type FolderRow = Selectable<FolderTable>
export type ChunkRow = Selectable<ChunkTable>
export type SegmentRow = Selectable<SegmentTable>
export type PlaybackSessionRow = Selectable<PlaybackSessionTable>
export type WatermarkImageRow = Selectable<WatermarkImageTable>
export type StoredResponseRow = Selectable<StoredResponseTable>
export type WebhookRow = Selectable<WebhookTable>
export type DeliveryRow = Selectable<DeliveryTable>
export type ImportRow = Selectable<ImportTable>
export type BanRow = Selectable<BanTable>
export type FileRow = Selectable<FileTable>
export type NewFile = Insertable<FileTable>
export type NewBan = Insertable<BanTable>
export type NewAuditEvent = Insertable<AuditEventTable>
export type NewOtp = Insertable<OtpTable>
export type NewRedeemAttempt = Insertable<RedeemAttemptTable>
