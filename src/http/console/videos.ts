import type { FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { getVideo, haveAddedVideos } from '../../catalogue/video.ts'
import { encodePlaybackInfo, issueOtp } from '../../playback/otp.ts'
import { countViews } from '../../usage/usage.ts'
import type { OtpRoutesDeps } from '../api/otp.ts'
import { VideoParams, type VideoRoutesDeps } from '../api/videos.ts'
import { authenticateRequest } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { Flag, isOn } from '../wire/flag.ts'
import { operation } from '../wire/operation.ts'
import { readOtpOptions } from '../wire/otp-options.ts'
import { readSignInToken } from './cookie.ts'
import type { SignInRoutesDeps } from './sign-in.ts'

/** A page may be open for long before its video is played. */
const PREVIEW_TTL_S = 21_600
/** Only where a watermark shows it: a viewer of this name appears among the others. */
const PREVIEW_USER_ID = 'console-preview'

const PreviewBody = Type.Object({
  withUserId: Type.Optional({ ...Flag, description: '1: names the viewer `console-preview`, for watermarks that show it' }),
})
const PreviewReply = Type.Object({ otp: Type.String(), playbackInfo: Type.String() })
const AccessReply = Type.Object({
  mayEdit: Type.Boolean({ description: 'an owner may edit every video, an uploader those that they have added' }),
})
export type VideoAccessBody = Static<typeof AccessReply>

const ViewsQuery = Type.Object({
  ids: Type.String({
    maxLength: 40 * 33,
    description: 'up to 40 ids of videos, separated by commas',
    examples: [EXAMPLE.videoId],
  }),
})
const ViewsReply = Type.Object({
  rows: Type.Array(
    Type.Object({
      id: Type.String(),
      views: Type.Integer({
        description: 'playback sessions that were given a first key; 0 for an id that the account does not have',
      }),
    }),
  ),
})
export type ViewsBody = Static<typeof ViewsReply>

type ConsoleVideoRoutesDeps = SignInRoutesDeps & VideoRoutesDeps & Pick<OtpRoutesDeps, 'playbackOtps'>

/** What only the console asks of videos: how often they were viewed, and what a person may do with one. */
export function consoleVideoRoutes(app: App, deps: ConsoleVideoRoutesDeps): void {
  const person = (request: FastifyRequest) => deps.findSignedIn(readSignInToken(deps, request))

  app.post(
    '/videos/:id/preview',
    {
      config: { permission: 'viewer', budget: 'otp' },
      schema: {
        summary: 'Play a video in the console',
        description:
          'An OTP for the console’s own player, for each role. It plays at the host of the console alone, must be redeemed within six hours, and its watermarks name the person.',
        params: VideoParams,
        body: PreviewBody,
        response: { 200: PreviewReply },
      },
    },
    async (request) => {
      const { accountId, consoleUserId, userName } = await person(request)
      const videoId = request.params.id
      await getVideo(deps, accountId, videoId)
      const options = await readOtpOptions(
        deps.playbackOtps,
        { accountId, videoId },
        {
          ...{ ttl: PREVIEW_TTL_S, whitelisthref: exactHost(request), viewer: { name: userName, email: userName } },
          ...(isOn(request.body.withUserId ?? 0) && { userId: PREVIEW_USER_ID }),
        },
      )
      const otp = await issueOtp(deps.playbackOtps, { ...options, accountId, apiKeyId: consoleUserId, videoId })
      return { otp, playbackInfo: encodePlaybackInfo(videoId) }
    },
  )

  // Not in the list of videos: that is answered from memory until a video changes, and a view changes none.
  app.get(
    '/videos/views',
    operation('viewer', {
      summary: 'How often videos were viewed',
      querystring: ViewsQuery,
      response: { 200: ViewsReply },
    }),
    async (request) => {
      const ids = request.query.ids.split(',')
      const viewsOf = await countViews(deps, authenticateRequest(request).accountId, ids)
      return { rows: ids.map((id) => ({ id, views: viewsOf(id) })) }
    },
  )

  app.get(
    '/videos/:id/access',
    operation('viewer', { summary: 'What the person may do with a video', params: VideoParams, response: { 200: AccessReply } }),
    async (request) => {
      const signedIn = await person(request)
      const { accountId, permissions } = signedIn
      const { id } = await getVideo(deps, accountId, request.params.id)
      const isOwn = permissions.includes('uploader') && (await haveAddedVideos(deps, signedIn, [id]))
      return { mayEdit: permissions.includes('editor') || isOwn }
    },
  )
}

/** As an expression, so that a default of the account's for other sites does not refuse the person's own look. */
function exactHost({ headers: { host = '' } }: FastifyRequest): string {
  const { hostname } = new URL(`http://${host}`)
  return `^${hostname.replaceAll(/[.[\]]/g, '\\$&')}$`
}
