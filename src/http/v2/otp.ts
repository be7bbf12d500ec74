import { Type } from 'typebox'
import type { IdempotencyDeps } from '../../idempotency/idempotency.ts'
import { issueOtp, type OtpDeps } from '../../playback/otp.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { IdempotencyHeaders, sendIdempotent } from '../wire/idempotency.ts'
import { OtpBody, type OtpOptionsDeps, readOtpOptions } from '../wire/otp-options.ts'
import {
  authenticateFromBody,
  type CallerDeps,
  getQueryText,
  NoVideo,
  V2_TYPE,
  v2Operation,
  v2Representation,
} from './response.ts'

export type V2OtpDeps = IdempotencyDeps & CallerDeps & { playbackOtps: OtpDeps & OtpOptionsDeps }

const OtpQuery = Type.Object({
  video: Type.String({ description: 'id of the video', examples: [EXAMPLE.videoId] }),
  type: V2_TYPE,
})
const OtpReply = Type.Object({ otp: Type.String({ description: '64 of [A-Za-z0-9]' }) })

/** `POST /v2/otp?video=ID`: exactly `{"otp":"…"}`, compact, since clients cut it by offset. */
export function v2OtpRoutes(app: App, deps: V2OtpDeps): void {
  app.post(
    '/otp',
    v2Operation('otpCreator', {
      summary: 'Issue an OTP',
      headers: IdempotencyHeaders,
      querystring: OtpQuery,
      body: OtpBody,
      response: [Type.Union([OtpReply, NoVideo]), 'Exactly this key, compact'],
    }),
    async (request, reply) => {
      const { accountId, apiKeyId } = await authenticateFromBody(deps, { request, reply }, 'otpCreator')
      const videoId = getQueryText(request, ['video'], 'Name one video in the query: /v2/otp?video=ID.')
      const options = await readOtpOptions(deps.playbackOtps, { accountId, videoId }, request.body)
      const otpRequest = { accountId, apiKeyId, videoId, ...options }
      return sendIdempotent(
        deps,
        { request, reply, accountId },
        (alsoInTransaction) => issueOtp(deps.playbackOtps, otpRequest, alsoInTransaction),
        v2Representation(request, { toBody: (otp: string) => ({ otp }) }),
      )
    },
  )
}
