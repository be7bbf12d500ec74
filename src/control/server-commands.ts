import { Readable } from 'node:stream'
import { type Static, Type } from 'typebox'
import { getAccount } from '../accounts/account.ts'
import { getOtpKey } from '../accounts/api-key.ts'
import { parseTrackNames } from '../assets/audio-tracks.ts'
import { addCaption, type CaptionDeps, parseLanguage } from '../assets/caption.ts'
import { setChapters } from '../assets/chapters.ts'
import type { DubDeps } from '../assets/dubs.ts'
import { addPoster, type PosterDeps, receivePoster } from '../assets/poster.ts'
import { recordAuditEvent } from '../audit/audit-log.ts'
import type { ListDeps } from '../catalogue/catalogue-deps.ts'
import { type DeletionDeps, deleteVideos } from '../catalogue/deletion.ts'
import { removeDemo } from '../demo/demo.ts'
import type { TrimDeps } from '../encode/replacement.ts'
import type { ImportDeps } from '../ingest/import.ts'
import { countImports } from '../ingest/import-store.ts'
import { issueUploadPolicy, type PolicyDeps } from '../ingest/upload-policy.ts'
import type { FileMove } from '../installation/file-move.ts'
import type { VideoWork } from '../installation/video-work.ts'
import { fetchMovedFile } from '../move-in/fetch-file.ts'
import {
  addMovedAudio,
  assertMayMoveFrom,
  listMoved,
  moveAccount,
  moveVideo,
  nameMovedAudio,
  trimMoved,
} from '../move-in/move-in.ts'
import { setFilesMoved } from '../move-in/moved-video-store.ts'
import { deriveMediaSecrets } from '../playback/media/media-path.ts'
import { encodePlaybackInfo, issueOtp, type OtpDeps } from '../playback/otp.ts'
import type { DefaultOptions } from '../playback/otp-defaults.ts'
import { stopAndEraseViewer } from '../playback/sessions/stop.ts'
import { findProgress } from '../progress/video-progress.ts'
import { consoleUrl, linkUrl, makeLinkOnServer } from '../users/sign-in-link.ts'
import type { EraseDeps } from '../viewers/viewers.ts'
import { type TestDeps, testWebhookOfAnyAccount } from '../webhooks/test-event.ts'
import { type CommandDeps, command } from './commands.ts'

/** What only a running server has. */
export type ServerDeps = CommandDeps &
  DeletionDeps &
  ListDeps &
  TestDeps &
  PolicyDeps &
  ImportDeps &
  CaptionDeps &
  PosterDeps &
  DubDeps &
  TrimDeps & {
    /** Checks the default options of OTPs as the API gets them. @throws Failure `invalid` that names the option */
    readOtpDefaults(of: 'account' | 'video', options: unknown): Promise<DefaultOptions>
    /** The playback clock: keys end by it. */
    nowS: () => number
    /** Where this machine reaches the server, whatever its public address. */
    localUrl(): string
    publicUrl(): string
    reencrypt: VideoWork['reencrypt']
    fileMove: FileMove
    playbackOtps: OtpDeps
    viewings: EraseDeps['viewings']
    savePlayback: EraseDeps['savePlayback']
    eraseFromUsage: EraseDeps['eraseFromUsage']
  }

const Id = Type.String({ pattern: '^[0-9a-f]{32}$' })
const VideoOfAccount = Type.Object({ accountId: Id, videoId: Id })

const FolderPath = Type.Array(Type.String(), { description: 'names, the outermost first' })
const Origin = { accountId: Id, origin: Type.String({ maxLength: 2048 }) }
const OriginVideo = Type.Object({ ...Origin, originId: Id })
const MovingVideo = Type.Object({
  ...OriginVideo.properties,
  url: Type.String(),
  fileName: Type.String(),
  title: Type.String(),
  description: Type.String(),
  uploadTimeS: Type.Integer(),
  public: Type.Union([Type.Literal(0), Type.Literal(1)]),
  folders: FolderPath,
  otpDefaults: Type.Unknown(),
  tags: Type.Array(Type.String()),
  externalId: Type.Optional(Type.String()),
  metadata: Type.Optional(Type.Record(Type.String(), Type.String())),
})

const TRY_LINK_TTL_S = 6 * 3600

// The results of the commands, checked by the client: the server may be another version.
export const TryStart = Type.Object({
  accountId: Id,
  videoId: Id,
  uploadUrl: Type.String(),
  form: Type.Record(Type.String(), Type.String()),
})
export const TryProgress = Type.Object({
  status: Type.String(),
  reason: Type.Union([Type.String(), Type.Null()]),
  part: Type.Number(),
  step: Type.String(),
  isWhole: Type.Boolean(),
})
export const TryLink = Type.Object({ url: Type.String(), ttlS: Type.Integer() })
export const ConsoleLink = Type.Object({ url: Type.String(), user: Type.String(), expiresAtS: Type.Integer() })
export const MoveBegun = Type.Object({ accountId: Id })
export const MovedVideo = Type.Object({
  videoId: Id,
  state: Type.Union([Type.Literal('arriving'), Type.Literal('here'), Type.Literal('deleted')]),
  hasFiles: Type.Boolean(),
})
export const MoveProgress = Type.Object({ arriving: Type.Integer() })
const Problem = Type.Union([Type.String(), Type.Null()])
export const MoveOutcome = Type.Object({ problem: Problem })
export const MoveCompletion = Type.Object({ isWaiting: Type.Boolean(), problem: Problem })
export const MovedVideos = Type.Array(Type.Object({ originId: Id, isComplete: Type.Boolean(), problem: Problem }))
export const StorageMove = Type.Object({
  state: Type.Union([Type.Literal('none'), Type.Literal('moving'), Type.Literal('done')]),
  to: Type.String(),
  from: Type.String(),
  files: Type.Integer(),
  movedBytes: Type.Number(),
  totalBytes: Type.Number(),
  damaged: Type.Array(Type.String()),
  damagedCount: Type.Integer(),
  waitsFor: Type.String(),
  unusedFromS: Type.Integer(),
})
export const TryCancellation = Type.Object({ withdrawn: Type.Boolean() })

/** Commands that only a running server can do; `try` is made of four. */
export const SERVER_COMMANDS = {
  'try begin': command(
    Type.Object({
      account: Type.Optional(Type.String({ maxLength: 100 })),
      title: Type.String({ minLength: 1, maxLength: 500 }),
    }),
    async (deps: ServerDeps, { account, title }) => {
      const { id: accountId, mayUpload } = await getAccount(deps, account)
      await getOtpKey(deps, accountId) // before anything is sent: without it there would be no link in the end
      const { videoId, form } = await issueUploadPolicy(deps, { accountId, mayUpload }, { title })
      return { accountId, videoId, uploadUrl: `${deps.localUrl()}/upload`, form }
    },
  ),
  'try progress': command(VideoOfAccount, (deps: ServerDeps, { accountId, videoId }) =>
    findProgress(deps.slowQueryDb, accountId, videoId),
  ),
  'try link': command(VideoOfAccount, async (deps: ServerDeps, { accountId, videoId }) => {
    const otp = await issueOtp(deps.playbackOtps, {
      accountId,
      apiKeyId: await getOtpKey(deps, accountId),
      videoId,
      ttlS: TRY_LINK_TTL_S,
      watermarks: [],
    })
    const playbackInfo = encodePlaybackInfo(videoId)
    return { url: `${deps.publicUrl()}/player/?${new URLSearchParams({ otp, playbackInfo })}`, ttlS: TRY_LINK_TTL_S }
  }),
  'try withdraw': command(VideoOfAccount, async (deps: ServerDeps, { accountId, videoId }) => {
    const withdrawn =
      (await deleteVideos(deps, { accountId, by: 'command-line', videoIds: [videoId], onlyStatus: 'PRE-Upload' })) > 0
    return { withdrawn }
  }),
  'move begin': command(
    Type.Object({ account: Type.Optional(Type.String({ maxLength: 100 })), origin: Origin.origin }),
    async (deps: ServerDeps, { account, origin }): Promise<Static<typeof MoveBegun>> => {
      const { id: accountId } = await getAccount(deps, account)
      await assertMayMoveFrom(deps, { accountId, origin })
      return { accountId }
    },
  ),
  'move account': command(
    Type.Object({ ...Origin, folders: Type.Array(FolderPath), otpDefaults: Type.Unknown() }),
    async (deps: ServerDeps, moving): Promise<Static<typeof MoveOutcome>> =>
      moveAccount(deps, { ...moving, otpDefaults: await deps.readOtpDefaults('account', moving.otpDefaults) }),
  ),
  'move video': command(
    MovingVideo,
    async (deps: ServerDeps, moving): Promise<Static<typeof MovedVideo>> =>
      moveVideo(deps, { ...moving, otpDefaults: await deps.readOtpDefaults('video', moving.otpDefaults) }),
  ),
  'move caption': command(
    Type.Object({ ...VideoOfAccount.properties, language: Type.String(), startS: Type.Number(), url: Type.String() }),
    async (deps: ServerDeps, { url, language, ...video }) => {
      const text = await fetchMovedFile(deps, { ...video, url })
      await addCaption(deps, { ...video, by: 'command-line', language: parseLanguage(language), text })
      return {}
    },
  ),
  'move poster': command(
    Type.Object({ ...VideoOfAccount.properties, url: Type.String() }),
    async (deps: ServerDeps, { url, ...video }) => {
      const image = await receivePoster(deps, Readable.from([await fetchMovedFile(deps, { ...video, url })]))
      await addPoster(deps, { ...video, by: 'command-line', image })
      return {}
    },
  ),
  'move chapters': command(
    Type.Object({
      ...VideoOfAccount.properties,
      language: Type.Optional(Type.Union([Type.String(), Type.Null()])),
      chapters: Type.Array(Type.Object({ startS: Type.Number(), title: Type.String() })),
    }),
    async (deps: ServerDeps, { accountId, videoId, language, chapters }) => {
      const wanted = { ...(language && { language }), chapters }
      await setChapters(deps, { accountId, videoId, by: 'command-line' }, wanted)
      return {}
    },
  ),
  'move audio': command(
    Type.Object({
      ...VideoOfAccount.properties,
      ...{ url: Type.String(), fileName: Type.String(), language: Type.String(), startS: Type.Number() },
      ...{ name: Type.Optional(Type.String()), isDefault: Type.Boolean() },
    }),
    async (deps: ServerDeps, { accountId, videoId, language, name, ...track }): Promise<Static<typeof MoveCompletion>> =>
      addMovedAudio(deps, { accountId, videoId }, { ...track, ...parseTrackNames({ language, ...(name && { name }) }) }),
  ),
  'move audio names': command(
    Type.Object({
      ...VideoOfAccount.properties,
      tracks: Type.Array(Type.Object({ name: Type.String(), language: Type.Optional(Type.String()), isDefault: Type.Boolean() })),
    }),
    async (deps: ServerDeps, { accountId, videoId, tracks }): Promise<Static<typeof MoveCompletion>> =>
      nameMovedAudio(deps, { accountId, videoId }, tracks),
  ),
  'move trim': command(
    Type.Object({ ...VideoOfAccount.properties, startS: Type.Number(), endS: Type.Number() }),
    async (deps: ServerDeps, { accountId, videoId, ...part }): Promise<Static<typeof MoveCompletion>> =>
      trimMoved(deps, { accountId, videoId }, part),
  ),
  'move files done': command(OriginVideo, async (deps: ServerDeps, video) => {
    await deps.write((tx) => setFilesMoved(tx, video))
    return {}
  }),
  'move progress': command(
    Type.Object(Origin),
    async (deps: ServerDeps, { accountId }): Promise<Static<typeof MoveProgress>> => ({
      arriving: await countImports(deps.db, accountId),
    }),
  ),
  'move list': command(
    Type.Object(Origin),
    (deps: ServerDeps, target): Promise<Static<typeof MovedVideos>> => listMoved(deps, target),
  ),
  'video reencrypt': command(Type.Object({ videoId: Id }), async (deps: ServerDeps, { videoId }) => {
    const event = { atS: deps.nowS(), by: 'command-line', kind: 'video:reencrypted', subjects: [videoId] } as const
    await deps.reencrypt(videoId, (tx, accountId) => recordAuditEvent(tx, { ...event, accountId }))
    return { videoId, started: true }
  }),
  'storage move': command(
    Type.Object({ to: Type.String({ maxLength: 2048 }) }),
    async ({ fileMove }: ServerDeps, { to }): Promise<Static<typeof StorageMove>> => {
      await fileMove.begin(to)
      return fileMove.status()
    },
  ),
  'storage status': command(
    Type.Object({}),
    ({ fileMove }: ServerDeps): Promise<Static<typeof StorageMove>> => fileMove.status(),
  ),
  'webhook test': command(Type.Object({ webhookId: Id }), (deps: ServerDeps, { webhookId }) =>
    testWebhookOfAnyAccount(deps, webhookId),
  ),
  'viewer erase': command(
    Type.Object({
      account: Type.Optional(Type.String({ maxLength: 100 })),
      userId: Type.String({ minLength: 1, maxLength: 100 }),
    }),
    async (deps: ServerDeps, { account, userId }) => {
      const { id: accountId } = await getAccount(deps, account)
      const { sessions: stopped, videos } = await stopAndEraseViewer(deps, { accountId, userId, by: 'command-line' })
      return { stopped, videos }
    },
  ),
  'console link': command(
    Type.Object({ user: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })) }),
    async (deps: ServerDeps, { user }): Promise<Static<typeof ConsoleLink>> => {
      const { userName, token, expiresAtS } = await makeLinkOnServer(deps, user)
      return { url: linkUrl(consoleUrl(deps.publicUrl()), token), user: userName, expiresAtS }
    },
  ),
  'key media-secret': command(Type.Object({}), async ({ masterKey, nowS }: ServerDeps) => {
    const [secret] = deriveMediaSecrets(masterKey, nowS())
    return { secret }
  }),
  'demo remove': command(Type.Object({}), async (deps: ServerDeps) => {
    await removeDemo(deps)
    return { removed: true }
  }),
} as const

export type ServerCommandName = keyof typeof SERVER_COMMANDS
