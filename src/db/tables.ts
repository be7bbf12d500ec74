import type { Generated, Insertable, Selectable } from 'kysely'

/**
 * The tables. Booleans are 0/1, lists and records JSON text, points in time Unix seconds (`…AtS`; any other `…S` is a length): both
 * databases store these alike. The playback clock is this server's time, which never goes back (playback/playback-clock.ts).
 * The API has other names for these; `http/` maps them.
 */
export type Tables = {
  account: AccountTable
  apiKey: ApiKeyTable
  consoleUser: ConsoleUserTable
  passkey: PasskeyTable
  signIn: SignInTable
  signInLink: SignInLinkTable
  auditEvent: AuditEventTable
  video: VideoTable
  trashedVideo: TrashedVideoTable
  folder: FolderTable
  tag: TagTable
  videoTag: VideoTagTable
  videoMetadata: VideoMetadataTable
  movedVideo: MovedVideoTable
  movedBlob: MovedBlobTable
  videoText: VideoTextTable
  uploadPolicy: UploadPolicyTable
  import: ImportTable
  resumableUpload: ResumableUploadTable
  uploadToken: UploadTokenTable
  source: SourceTable
  generation: GenerationTable
  replacement: ReplacementTable
  rendition: RenditionTable
  chunk: ChunkTable
  segment: SegmentTable
  file: FileTable
  chapters: ChaptersTable
  audioSettings: AudioSettingsTable
  dub: DubTable
  otp: OtpTable
  serverKey: ServerKeyTable
  playbackSession: PlaybackSessionTable
  keyBudget: KeyBudgetTable
  streamSlot: StreamSlotTable
  viewer: ViewerTable
  viewing: ViewingTable
  viewingDay: ViewingDayTable
  redeemAttempt: RedeemAttemptTable
  alert: AlertTable
  mail: MailTable
  claim: ClaimTable
  watermarkImage: WatermarkImageTable
  setting: SettingTable
  strike: StrikeTable
  ban: BanTable
  storedResponse: StoredResponseTable
  webhook: WebhookTable
  delivery: DeliveryTable
  videoUsage: VideoUsageTable
  viewTotal: ViewTotalTable
  storageDay: StorageDayTable
  viewQuality: ViewQualityTable
  worker: WorkerTable
  ltiPlatform: LtiPlatformTable
  ltiRegistration: LtiRegistrationTable
  ltiCourse: LtiCourseTable
  ltiNonce: LtiNonceTable
  ltiGrade: LtiGradeTable
  server: ServerTable
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
  /** Multiplies the rate limits of the account and its keys. */
  limitFactor: Generated<number>
  /** Maximum number of concurrent streams of one userId, unless its OTP sets one; 0: no limit. */
  streamLimit: Generated<number>
  /** What happens when a viewer is over the limit: the new stream is refused, or the oldest is stopped. */
  streamLimitPolicy: Generated<'refuse' | 'stop-oldest'>
  /** What its videos may take on the disk, those in the trash included. Null: no limit. */
  storageLimitBytes: number | null
  /** Options of its OTPs that do not set their own, as JSON. Null: none. */
  otpDefaults: string | null
  /** Whether an OTP may remove a default watermark or whitelist. */
  otpDefaultsRemovable: Generated<number>
  /** Whether deletions through the API go to the trash, as those of the console do. */
  deletesToTrash: Generated<number>
  /** Whether the sound of what is uploaded from now on is brought to one loudness. */
  normalizesLoudness: Generated<number>
  /** The language of captions that new videos get by themselves; null: none. */
  transcribeLanguage: string | null
  /** Where viewers watch, with `{id}` in place of a video's id; null: no such page is known. */
  watchUrl: string | null
  /** Sentences of the player in the owner's words, by language and name, as JSON; null: none. */
  playerSentences: string | null
  /** The owners have seen its alerts up to this id. */
  alertsSeenId: Generated<number>
  /** Videos not deleted: updated by triggers in the same transaction as `video`, so that a list needs no count. */
  videoCount: Generated<number>
  /** Folders besides the root; maintained by triggers. */
  folderCount: Generated<number>
  /** Rises with every change that a list of its videos could show; maintained by triggers. */
  changeNumber: Generated<number>
}

type ApiKeyTable = {
  id: string
  accountId: string
  /** SHA-256 of the key's text; the text is shown once and not stored. */
  hash: Buffer
  /** First characters, so that an owner can tell keys apart. */
  prefix: string
  name: string
  /** JSON list of permissions. */
  permissions: string
  createdAtS: number
  revokedAtS: number | null
  /** From then on it counts as revoked; null: never. */
  expiresAtS: number | null
  /** Written up to a minute late. */
  lastUsedAtS: number | null
}

/** A person who uses the console; `userId` elsewhere is an owner's name for a viewer. */
type ConsoleUserTable = {
  id: string
  accountId: string
  name: string
  /** The name as folded by db/fold-case.ts: unique. */
  foldedName: string
  /** Where the person is notified; null: nowhere. */
  email: Generated<string | null>
  role: 'owner' | 'uploader' | 'viewer'
  /** Whether operations of the whole installation are open to it. */
  isAdministrator: number
  /** The PHC string of an argon2id hash, wrapped by the master key: a stolen database allows no guessing. Null: no password. */
  wrappedPasswordHash: Buffer | null
  disabled: Generated<number>
  createdAtS: number
}

/** A WebAuthn credential. */
type PasskeyTable = {
  /** The credential's id in base64url. */
  id: string
  consoleUserId: string
  name: string
  /** SubjectPublicKeyInfo, DER. */
  publicKey: Buffer
  /** Rises with each use where the authenticator counts; 0 where it does not. */
  signCount: number
  /** JSON list of the ways in which the browser reaches it. */
  transports: string
  createdAtS: number
  lastUsedAtS: number | null
}

/** One browser in which a person is signed in. */
type SignInTable = {
  id: string
  /** SHA-256 of the cookie's token. */
  tokenHash: Buffer
  consoleUserId: string
  /** The account that is looked at: the person's own, or for an administrator any. */
  accountId: string
  method: 'password' | 'passkey' | 'link'
  /** Where it began. */
  address: string
  userAgent: string
  createdAtS: number
  /** Up to ten minutes late. */
  lastSeenAtS: number
  expiresAtS: number
}

/** A link that signs a person in once. */
type SignInLinkTable = {
  /** SHA-256 of its token. */
  hash: Buffer
  consoleUserId: string
  createdAtS: number
  expiresAtS: number
}

/** A management action and who took it. */
type AuditEventTable = {
  id: Generated<number>
  atS: number
  /** Null when it concerns no account, such as the ban of an address. */
  accountId: string | null
  /** The id of an API key, `user:` and the id of a person, or one of the words in audit/audit-log.ts. */
  actor: string
  kind: string
  /** The id of what was changed. */
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
  /** The generation that plays, or the first one while it is encoded. 0 before the first plan. */
  generation: Generated<number>
  /** The last number that one of its generations or sources got: none is given twice, since caches keep what was served under it. */
  lastNumber: Generated<number>
  /** The source of what plays, or the first one. */
  sourceNumber: Generated<number>
  /** Where what plays begins on the time line on which it is counted what viewers watched. */
  timelineStartS: Generated<number>
  /** 1 once its source is stored; maintained by a trigger. */
  hasSource: Generated<number>
  /** Options of its OTPs that do not set their own, as JSON. Null: none. */
  otpDefaults: string | null
  /** The person who added it; null: an API key, or a person of before this was recorded. */
  addedBy: string | null
  /** Its owner's own id for it: unique among the account's videos. */
  externalId: string | null
  /** Its owner's own pairs of texts, as JSON. Null: none. */
  metadata: string | null
  /** The oldest video of the account whose source had the same bytes when this one's arrived; it may be deleted by now. */
  duplicateOf: string | null
  /** The upload token that it came by, and its reference; null: it came another way. */
  uploadTokenId: string | null
  uploadReference: string | null
  /** Set when deleted: the row is a tombstone until its files are removed, or is in the trash (`trashed_video`). */
  deletedAtS: number | null
}

/** A deleted video that can be restored until `endsAtS`. */
type TrashedVideoTable = {
  videoId: string
  accountId: string
  trashedAtS: number
  /** Then it is deleted for good. */
  endsAtS: number
  /** JSON list: a deleted video has no tags. */
  tags: string
}

/** Each video is in exactly one folder; each account has a root folder, whose id is `root`. */
type FolderTable = {
  accountId: string
  id: string
  /** Null: the root. */
  parentId: string | null
  name: string
  /** The name as folded by db/fold-case.ts, for the order of lists and for searches by prefix. */
  foldedName: string
  createdAtS: number
  /** Videos, not deleted, and folders directly in it; maintained by triggers. */
  videoCount: Generated<number>
  folderCount: Generated<number>
}

/** A tag of the account and its number of videos; maintained by triggers on `video_tag`. */
type TagTable = { accountId: string; name: string; videoCount: number }

/** Pairs of tag and video. */
type VideoTagTable = {
  accountId: string
  name: string
  /** The position of its video. */
  position: number
  /** Rises in the order in which the video got its tags. */
  ordinal: number
}

/** The pairs of `video.metadata` whose values are short; maintained by triggers on `video`. */
type VideoMetadataTable = {
  accountId: string
  name: string
  value: string
  /** The position of its video. */
  position: number
}

/** A video that was copied from another server; the row outlives the video, so that a deleted one does not come again. */
type MovedVideoTable = {
  accountId: string
  /** The address of that server. */
  origin: string
  /** The video's id there. */
  originId: string
  videoId: string
  /** Whether its captions, chapters and poster have come. */
  hasFiles: Generated<number>
}

/** While files move to another place: those that are there. */
type MovedBlobTable = {
  /** `FOLDER/NAME`. */
  name: string
}

/** The texts that searches compare, folded by db/fold-case.ts; maintained by triggers on `video`. */
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
  /** 0: its file is the video's first. Otherwise it replaces that of the video; once it was accepted, this is the number of its source. */
  replaces: Generated<number>
}

/** A pending or running import. The row is removed when the source is stored or the import has failed. */
type ImportTable = {
  videoId: string
  accountId: string
  /** The video's: the oldest import runs first. */
  position: number
  /** The host of the address: connections per host are limited. */
  host: string
  /** Wrapped by the master key, because the address may be signed. */
  wrappedUrl: Buffer
  /** The sealed file with the bytes received so far, named below the sources folder; null while there are none. */
  file: string | null
  /** As `source.wrappedKey` and `iv`. */
  wrappedKey: Buffer | null
  iv: Buffer | null
  /**
   * The strong ETag of the first response: with it the remaining bytes can be requested. Null: an interrupted import starts
   * over.
   */
  etag: string | null
  /** Clear bytes of the file that are durable; bytes after them do not count. */
  receivedBytes: Generated<number>
  /** What continues their sealing in any process, opened only by the key of the file: see `openSealing`. */
  receivedState: Buffer | null
  /** The largest `receivedBytes` so far: only an attempt that gets further resets `attempts`. */
  maxReceivedBytes: Generated<number>
  /** Consecutive attempts that got no further. */
  attempts: Generated<number>
  nextAttemptAtS: number
  /** When the import fails for good unless it has finished; null before the first attempt. */
  endsAtS: number | null
  /** 1: its file replaces the one that the video has. */
  replaces: Generated<number>
}

/** A file that arrives in parts. */
type ResumableUploadTable = {
  /** The end of its address. */
  id: string
  videoId: string
  accountId: string
  /** The header `Upload-Metadata` of its creation. */
  metadata: string
  /** As the client sent it, for display only. */
  fileName: string
  /** Null: not known yet. */
  lengthBytes: number | null
  /** Clear bytes of the file that are durable. All of them have arrived only when it is finished. */
  receivedBytes: Generated<number>
  /** As `import.receivedState`; null: nothing has arrived, or all has. */
  receivedState: Buffer | null
  /** The sealed file with the bytes received so far, named below the sources folder. */
  file: string
  /** As `source.wrappedKey`; null once it is finished: then the source has it. */
  wrappedKey: Buffer | null
  iv: Buffer
  /** The upload token that it was begun with; null: another way. */
  uploadTokenId: string | null
  /** An unfinished one is removed then, with what has arrived; by the playback clock. Each part that arrives moves it. */
  expiresAtS: number
  /** When the video got its source; null before. */
  finishedAtS: number | null
  /** 1: the file replaces the one that the video has. */
  replaces: Generated<number>
}

/** What a page of an owner uploads with. */
type UploadTokenTable = {
  /** The order of lists. */
  position: Generated<number>
  id: string
  accountId: string
  /** SHA-256 of the token; the token is shown once and not stored. */
  hash: Buffer
  /** The key or the person that made it. */
  apiKeyId: string | null
  consoleUserId: string | null
  /** Of the pages that may use it. */
  origin: string
  /** Of each video. Null: its page chooses, as far as the pattern allows. */
  title: string | null
  /** A title with `*` in place of any text. */
  titlePattern: string | null
  folderId: string
  /** JSON list. */
  tags: string
  /** Of each file; null: as the server accepts. */
  maxSizeBytes: number | null
  maxFiles: number
  /** Begun with it, without those that were deleted before they arrived. */
  files: Generated<number>
  /** What the owner calls its user. */
  reference: string | null
  /** Of a video whose file it replaces. */
  videoId: string | null
  /** By the playback clock. */
  createdAtS: number
  expiresAtS: number
  revokedAtS: number | null
}

/** A file that a video was or is to be made from. */
type SourceTable = {
  videoId: string
  /** 1 for the first file of its video; each that replaces it gets the next. */
  number: Generated<number>
  /** Name below the sources folder. */
  file: string
  /** As the client sent it, for display only. */
  fileName: Generated<string>
  receivedAtS: Generated<number>
  /** Where the file begins on the time line of its video: where that of what it replaced began. */
  timelineStartS: Generated<number>
  sizeBytes: number
  sha256: Buffer
  /** The key of this source only, wrapped by the master key; null once the video is deleted. */
  wrappedKey: Buffer | null
  iv: Buffer
  /** HMAC-SHA-256 of each MiB of the sealed file: CBC alone does not detect changed bytes. */
  macs: Buffer
}

/** One encoding of a video. A new encoding is a new generation, with new keys. */
type GenerationTable = {
  videoId: string
  number: number
  /** Null once the video is deleted. */
  wrappedContentKey: Buffer | null
  /** JSON of encode/plan.ts `Plan`. */
  plan: string
  /** The version and arguments of the ffmpeg that made its first segment: missing segments may be made only by the same. */
  encoder: string
  createdAtS: number
  /** When its posters were extracted, or found to be impossible. */
  postersExtractedAtS: number | null
  /** When its last segment was published. */
  finishedAtS: number | null
  /** When its storyboard was made, or found to be impossible. */
  storyboardMadeAtS: number | null
  /** How many attempts to make it were started. */
  storyboardAttempts: Generated<number>
  /** The file that it is made from. */
  sourceNumber: Generated<number>
  /** Of its segments, once it is finished. */
  segmentBytes: Generated<number>
  /** `video.statusReason` while it plays. */
  reason: string | null
  /** Set while another generation plays in its place: until then it can play again, and goes on for its open sessions. */
  keptUntilS: number | null
  /** By what it was replaced. */
  keptBy: 'replace' | 'trim' | 'undo' | null
}

/** What is to replace the generation that a video plays, or why it could not be made. */
type ReplacementTable = {
  videoId: string
  accountId: string
  kind: 'replace' | 'trim'
  /** The file that it is made from; null while that is being imported. */
  sourceNumber: number | null
  /** The file's name. */
  fileName: Generated<string>
  /** Null before its source was examined, and once it has failed. */
  generation: number | null
  /** Of a trim: what is kept of the source, in seconds. */
  startS: number | null
  endS: number | null
  /** Why it failed, for the video's owner. */
  problem: string | null
  requestedAtS: number
}

type RenditionTable = {
  videoId: string
  generation: number
  id: number
  kind: 'video' | 'audio'
  /** The init segment: codec headers only, identical in every chunk. */
  init: Buffer | null
  /** By how much its audio is made louder, in decibels, once that is measured: every chunk of it has the same. */
  gainDb: number | null
}

/** Segments that one run of ffmpeg encodes: the unit of encoding work. */
type ChunkTable = {
  videoId: string
  generation: number
  kind: 'video' | 'audio'
  firstSegment: number
  segmentCount: number
  /** 1: decoded from the video's start, without a seek. */
  decodesFromStart: number
  state: 'pending' | 'running' | 'done' | 'failed'
  /** Rises with each run; names the files of a run and fences off an older one. */
  attempt: Generated<number>
  /** Lower runs first. */
  priority: number
  /** The position of its video: within a priority, older videos run first. */
  position: number
  /**
   * Threads of each encoder in the run that finished it; 0: as the encoder chose. Another number of threads makes other bytes.
   */
  threads: Generated<number>
  /** The worker whose segments the last finished run published; null: this server encoded them. */
  workerId: string | null
  /** 1: its segments are published, and its next run compares them with what it makes. */
  compared: Generated<number>
}

type SegmentTable = {
  videoId: string
  generation: number
  renditionId: number
  number: number
  file: string
  sizeBytes: number
  /** Of the published file. */
  sha256: Buffer
  /** 1: its file was found missing or changed; it is withheld until it has been encoded again. */
  damaged: Generated<number>
  /** How often it was to be repaired after its file had other bytes; part of its address. */
  repairs: Generated<number>
}

/**
 * Every file of a video. Rows of `original` and `rendition` are made by triggers; the names of their blobs are in `source` and `segment`,
 * those of the other types here.
 */
type FileTable = {
  /** The id in the APIs: unique in the installation, never reused. */
  id: Generated<number>
  videoId: string
  type: 'original' | 'rendition' | 'poster' | 'caption' | 'mp4' | 'storyboard' | 'poster-candidate'
  createdAtS: number
  /** 0: replaced by a newer one; of an MP4: it could not be made. */
  enabled: Generated<number>
  /**
   * The same for all files added by one call, such as the sizes of one poster, which are added and removed together; `drawn`:
   * posters extracted from the video; `first`: those of its first usable frame, until the best candidate takes their place.
   */
  attachmentId: string | null
  /** The generation that it belongs to: it is removed with it, and sealed by its content key. Null: it has a key of its own. */
  generation: number | null
  /** Of an original: the number of its source. */
  sourceNumber: number | null
  renditionId: number | null
  /** Name below its folder; null of an MP4 while it is being made, and of captions. */
  blob: string | null
  sizeBytes: Generated<number>
  widthPx: number | null
  heightPx: number | null
  /** Makes a poster's address unguessable. */
  token: string | null
  /** Of a caption: BCP 47, in lower case. */
  language: string | null
  /** 1: captions that viewers do not get until their owner shows them. */
  hidden: Generated<number>
  /** 1: captions that a program made of speech, or is to make where there is no blob, and that no one has looked at yet. */
  automatic: Generated<number>
  /** How much of the sound has been transcribed, from 0 to 1. */
  progress: Generated<number>
  /** Of captions that were inside of the uploaded file: ffmpeg's number of their stream. Without a blob they are still to be read. */
  streamIndex: number | null
  /** What that stream is called there. */
  streamTitle: string | null
  /** Of a candidate for the poster: when its frame is shown. */
  timeS: number | null
  /** Wrapped by the master key; null once the video is deleted. */
  wrappedKey: Buffer | null
  /** Set together with `macs` for large files, which are read in parts: see crypto/sealed-file.ts. */
  iv: Buffer | null
  macs: Buffer | null
  /** Of an MP4, or captions inside of a file: how many attempts to make it were started. */
  attempts: Generated<number>
  /** Of one that could not be made: the reason, for its owner. */
  problem: string | null
  /** 1: its file was found missing or changed, and has neither been made again nor found intact since. Not of renditions. */
  damaged: Generated<number>
}

/** A video that has chapters. */
type ChaptersTable = {
  videoId: string
  /** Of the titles: BCP 47, in lower case; null: unknown. */
  language: string | null
  /** JSON of catalogue/chapters.ts `Chapter[]`, in their order. */
  list: string
}

/** A file of a video of whose audio tracks its owner has set something. */
type AudioSettingsTable = {
  videoId: string
  sourceNumber: number
  /** JSON of catalogue/audio-settings-store.ts `AudioSettings[]`. */
  list: string
}

/** An audio track that was added to a video as a file of its own. */
type DubTable = {
  videoId: string
  /** Of its own file in `source`. */
  sourceNumber: number
  accountId: string
  /** Of the video's file that it belongs to. */
  ofSource: number
  /** Where on that file it begins, in seconds. */
  startS: number
  /** BCP 47, in lower case. */
  language: string
  /** As viewers read it; null: as its language is called. */
  name: string | null
  /** 1: it becomes the default track once it can be played. */
  isDefault: number
  requestedAtS: number
  /** How many attempts to encode it were started. */
  attempts: Generated<number>
  /** How much of it the last attempt has encoded, from 0 to 1. */
  progress: Generated<number>
  /** 1: it is a rendition of the generation that plays. */
  encoded: Generated<number>
  /** By how many seconds it was longer than the video; negative: shorter. Null before it is examined. */
  differenceS: number | null
  /** Why it cannot be played, for the video's owner. */
  problem: string | null
}

type OtpTable = {
  /** SHA-256 of the OTP's text. */
  hash: Buffer
  accountId: string
  /** Of the key that issued it, or of the person in the console: it can be spent only while that is valid. */
  apiKeyId: string
  videoId: string
  userId: string | null
  /** JSON of watermark/watermark.ts `Watermark[]`. */
  watermarks: string
  forcedBitrateKbps: number | null
  /** JSON stored for DRM licences. */
  licenseRules: string | null
  issuedAtS: number
  expiresAtS: number
  /** When it was redeemed. */
  spentAtS: number | null
  /** When another browser first tried to redeem it again. */
  reusedAtS: number | null
  /** Maximum number of concurrent streams of this userId; null: no limit. */
  streamLimit: number | null
  /** JSON of playback/rules/rules.ts `Rules`; null: none. */
  rules: string | null
  /** JSON of viewers/viewer-store.ts `ViewerName`; null: it names no viewer. */
  viewer: string | null
}

/** The server's side of the keys that browsers agree with it: playback-protocol.md, section 3. */
type ServerKeyTable = {
  id: string
  /** A P-256 point, uncompressed: 65 bytes. */
  publicKey: Buffer
  wrappedPrivateKey: Buffer
  createdAtS: number
}

type PlaybackSessionTable = {
  id: string
  otpHash: Buffer
  accountId: string
  videoId: string
  generation: number
  userId: string | null
  /** The browser's P-256 key as an uncompressed point, 65 bytes (SEC 1). */
  publicKey: Buffer
  /** The server's key that it agreed with. */
  serverKeyId: string
  /** SHA-256 of `publicKey`. */
  keyId: Buffer
  /** JSON list of the ids of player pages, newest last. */
  pages: string
  watermarks: string
  forcedBitrateKbps: number | null
  startedAtS: number
  /** When it ends at the latest. */
  endsAtS: number
  lastSeenAtS: number
  /** When its viewer closed the page; the session may be continued for a while. */
  leftAtS: number | null
  /** When it ended, for `endReason`. */
  endedAtS: number | null
  endReason: string | null
  /** The limit of its OTP or its account when it was opened. */
  streamLimit: number | null
  /** Its OTP's. */
  rules: string | null
  /** When its first content key was released, which counts as a view. */
  viewedAtS: number | null
  /** A bit for each key window that was released to it, the first one lowest. Null when it names no viewer. */
  keyWindows: Buffer | null
  /** Rises with each save, page and end: write-behind.ts. */
  version: Generated<number>
  /** The numbers of proofs that its newest page has used, where several servers answer: proof.ts. */
  seqHighest: Generated<number>
  seqSeen: Generated<number>
  /** JSON of what else the next request needs, where several servers answer: shared-session.ts. */
  live: Generated<string | null>
}

/** How much of a video a viewer may be given keys for: playback-protocol.md, section 6. Times are on the playback clock. */
type KeyBudgetTable = {
  accountId: string
  /** `user <userId>`; without a userId `session <id>`, and `address <address, /64 or /48>`. */
  viewer: string
  /** Empty: the budget over all videos. */
  videoId: string
  /** All generations of one source share a budget. */
  sourceNumber: number
  /** Seconds of video. */
  levelS: number
  earnedAtS: number
  /** A bit for each key window, the first one lowest: whether its key has been released. */
  released: Buffer
  /** The generation whose windows these are. */
  releasedOf: number
  /** Of an address: JSON list of the last sessions that earned there, each with when. */
  earning: string | null
  /** When it was last used, and at most a quarter of an hour more. */
  usedAtS: number
  /** Rises with each save: write-behind.ts. */
  version: Generated<number>
}

/** One of the concurrent streams that a viewer may have, leased by a session (playback-protocol.md, section 7). */
type StreamSlotTable = {
  accountId: string
  userId: string
  /** 1 to the limit. */
  n: number
  sessionId: string
  takenAtS: number
  /** On the playback clock; from then on another session may acquire it. */
  endsAtS: number
}

/** What the owner calls a viewer. */
type ViewerTable = {
  accountId: string
  /** The owner's label of the viewer. */
  userId: string
  name: string | null
  email: string | null
  /** When an OTP that names the viewer was last redeemed, on the playback clock. */
  namedAtS: number
}

/** What a viewer has watched of a video. Times are on the playback clock. */
type ViewingTable = {
  id: Generated<number>
  accountId: string
  /** The owner's label of the viewer. */
  userId: string
  videoId: string
  /** Sorted seconds on the time line of the video, `from to from to …`, which neither overlap nor touch. */
  intervals: string
  /** How many of them the video had when it was saved. */
  watchedS: number
  /** Where the viewer watched last, on the time line. */
  positionS: number
  beganAtS: number
  lastAtS: number
  /** When most of it was watched. */
  completedAtS: number | null
  /** Rises with each save, also of its days: write-behind.ts. */
  version: Generated<number>
}

/** What a viewer has watched of a video on one day. */
type ViewingDayTable = {
  accountId: string
  /** Of the playback clock: days since 1970 in UTC. */
  day: number
  videoId: string
  userId: string
  intervals: string
  watchedS: number
}

/** What an owner should look at; once a day for each cause and subject. */
type AlertTable = {
  id: Generated<number>
  accountId: string
  /** Days since 1970 in UTC, on the playback clock. */
  day: number
  cause: string
  /** Whom or what it is about: `user <userId>`, `session <id>`, `otp <beginning of its hash>` or `video <id>`. */
  subject: string
  /** The first time of the day, on the playback clock. */
  atS: number
  /** How often the cause occurred on the day. */
  occurrenceCount: number
  sessionId: string | null
  userId: string | null
  videoId: string
  /** All videos of the day, `videoId` first, with commas in between; at most about 20. */
  videoIds: Generated<string>
  /** JSON: what was measured the first time. */
  numbers: string
}

/** E-mails: one for each day and cause of alerts, whatever their number, and notices to people. Times are on the playback clock. */
type MailTable = {
  /** Of alerts `day cause`, so that there is one. */
  id: string
  day: number
  cause: string
  /** The e-mail address of a person; null: those who get the alerts. */
  recipient: string | null
  /** Of alerts null: written when the mail is sent. */
  subject: string | null
  text: string | null
  /** When it is to be sent, or tried again. */
  dueAtS: number
  attempts: Generated<number>
  /** Null: not yet. */
  sentAtS: number | null
  /** Why the last attempt failed. */
  problem: string | null
}

/** The kinds of work that one process at a time does; `encoding`: all work on a video, which waits after a failure. */
export type WorkKind =
  | 'video'
  | 'encoding'
  | 'chunk'
  | 'import'
  | 'mp4'
  | 'captions'
  | 'transcription'
  | 'storyboard'
  | 'dub'
  | 'webhook'
  | 'mail'
  | 'score'
  | 'duty'

/** Work that a process does now, or that waits after a failure. Times are on the playback clock. */
type ClaimTable = {
  kind: WorkKind
  /** What it works on: an id, or several with slashes between them. */
  subject: string
  /** Of this claim, random. Null: none, the work waits. */
  id: string | null
  /** Whose claim it is: jobs/claims.ts. */
  server: string | null
  /** The end of the lease, or of the wait. */
  endsAtS: number
  /** How often the work itself has failed. */
  failures: Generated<number>
}

type RedeemAttemptTable = {
  id: Generated<number>
  otpHash: Buffer
  /** Of its OTP; null where that was gone when this column was added. */
  accountId: string | null
  atS: number
  keyId: Buffer
  address: string
  userAgent: string
  embeddingHost: string
  outcome: string
  /** The rule of the OTP that rejected the viewer. */
  rule: string | null
  /** More than 1 in the last row stored for an OTP: later attempts are only counted. */
  attemptCount: Generated<number>
}

type WatermarkImageTable = {
  accountId: string
  /** SHA-256 of its URL. */
  urlHash: Buffer
  /** PNG, sealed; null until an attempt to fetch it has succeeded. */
  sealed: Buffer | null
  /** Why the last attempt failed; null when it succeeded. */
  problem: string | null
  triedAtS: number
}

type SettingTable = { name: string; value: string }

/** A flood: a client sent at least twice a limit in one window. Repeated ones lead to a ban. `budget` names the limit. */
type StrikeTable = { id: Generated<number>; scope: LimitScope; subject: string; budget: string; atS: number }

type BanTable = {
  scope: LimitScope
  /** An IPv4 address, the /64 of an IPv6 one, the id of a key or an account. */
  subject: string
  budget: string
  beganAtS: number
  endsAtS: number
}

/** Bytes and views of a video on one day; not deleted with the video. */
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

/** What the videos of an account took on the disk when it was last measured on a day of UTC, those in the trash included. */
type StorageDayTable = { day: string; accountId: string; sizeBytes: number }

/**
 * How a video played on one page of a session, as its beats reported it. A session is deleted a day after it ends; from then on a row is
 * about no one.
 */
type ViewQualityTable = {
  sessionId: string
  pageId: string
  /** Of UTC, `YYYY-MM-DD`: of the first beat. */
  day: string
  accountId: string
  videoId: string
  /** ISO 3166-1 alpha-2; '' where it is not known, as in the next two. */
  country: string
  browser: string
  /** As the browser rates its connection: `4g`, `3g`, `2g` or `slow-2g`. */
  network: string
  /** For how long the page had been open at its last report. */
  measuredMs: number
  /** From the request to play to the first frame; null: there was none. */
  startMs: number | null
  /** How often playback waited for data after its start, and for how long. Seeks do not count. */
  waitCount: number
  waitedMs: number
  playedMs: number
  frameCount: number
  droppedFrameCount: number
  /** What stopped it for good; null: nothing did. */
  error: string | null
  /** For how long each height was on the screen, as `height:ms`, with spaces between them. */
  rungs: string
}
export type ViewQualityRow = Selectable<ViewQualityTable>

/** An encoder on another machine. A removed one has no row. */
type WorkerTable = {
  id: string
  /** Unique. */
  name: string
  /** SHA-256 of its token. */
  hash: Buffer
  /** 1: its results are sampled, not all checked. */
  trusted: Generated<number>
  createdAtS: number
  /** By the playback clock, about half a minute old at most. */
  lastSeenAtS: number | null
  /** What it encoded with when it was last seen: see `encoderFingerprint`. */
  encoder: string | null
  /** How many chunks it encodes concurrently. */
  jobs: Generated<number>
  /** What it encodes: `video`, `audio` or `video,audio`. */
  kinds: Generated<string>
  /** Seconds of video encoded in a second of a task, over its last tasks. */
  speed: number | null
  /** 1: it gets no more chunks. */
  drained: Generated<number>
  /** Why it gets no more chunks: what it sent failed a check. */
  suspendedReason: string | null
}

/** A learning platform whose people launch videos (LTI 1.3). Times are on the playback clock. */
type LtiPlatformTable = {
  id: string
  accountId: string
  name: string
  /** The `iss` of its messages. */
  issuer: string
  /** What it calls this server; '' until the owner has said so. */
  clientId: string
  authorizationUrl: string
  tokenUrl: string
  keysUrl: string
  /** JSON list; the first launch fills an empty one. */
  deploymentIds: string
  /** Of the key pair with which this server signs what it sends there: PKCS #8, wrapped. */
  wrappedPrivateKey: Buffer
  /** JSON: the public JWK, with its `kid`. */
  publicKey: string
  /** The folder that is open to its courses, with all in it; null: none. */
  folderId: string | null
  /** 1: viewers have their names in lists and watermarks. */
  showsNames: Generated<number>
  /** 1: its teachers upload into the folder that is open to them. */
  mayUpload: Generated<number>
  createdAtS: number
  /** Null: the owner has not confirmed it, and nothing is launched. */
  confirmedAtS: number | null
  lastLaunchAtS: number | null
  /** Why the last launch or score failed, in words; null: none did since a launch worked. */
  lastError: string | null
  lastErrorAtS: number | null
}

/** A link with which one platform registers. */
type LtiRegistrationTable = {
  /** SHA-256 of what the link ends with. */
  hash: Buffer
  accountId: string
  createdAtS: number
  expiresAtS: number
}

/** A course that has launched something. */
type LtiCourseTable = {
  platformId: string
  /** As the platform calls it: `context.id`. */
  courseId: string
  accountId: string
  title: string
  /** Open to this course instead of what is open to the platform; null: the same. */
  folderId: string | null
  lastLaunchAtS: number
}

/** Launches that were used, so that each is used once. */
type LtiNonceTable = { hash: Buffer; expiresAtS: number }

/** What a learner has watched of a video that a course grades. */
type LtiGradeTable = {
  id: string
  platformId: string
  accountId: string
  /** Of playback, made of issuer and `sub`. */
  userId: string
  videoId: string
  /** Address of the column in the platform's grade book. */
  lineItem: string
  /** The platform's own id of the learner, wrapped: scores name it. */
  wrappedSubject: Buffer
  /** The share that counts as completed, in tenths. */
  completedAtTenths: number
  /** The share that was watched, in tenths. Never lowered. */
  tenths: number
  /** As the platform has accepted it. */
  sentTenths: Generated<number>
  /** The timestamp of the newest score, Unix milliseconds: the next one has a later one. */
  sentAtMs: Generated<number>
  launchedAtS: number
  /** When a score is sent, or tried again; null: nothing is to be sent. */
  dueAtS: number | null
  attempts: Generated<number>
  /** Why the last attempt failed. */
  problem: string | null
}

/** All views of a video, ever. */
type ViewTotalTable = { videoId: string; viewCount: number }

/** The response to a call with an Idempotency-Key. */
type StoredResponseTable = {
  accountId: string
  idempotencyKey: string
  /** SHA-256 of the request: the same key for another request is rejected. */
  requestHash: Buffer
  /** Wrapped by the master key, since it may hold a secret. */
  wrappedResponse: Buffer
  respondedAtS: number
}

/** `ip`: an address that owners' servers send requests from; `viewer`: one that players send them from, counted apart. */
type LimitScope = 'ip' | 'key' | 'user' | 'account' | 'viewer'

/** An owner's webhook endpoint. Its times and those of its deliveries are on the playback clock. */
type WebhookTable = {
  id: string
  accountId: string
  url: string
  /** The event that it receives; null: all. */
  event: string | null
  /** Wrapped by the master key. */
  wrappedSecret: Buffer
  /** The secret before the last rotation; until it expires, deliveries are signed with it, too. */
  previousWrappedSecret: Buffer | null
  previousSecretExpiresAtS: number | null
  createdAtS: number
  /** The number of the newest delivery. Numbers of an endpoint rise by one, in the order of the events. */
  lastSequence: Generated<number>
  /** Null while it is enabled. */
  disabledReason: string | null
  /** Since the last successful delivery. */
  consecutiveFailures: Generated<number>
  failingSinceS: number | null
  /**
   * Nothing is sent before then. After a success it is the time of that success, so that the endpoint that has waited longest
   * is next.
   */
  nextAttemptAtS: Generated<number>
  /** A replay queues failed deliveries from this number on, in batches. Null: no replay, or all are queued. */
  replayFromSequence: number | null
}

/** One event on its way to one endpoint. */
type DeliveryTable = {
  webhookId: string
  sequence: number
  event: string
  /** Sent unchanged in every attempt. */
  body: string
  /** When it happened, in Unix milliseconds of the wall clock. */
  timeMs: number
  state: 'waiting' | 'sending' | 'delivered' | 'failed'
  /** Rises with each attempt: an outcome is recorded only for the latest one. */
  attempts: Generated<number>
  /** Not sent before then. 0: immediately. */
  dueAtS: Generated<number>
  triedAtS: number | null
  /** HTTP status of the last response. */
  status: number | null
  /** Why the last attempt failed, for the owner. */
  problem: string | null
  /** When it was delivered or failed for good; null before. */
  finishedAtS: number | null
}

export type VideoRow = Selectable<VideoTable>
export type FolderRow = Selectable<FolderTable>
export type ChunkRow = Selectable<ChunkTable>
export type WorkerRow = Selectable<WorkerTable>
export type LtiPlatformRow = Selectable<LtiPlatformTable>
export type LtiCourseRow = Selectable<LtiCourseTable>
export type LtiGradeRow = Selectable<LtiGradeTable>
export type ReplacementRow = Selectable<ReplacementTable>
export type SegmentRow = Selectable<SegmentTable>
export type ServerKeyRow = Selectable<ServerKeyTable>
export type AlertRow = Selectable<AlertTable>
export type MailRow = Selectable<MailTable>
export type ViewerRow = Selectable<ViewerTable>
export type ViewingRow = Selectable<ViewingTable>
export type ViewingDayRow = Selectable<ViewingDayTable>
export type KeyBudgetRow = Selectable<KeyBudgetTable>
export type PlaybackSessionRow = Selectable<PlaybackSessionTable>
export type WatermarkImageRow = Selectable<WatermarkImageTable>
export type StoredResponseRow = Selectable<StoredResponseTable>
export type WebhookRow = Selectable<WebhookTable>
export type DeliveryRow = Selectable<DeliveryTable>
export type ImportRow = Selectable<ImportTable>
export type ResumableUploadRow = Selectable<ResumableUploadTable>
export type UploadTokenRow = Selectable<UploadTokenTable>
export type BanRow = Selectable<BanTable>
export type FileRow = Selectable<FileTable>
export type NewFile = Insertable<FileTable>
export type NewBan = Insertable<BanTable>
export type NewAuditEvent = Insertable<AuditEventTable>
export type ConsoleUserRow = Selectable<ConsoleUserTable>
export type PasskeyRow = Selectable<PasskeyTable>
export type SignInRow = Selectable<SignInTable>
export type NewConsoleUser = Insertable<ConsoleUserTable>
export type NewOtp = Insertable<OtpTable>
export type NewRedeemAttempt = Insertable<RedeemAttemptTable>

/** A server that uses this database, with others or alone where it could have others. */
type ServerTable = {
  /** The same after a restart on the same data folder. */
  id: string
  /** Random, of one start: servers/servers.ts. */
  run: string
  name: string
  /** Of Reelgate. */
  version: string
  state: 'joining' | 'serving' | 'stopping'
  startedAtS: number
  /** Of its last sign of life, by the database's clock. */
  beatAtS: number
  /** Ids of the servers that it knows of, with spaces between them. */
  knows: Generated<string>
  /** Which connection writes: its process in PostgreSQL, a space, and since when. Null: not connected yet. */
  backend: string | null
  /** 1: an administrator has it report that it is not ready, so that balancers send it nothing more. */
  drained: Generated<number>
  /** Viewers that watch there now. */
  sessions: Generated<number>
  /** Processes that wait for a processor of its machine, over the last minute. */
  load: Generated<number>
  /** What it encodes with, as of a worker, and how many chunks concurrently. */
  encoder: string | null
  encoderSlots: Generated<number>
}
