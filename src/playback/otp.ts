import { hashSecret, newSecret } from '../crypto/secret.ts'
import type { AlsoInTransaction, Write } from '../db/write.ts'
import { videoNotFound } from '../errors.ts'
import type { OutboundPolicy } from '../outbound/policy.ts'
import type { ViewerName } from '../viewers/viewer-store.ts'
import { listImageUrls, type Watermark } from '../watermark/watermark.ts'
import type { WatermarkImages } from '../watermark/watermark-image.ts'
import { insertOtp } from './otp-store.ts'
import type { Rules } from './rules/rules.ts'
import { checkWhitelist } from './rules/whitelist.ts'

export type OtpDeps = {
  write: Write
  nowS: () => number
  outbound: OutboundPolicy
  watermarkImages: Pick<WatermarkImages, 'request'>
}

export type OtpRequest = {
  accountId: string
  /** Of the key that issues it, or of the person in the console: it becomes invalid with that. */
  apiKeyId: string
  videoId: string
  ttlS: number
  userId?: string
  /** Concurrent streams of the userId. */
  streamLimit?: number
  watermarks: readonly Watermark[]
  forcedBitrateKbps?: number
  /** Checked for form and kept, for DRM licences. */
  licenseRules?: Record<string, unknown>
  rules?: Rules
  /** What the owner calls the viewer, for lists; only with a userId. */
  viewer?: ViewerName
}

/** Longest life of an OTP, a year: more counts as that. */
export const MAX_TTL_S = 365 * 24 * 3600

/**
 * Issues a one-time password for one playback session. Resolves after the row is durable; the returned string is the only copy,
 * the database keeps its SHA-256. Images of its watermarks are fetched afterwards.
 * @returns 64 of `[A-Za-z0-9]`: embedders put it into addresses and element ids unescaped
 * @throws Failure `not-found` when the account has no such video; `invalid` when its whitelist cannot be matched
 * @see playback-protocol.md, section 1
 */
export async function issueOtp(
  { write, nowS, watermarkImages }: OtpDeps,
  request: OtpRequest,
  alsoInTransaction?: AlsoInTransaction<string>,
): Promise<string> {
  if (request.rules?.whitelist) await checkWhitelist(request.rules.whitelist)
  const otp = newSecret()
  const issuedAtS = nowS()
  const row = {
    hash: hashSecret(otp),
    accountId: request.accountId,
    apiKeyId: request.apiKeyId,
    videoId: request.videoId,
    userId: request.userId ?? null,
    streamLimit: request.streamLimit ?? null,
    watermarks: JSON.stringify(request.watermarks),
    forcedBitrateKbps: request.forcedBitrateKbps ?? null,
    licenseRules: request.licenseRules ? JSON.stringify(request.licenseRules) : null,
    rules: request.rules ? JSON.stringify(request.rules) : null,
    viewer: request.viewer ? JSON.stringify(request.viewer) : null,
    issuedAtS,
    expiresAtS: issuedAtS + Math.min(request.ttlS, MAX_TTL_S),
  }
  const issued = alsoInTransaction
    ? await write(async (tx) => {
        const isOurs = await insertOtp(tx, row)
        if (isOurs) await alsoInTransaction(tx, otp)
        return isOurs
      })
    : await write.append((tx) => insertOtp(tx, row))
  if (!issued) throw videoNotFound()
  watermarkImages.request(request.accountId, listImageUrls(request.watermarks))
  return otp
}

/** What embeds contain in addition to the OTP: standard base64 of `{"videoId":"…"}`, that single key (wire-contract.md, section 1). */
export function encodePlaybackInfo(videoId: string): string {
  return Buffer.from(JSON.stringify({ videoId })).toString('base64')
}
