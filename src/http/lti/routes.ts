import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { getOtpKey } from '../../accounts/api-key.ts'
import type { ListDeps } from '../../catalogue/catalogue-deps.ts'
import { Failure } from '../../errors.ts'
import { allowUpload, answerChoice, findOpenVideos, openTicket } from '../../lti/choose.ts'
import { getActivePlatform, type LaunchDeps, type Play, receiveLaunch, startLogin } from '../../lti/launch.ts'
import type { PlatformDeps } from '../../lti/platform.ts'
import { findPlatform } from '../../lti/platform-store.ts'
import { registerPlatform, type ToolUrls } from '../../lti/registration.ts'
import { LOGIN_LIFE_S } from '../../lti/state.ts'
import { publicKeySet } from '../../lti/tool-key.ts'
import { encodePlaybackInfo, issueOtp, type OtpDeps } from '../../playback/otp.ts'
import { type LimitDeps, limitByAddress } from '../server/limit.ts'
import type { App } from '../wire/app-type.ts'
import { addBodyParsers } from '../wire/bodies.ts'
import { errorResponse } from '../wire/errors.ts'
import { type OtpOptionsDeps, readOtpOptions } from '../wire/otp-options.ts'
import {
  askStoragePage,
  choosePage,
  type FramedPage,
  keepSecretPage,
  registeredPage,
  returnPage,
  sentencePage,
  uploadPage,
} from './pages.ts'

const Text = Type.String()
const PlatformParams = Type.Object({ platformId: Type.String({ pattern: '^[0-9a-f]{32}$' }) })
const RegisterParams = Type.Object({ secret: Text })
const RegisterQuery = Type.Object({
  openid_configuration: Text,
  registration_token: Type.Optional(Type.String({ pattern: '^[!-~]*$' })),
})
const LoginFields = Type.Object({
  iss: Text,
  login_hint: Text,
  client_id: Type.Optional(Text),
  lti_message_hint: Type.Optional(Text),
  lti_storage_target: Type.Optional(Type.String({ maxLength: 200 })),
})
const LaunchFields = Type.Object({ state: Text, id_token: Text, stored: Type.Optional(Text) })
const ChooseFields = Type.Object({
  ticket: Text,
  folder: Type.Optional(Text),
  q: Type.Optional(Type.String({ maxLength: 200 })),
  page: Type.Optional(Type.String({ pattern: '^[1-9][0-9]{0,5}$' })),
})
const AnswerFields = Type.Object({
  ticket: Text,
  video: Type.String({ pattern: '^[0-9a-f]{32}$' }),
  graded: Type.Optional(Text),
  completed_at: Type.Optional(Type.String({ pattern: '^([1-9]0|100)$' })),
})
const UploadFields = Type.Object({ ticket: Text })

export type LtiRoutesDeps = LimitDeps &
  LaunchDeps &
  PlatformDeps &
  ListDeps & { playbackOtps: OtpDeps & OtpOptionsDeps; publicUrl(): string }

/** From the launch to the first press on play. */
const OTP_TTL_S = 600

/** What learning platforms and the people in them ask: LTI 1.3, with deep linking 2.0 and dynamic registration. */
export async function ltiInterface(app: App, deps: LtiRoutesDeps): Promise<void> {
  limitByAddress(app, deps, 'pages')
  addBodyParsers(app)
  app.setErrorHandler(async (error, request, reply) => {
    const { status, message } = errorResponse(error, request, reply)
    return sendPage(
      reply.code(status),
      sentencePage('This did not work', status === 500 ? `${message} The log has request ${request.id}.` : message),
    )
  })
  platformRoutes(app, deps)
  teacherRoutes(app, deps)
}

function platformRoutes(app: App, deps: LtiRoutesDeps): void {
  const register = { exposeHeadRoute: false, schema: { params: RegisterParams, querystring: RegisterQuery } }
  app.get('/register/:secret', register, async (request, reply) => {
    const { openid_configuration: configurationUrl, registration_token: registrationToken } = request.query
    const urlsOf = (platformId: string) => toolUrls(deps, platformId)
    const opened = { secret: request.params.secret, configurationUrl, registrationToken }
    const { name } = await registerPlatform({ ...deps, urlsOf }, opened)
    return sendPage(reply, registeredPage(name))
  })

  app.get('/:platformId/keys', { schema: { params: PlatformParams } }, async (request, reply) => {
    const platform = await findPlatform(deps.db, request.params.platformId)
    if (!platform) throw new Failure('not-found', 'This learning platform is not registered here, or was removed.')
    return reply.header('Cache-Control', 'public, max-age=300').send(publicKeySet(platform))
  })

  const login = async (platformId: string, fields: Parameters<typeof startLogin>[2]['request'], reply: FastifyReply) => {
    const launchUrl = toolUrls(deps, platformId).launch
    const { url, login, storage } = await startLogin(deps, platformId, { request: fields, launchUrl })
    setLoginCookie(deps, reply, login.name, login.secret, LOGIN_LIFE_S)
    if (!storage) return reply.header('Cache-Control', 'no-store').redirect(url, 303)
    return sendPage(reply, keepSecretPage({ ...storage, key: login.name, value: login.secret, url }))
  }
  app.get(
    '/:platformId/login',
    { exposeHeadRoute: false, schema: { params: PlatformParams, querystring: LoginFields } },
    async (request, reply) => login(request.params.platformId, request.query, reply),
  )
  app.post('/:platformId/login', { schema: { params: PlatformParams, body: LoginFields } }, async (request, reply) =>
    login(request.params.platformId, request.body, reply),
  )

  app.post('/:platformId/launch', { schema: { params: PlatformParams, body: LaunchFields } }, async (request, reply) => {
    const { platformId } = request.params
    const { state, id_token: idToken, stored: claimed } = request.body
    // Another site's page could send what its own login has stored, and have this browser play as someone else.
    const isOwnPage = request.headers.origin === new URL(deps.publicUrl()).origin
    const stored = claimed === undefined || isOwnPage ? claimed : ''
    const readCookie = (name: string) => readCookies(request).get(name)
    const launched = await receiveLaunch(deps, platformId, { state, idToken, readCookie, stored })
    if (launched.kind === 'ask-storage')
      return sendPage(reply, askStoragePage({ ...launched.storage, key: launched.name }, { state, id_token: idToken }))
    setLoginCookie(deps, reply, launched.loginName, '', 0)
    if (launched.kind === 'play') return openPlayer(deps, platformId, launched, reply)
    const { platform, ticket, sealed } = launched
    const found = await findOpenVideos(deps, platform, ticket, { folderId: undefined, text: '', page: 1 })
    const may = { mayGrade: ticket.mayGrade, mayUpload: platform.mayUpload === 1 }
    return sendPage(reply, choosePage({ ...found, ...may, ticket: sealed, text: '' }))
  })

  // The address of a video in links: opened by hand it says where it plays.
  app.get('/videos/:videoId', async (_request, reply) =>
    sendPage(
      reply,
      sentencePage('A video of a course', 'This address plays inside a learning platform. Open the video from its course.'),
    ),
  )
}

/** What a teacher's browser asks with the ticket of a deep linking request. */
function teacherRoutes(app: App, deps: LtiRoutesDeps): void {
  const open = async (platformId: string, sealed: string) => {
    const ticket = openTicket(deps, platformId, sealed)
    return { ticket, platform: await getActivePlatform(deps, platformId) }
  }

  app.post('/:platformId/choose', { schema: { params: PlatformParams, body: ChooseFields } }, async (request, reply) => {
    const { ticket: sealed, folder: folderId, q: text = '', page = '1' } = request.body
    const { ticket, platform } = await open(request.params.platformId, sealed)
    const found = await findOpenVideos(deps, platform, ticket, { folderId: folderId || undefined, text, page: Number(page) })
    const may = { mayGrade: ticket.mayGrade, mayUpload: platform.mayUpload === 1 }
    return sendPage(reply, choosePage({ ...found, ...may, ticket: sealed, text }))
  })

  app.post('/:platformId/answer', { schema: { params: PlatformParams, body: AnswerFields } }, async (request, reply) => {
    const { ticket: sealed, video: videoId, graded, completed_at: completedAt } = request.body
    const { ticket, platform } = await open(request.params.platformId, sealed)
    const completedAtPercent = graded === undefined ? undefined : Number(completedAt ?? 90)
    const urlOf = (id: string) => `${deps.publicUrl()}/lti/videos/${id}`
    const { returnUrl, token } = await answerChoice(deps, platform, ticket, { videoId, completedAtPercent, urlOf })
    return sendPage(reply, returnPage(returnUrl, token))
  })

  app.post('/:platformId/upload', { schema: { params: PlatformParams, body: UploadFields } }, async (request, reply) => {
    const { ticket: sealed } = request.body
    const { ticket, platform } = await open(request.params.platformId, sealed)
    const { origin } = new URL(deps.publicUrl())
    const token = await allowUpload(deps, platform, ticket, origin)
    const scriptUrl = `${deps.publicUrl()}/v2/uploader.js`
    return sendPage(reply, uploadPage({ ticket: sealed, token, scriptUrl, origin, mayGrade: ticket.mayGrade }))
  })
}

function toolUrls({ publicUrl }: Pick<LtiRoutesDeps, 'publicUrl'>, platformId: string): ToolUrls {
  const base = `${publicUrl()}/lti/${platformId}`
  return {
    ...{ login: `${base}/login`, launch: `${base}/launch`, keys: `${base}/keys` },
    domain: new URL(publicUrl()).host,
    target: `${base}/launch`,
  }
}

const NAME_NEEDED =
  'This video shows who watches it, and the learning platform has not said who you are. Open it with your own sign-in, or ask its owner.'
const ASK_OWNER =
  'This video cannot be opened from here now. Its owner finds the reason in the console, at this learning platform.'

/** Issues the OTP of a launch, and opens the player with it. A whitelist names sites; a launch comes from a platform that its owner has confirmed. */
async function openPlayer(deps: LtiRoutesDeps, platformId: string, play: Play, reply: FastifyReply): Promise<FastifyReply> {
  const { accountId, videoId, userId, name, locale } = play
  const { playbackOtps, publicUrl } = deps
  const otp = await issue().catch(async (error: unknown) => {
    if (!(error instanceof Failure)) throw error
    await deps.recordTrouble({ id: platformId, accountId }, error.message) // in the words of the API, for the owner
    throw new Failure('forbidden', name === undefined && error.kind === 'invalid' ? NAME_NEEDED : ASK_OWNER, { cause: error })
  })
  const query = new URLSearchParams({ otp, playbackInfo: encodePlaybackInfo(videoId), ...(locale && { lang: locale }) })
  return reply.header('Cache-Control', 'no-store').redirect(`${publicUrl()}/player/?${query}`, 303)

  async function issue(): Promise<string> {
    const asked = { ttl: OTP_TTL_S, ...(userId && { userId }), ...(name && { viewer: { name } }) }
    const { rules, ...options } = await readOtpOptions(playbackOtps, { accountId, videoId }, asked)
    const { whitelist: _, ...places } = rules ?? {}
    const apiKeyId = await getOtpKey(deps, accountId)
    return issueOtp(playbackOtps, { accountId, apiKeyId, videoId, ...options, rules: places })
  }
}

function sendPage(reply: FastifyReply, { html, policy }: FramedPage): FastifyReply {
  return reply
    .headers({
      'Content-Type': 'text/html; charset=utf-8',
      'Cache-Control': 'no-store',
      'Content-Security-Policy': policy,
      'Referrer-Policy': 'same-origin', // with none, browsers would not say which page sends a form
    })
    .send(html)
}

/**
 * Keeps the secret of a login in the browser: `None`, because the platform's page around it is another site's; `Partitioned`, so that
 * browsers without third-party cookies keep it for this pair of sites.
 */
function setLoginCookie({ publicUrl }: LtiRoutesDeps, reply: FastifyReply, name: string, secret: string, lifeS: number): void {
  const path = `${new URL(publicUrl()).pathname.replace(/\/$/, '')}/lti/`
  reply.header('Set-Cookie', `${name}=${secret}; Path=${path}; Max-Age=${lifeS}; HttpOnly; SameSite=None; Secure; Partitioned`)
}

function readCookies({ headers }: FastifyRequest): ReadonlyMap<string, string> {
  const pairs = (headers.cookie ?? '').split(';').map((pair): [string, string] => {
    const [name = '', ...value] = pair.trim().split('=')
    return [name, value.join('=')]
  })
  return new Map(pairs)
}
