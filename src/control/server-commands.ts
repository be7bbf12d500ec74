import { type Static, Type } from 'typebox'
import { getAccount } from '../accounts/account.ts'
import { getOtpKey } from '../accounts/api-key.ts'
import { recordAuditEvent } from '../audit/audit-log.ts'
import type { ListDeps } from '../catalogue/catalogue-deps.ts'
import { type DeletionDeps, deleteVideos } from '../catalogue/deletion.ts'
import { removeDemo } from '../demo/demo.ts'
import { issueUploadPolicy, type PolicyDeps } from '../ingest/upload-policy.ts'
import type { VideoWork } from '../installation/video-work.ts'
import { encodePlaybackInfo, issueOtp, type OtpDeps } from '../playback/otp.ts'
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
  PolicyDeps & {
    /** The playback clock: keys end by it. */
    nowS: () => number
    /** Where this machine reaches the server, whatever its public address. */
    localUrl(): string
    publicUrl(): string
    reencrypt: VideoWork['reencrypt']
    playbackOtps: OtpDeps
    viewings: EraseDeps['viewings']
    savePlayback: EraseDeps['savePlayback']
    eraseFromUsage: EraseDeps['eraseFromUsage']
  }

const Id = Type.String({ pattern: '^[0-9a-f]{32}$' })
const VideoOfAccount = Type.Object({ accountId: Id, videoId: Id })

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
  'video reencrypt': command(Type.Object({ videoId: Id }), async (deps: ServerDeps, { videoId }) => {
    const event = { atS: deps.nowS(), by: 'command-line', kind: 'video:reencrypted', subjects: [videoId] } as const
    await deps.reencrypt(videoId, (tx, accountId) => recordAuditEvent(tx, { ...event, accountId }))
    return { videoId, started: true }
  }),
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
  'demo remove': command(Type.Object({}), async (deps: ServerDeps) => {
    await removeDemo(deps)
    return { removed: true }
  }),
} as const

export type ServerCommandName = keyof typeof SERVER_COMMANDS
