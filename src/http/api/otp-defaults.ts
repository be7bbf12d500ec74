import { Type } from 'typebox'
import { getVideo } from '../../catalogue/video.ts'
import type { OtpDeps } from '../../playback/otp.ts'
import {
  type DefaultOptions,
  getAccountDefaults,
  type OtpDefaultsDeps,
  parseDefaults,
  setAccountDefaults,
  setVideosDefaults,
  whyRefused,
} from '../../playback/otp-defaults.ts'
import { authenticateRequest, changedBy } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { operation } from '../wire/operation.ts'
import { AccountDefaultsBody, readDefaultOptions, VideoDefaultsBody } from '../wire/otp-options.ts'
import { VideoParams } from './videos.ts'

/** As many as one call changes. */
const MAX_VIDEOS = 1000

type OtpDefaultsRoutesDeps = OtpDefaultsDeps & { playbackOtps: OtpDeps }

const DefaultsReply = Type.Object(
  {
    eachOtpRefused: Type.Optional(
      Type.String({ description: 'why each OTP is refused because of them: an older version saved what is refused today' }),
    ),
  },
  { additionalProperties: true, description: 'the options as they were sent' },
)
const ChangedDefaults = Type.Object(
  {
    eachOtpNeeds: Type.Optional(
      Type.Array(Type.String(), {
        description: 'options that each OTP has to bring, because the watermarks show them: userId, viewer.name, viewer.email',
      }),
    ),
  },
  { additionalProperties: true, description: 'the options as they were sent, and what each OTP needs besides' },
)
const ManyBody = Type.Object({
  videos: Type.Array(Type.String(), {
    description: `at most ${MAX_VIDEOS} ids`,
    maxItems: MAX_VIDEOS,
    examples: [[EXAMPLE.videoId]],
  }),
  options: Type.Object({}, { additionalProperties: true, description: 'as for one video', examples: [{ streamLimit: 2 }] }),
})
const ManyReply = Type.Object({
  message: Type.Literal('Changed'),
  count: Type.Integer({ description: 'how many videos' }),
  eachOtpNeeds: ChangedDefaults.properties.eachOtpNeeds,
})
const REPLACES = 'Replaces all of them; an empty object removes them. They apply to OTPs that are issued from then on.'

/** Options that OTPs have unless they set their own: docs/embedding.md, "Defaults". */
export function otpDefaultsRoutes(app: App, deps: OtpDefaultsRoutesDeps): void {
  function toStoredReply(options: DefaultOptions) {
    const eachOtpRefused = whyRefused(deps.playbackOtps.outbound, options)
    return { ...options, ...(eachOtpRefused !== undefined && { eachOtpRefused }) }
  }

  app.get(
    '/otp-defaults',
    {
      config: { permission: 'viewer', described: { response: { 200: DefaultsReply } } },
      schema: { summary: 'The default options of OTPs of your account' },
    },
    async (request) => toStoredReply(await getAccountDefaults(deps, authenticateRequest(request).accountId)),
  )

  app.put(
    '/otp-defaults',
    {
      config: { permission: 'editor', described: { body: AccountDefaultsBody, response: { 200: ChangedDefaults } } },
      schema: { summary: 'Set the default options of OTPs of your account', description: REPLACES },
    },
    async (request) => {
      const defaults = await readDefaultOptions(deps.playbackOtps, 'account', request.body)
      await setAccountDefaults(deps, changedBy(request), defaults.options)
      return toReply(defaults)
    },
  )

  app.get(
    '/videos/:id/otp-defaults',
    {
      config: { permission: 'viewer', described: { response: { 200: DefaultsReply } } },
      schema: { summary: 'The default options of OTPs of a video', params: VideoParams },
    },
    async (request) => {
      const video = await getVideo(deps, authenticateRequest(request).accountId, request.params.id)
      return toStoredReply(parseDefaults(video.otpDefaults))
    },
  )

  app.put(
    '/videos/:id/otp-defaults',
    {
      config: { permission: 'editor', described: { body: VideoDefaultsBody, response: { 200: ChangedDefaults } } },
      schema: {
        summary: 'Set the default options of OTPs of a video',
        description: `They go before those of the account. ${REPLACES}`,
        params: VideoParams,
      },
    },
    async (request) => {
      const defaults = await readDefaultOptions(deps.playbackOtps, 'video', request.body)
      await setVideosDefaults(deps, { ...changedBy(request), videoIds: [request.params.id] }, defaults.options)
      return toReply(defaults)
    },
  )

  app.post(
    '/videos/otp-defaults',
    operation('editor', {
      summary: 'Set the default options of OTPs of several videos',
      description: `The same for each; all or none: an unknown id is an error. ${REPLACES}`,
      body: ManyBody,
      response: { 200: ManyReply },
    }),
    async (request) => {
      const { options, eachOtpNeeds } = await readDefaultOptions(deps.playbackOtps, 'video', request.body.options)
      const count = await setVideosDefaults(deps, { ...changedBy(request), videoIds: request.body.videos }, options)
      return { message: 'Changed' as const, count, ...(eachOtpNeeds.length > 0 && { eachOtpNeeds }) }
    },
  )
}

function toReply({ options, eachOtpNeeds }: Awaited<ReturnType<typeof readDefaultOptions>>) {
  return { ...options, ...(eachOtpNeeds.length > 0 && { eachOtpNeeds }) }
}
