import { type Static, Type } from 'typebox'
import type { IdempotencyDeps } from '../../idempotency/idempotency.ts'
import { encodePlaybackInfo, issueOtp, type OtpDeps } from '../../playback/otp.ts'
import { authenticateRequest } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { IdempotencyHeaders, jsonRepresentation, sendIdempotent } from '../wire/idempotency.ts'
import { OtpBody, type OtpOptionsDeps, readOtpOptions } from '../wire/otp-options.ts'
import { VideoParams } from './videos.ts'

export type OtpRoutesDeps = IdempotencyDeps & { playbackOtps: OtpDeps & OtpOptionsDeps }

const OtpReply = Type.Object({
  otp: Type.String({ description: '64 of [A-Za-z0-9]' }),
  playbackInfo: Type.String({ description: 'base64 of {"videoId":"<id>"}' }),
})

export function otpRoutes(app: App, deps: OtpRoutesDeps): void {
  app.post(
    '/videos/:id/otp',
    {
      config: { permission: 'otpCreator', described: { body: OtpBody } },
      schema: {
        summary: 'Issue an OTP',
        description:
          'A one-time password for one playback session. It can be issued for any video; the player waits until the video is ready.',
        params: VideoParams,
        headers: IdempotencyHeaders,
        response: { 200: OtpReply },
      },
    },
    async (request, reply) => {
      const caller = authenticateRequest(request)
      const { accountId } = caller
      const videoId = request.params.id
      const options = await readOtpOptions(deps.playbackOtps, { accountId, videoId }, request.body)
      const apiKeyId = 'apiKeyId' in caller ? caller.apiKeyId : caller.consoleUserId
      const otpRequest = { accountId, apiKeyId, videoId, ...options }
      return sendIdempotent(
        deps,
        { request, reply, accountId },
        (alsoInTransaction) => issueOtp(deps.playbackOtps, otpRequest, alsoInTransaction),
        jsonRepresentation((otp: string): Static<typeof OtpReply> => ({ otp, playbackInfo: encodePlaybackInfo(videoId) })),
      )
    },
  )
}
