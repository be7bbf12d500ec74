import { type Static, Type } from 'typebox'
import { changeAccount, getAccountById } from '../../accounts/account.ts'
import type { AccountDeps } from '../../accounts/api-key.ts'
import { findPlayerSentences, formatPlayerSentences } from '../../accounts/player-sentences.ts'
import { readWatchUrl } from '../../accounts/watch-url.ts'
import { readTranscribeLanguage, type TranscriptionRequestDeps } from '../../assets/transcription.ts'
import { AUDIT_LOG_S } from '../../audit/audit-log.ts'
import { TRASH_S } from '../../catalogue/trash.ts'
import { DAY_S } from '../../time.ts'
import type { StatisticsDeps } from '../../usage/statistics.ts'
import { getStorage } from '../../usage/storage.ts'
import { KEPT_DAYS } from '../../usage/usage.ts'
import { authenticateRequest } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { Flag, isOnIfGiven } from '../wire/flag.ts'
import { isoTime } from '../wire/iso-time.ts'
import { operation } from '../wire/operation.ts'

const WhenFull = Type.Union([Type.Literal('refuse'), Type.Literal('stop-oldest')])

export const AccountBody = Type.Object({
  id: Type.String(),
  name: Type.String(),
  createdAt: Type.String({ description: 'ISO 8601' }),
  disabled: Type.Boolean(),
  mayUpload: Type.Boolean(),
  mayImport: Type.Boolean(),
  pageMax: Type.Integer({ description: 'maximum page size of lists' }),
  limitFactor: Type.Integer({ description: 'its rate limits are multiplied by this' }),
  streamLimit: Type.Integer({ description: 'concurrent streams of one viewer, unless its OTP says otherwise; 0: no limit' }),
  whenFull: Type.Union([WhenFull, Type.String()], { description: 'what happens at that limit: refuse or stop-oldest' }),
  storageLimitBytes: Type.Union([Type.Integer(), Type.Null()], {
    description:
      'what its videos may take on the disk, those in the trash included; null: no limit. Uploads and imports that do not fit are refused',
  }),
  otpDefaultsRemovable: Type.Boolean({ description: 'whether an OTP may remove a default watermark or whitelist' }),
  deletesToTrash: Type.Boolean({ description: 'whether deletions over the API go to the trash' }),
  normalizesLoudness: Type.Boolean({
    description: 'whether the sound of videos uploaded from now on is brought to one loudness, −16 LUFS; on for new accounts',
  }),
  transcribeLanguage: Type.Union([Type.String(), Type.Null()], {
    description: 'language in which videos uploaded from now on are transcribed; null: they are not',
  }),
  watchUrl: Type.Union([Type.String(), Type.Null()], {
    description: 'where viewers watch: the link of public pages, with {id} in place of the id of the video',
  }),
  videosCount: Type.Integer(),
})
export type AccountBody = Static<typeof AccountBody>

const Days = (description: string) => Type.Integer({ description: `days for which ${description} kept` })
const PlayerSentences = Type.Record(Type.String(), Type.Record(Type.String(), Type.String()), {
  description: 'what the player says in your words: by language and by the name of the sentence',
  examples: [{ en: { 'refusal.otp-used': 'This lesson is open elsewhere.' } }],
})
const OwnAccountBody = Type.Interface([AccountBody], {
  playerSentences: PlayerSentences,
  usage: Type.Object({
    storedBytes: Type.Integer({
      description: 'of its videos, those in the trash apart; renditions count once a video is encoded',
    }),
    trashedBytes: Type.Integer({ description: 'of the videos in the trash' }),
  }),
  transcribes: Type.Boolean({ description: 'whether this server has a program that makes captions of speech' }),
  retention: Type.Object({
    trashDays: Days('a video in the trash is'),
    auditLogDays: Days('events of the audit log are'),
    viewerDataDays: Days('what viewers watched, alerts, and the names of viewers in statistics are'),
    statisticsDays: Days('views, bytes and storage of each day are'),
  }),
})
export type OwnAccountBody = Static<typeof OwnAccountBody>

const ChangeBody = Type.Object({
  streamLimit: Type.Optional(Type.Integer({ minimum: 0, maximum: 100, description: '0: no limit', examples: [2] })),
  whenFull: Type.Optional(WhenFull),
  deletesToTrash: Type.Optional(Flag),
  normalizesLoudness: Type.Optional(Flag),
  transcribeLanguage: Type.Optional(
    Type.Union([Type.String(), Type.Null()], { description: 'that is spoken, such as en or pt-BR; null or empty: none' }),
  ),
  watchUrl: Type.Optional(
    Type.Union([Type.String(), Type.Null()], { description: 'such as https://school.example/lessons/{id}; null or empty: none' }),
  ),
  playerSentences: Type.Optional(Type.Union([PlayerSentences, Type.Null()], { description: 'replaces all of them; null: none' })),
})

type AccountRoutesDeps = StatisticsDeps & AccountDeps & Pick<TranscriptionRequestDeps, 'transcriber'> & { viewerDataDays: number }

/** The settings of the account; those that its owners may change. */
export function accountRoutes(app: App, deps: AccountRoutesDeps): void {
  async function ownAccountBody(accountId: string): Promise<OwnAccountBody> {
    const account = accountBody(await getAccountById(deps, accountId))
    const { viewerDataDays } = deps
    const playerSentences = await findPlayerSentences(deps.db, accountId)
    const transcribes = deps.transcriber !== undefined
    const retention = { trashDays: TRASH_S / DAY_S, auditLogDays: AUDIT_LOG_S / DAY_S, viewerDataDays, statisticsDays: KEPT_DAYS }
    return { ...account, usage: await getStorage(deps, accountId), transcribes, retention, playerSentences }
  }

  app.get(
    '/account',
    operation('viewer', {
      summary: 'Settings of the account',
      description: 'With what its videos take on the disk, and for how long data is kept.',
      response: { 200: OwnAccountBody },
    }),
    async (request) => ownAccountBody(authenticateRequest(request).accountId),
  )

  app.put(
    '/account',
    operation('editor', {
      summary: 'Change settings of the account',
      description: 'What is absent stays as it is. Its permissions and limits are the administrator’s to change.',
      body: ChangeBody,
      response: { 200: OwnAccountBody },
    }),
    async (request) => {
      const caller = authenticateRequest(request)
      // Named one by one: what only an administrator may change is not taken from here.
      const { streamLimit, whenFull, deletesToTrash, normalizesLoudness, transcribeLanguage: language } = request.body
      const switches = { deletesToTrash: isOnIfGiven(deletesToTrash), normalizesLoudness: isOnIfGiven(normalizesLoudness) }
      const transcribeLanguage = readTranscribeLanguage(deps, language)
      const watchUrl = readWatchUrl(request.body.watchUrl)
      const playerSentences = formatPlayerSentences(request.body.playerSentences)
      await changeAccount(
        deps,
        caller.accountId,
        { streamLimit, whenFull, transcribeLanguage, watchUrl, playerSentences, ...switches },
        caller,
      )
      return ownAccountBody(caller.accountId)
    },
  )
}

export function accountBody({ createdAtS, videoCount, ...account }: Awaited<ReturnType<typeof getAccountById>>): AccountBody {
  return { ...account, createdAt: isoTime(createdAtS), videosCount: videoCount }
}
