import type { Authenticate } from '../../accounts/api-key.ts'
import { Failure } from '../../errors.ts'
import { issueOtp, type OtpDeps } from '../../playback/otp.ts'
import type { App } from '../app.ts'
import { readOtpOptions } from '../otp-options.ts'
import { fieldOf, holderOfBody, sendV2 } from './answer.ts'

export type V2OtpDeps = { authenticate: Authenticate; playbackOtps: OtpDeps }

/** `POST /v2/otp?video=ID`: exactly `{"otp":"…"}`, compact, since clients cut it by offset. */
export function v2OtpRoutes(app: App, deps: V2OtpDeps): void {
  app.post('/otp', { config: { permission: 'otpCreator' } }, async (request, reply) => {
    const { accountId, apiKeyId } = await holderOfBody(deps, request, 'otpCreator')
    const videoId = fieldOf(request.query, 'video')
    if (typeof videoId !== 'string' || videoId === '')
      throw new Failure('invalid', 'Name one video in the query: /v2/otp?video=ID.')
    const otp = await issueOtp(deps.playbackOtps, {
      accountId,
      apiKeyId,
      videoId,
      ...readOtpOptions(deps.playbackOtps, request.body),
    })
    return sendV2(request, reply, { otp })
  })
}
