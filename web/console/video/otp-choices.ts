import { NEW_WATERMARK, toAnnotation } from './annotation.ts'

/** What the owner's server asks for with each OTP. */
export type OtpChoices = { ttlS: number | ''; site: string; watermark: string; identifies: boolean }

export const OTP_DEFAULTS: OtpChoices = { ttlS: 300, site: '', watermark: '', identifies: false }

/** The body of the request; `userId` and `viewer` hold an example, for which the owner's server puts its viewer. */
export type OtpBody = {
  ttl: number
  whitelisthref?: string
  annotate?: ReturnType<typeof toAnnotation>[]
  userId?: string
  viewer?: { name: string; email: string }
}

export const EXAMPLE_USER_ID = 'reader-4711'

export function otpBody({ ttlS, site, watermark, identifies }: OtpChoices): OtpBody {
  const text = watermark.trim()
  return {
    ttl: ttlS === '' ? 300 : ttlS,
    ...(site.trim() !== '' && { whitelisthref: site.trim() }),
    ...(text !== '' && { annotate: [toAnnotation({ ...NEW_WATERMARK, text })] }),
    ...((identifies || text.includes('{id}')) && { userId: EXAMPLE_USER_ID }),
    ...(/\{(?:name|email)\}/.test(text) && { viewer: { name: 'Ann Example', email: 'ann@example.org' } }),
  }
}
