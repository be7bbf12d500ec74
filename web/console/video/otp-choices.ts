import { listNeeded, NEW_WATERMARK, toAnnotation } from '../protection/annotation.ts'
import { type Locations, toIpGeo } from '../protection/protection.ts'

/** What the owner's server asks for with each OTP. */
export type OtpChoices = {
  ttlS: number | ''
  site: string
  locations: Locations
  watermark: string
  identifies: boolean
  streamLimit: number | ''
}

export const OTP_DEFAULTS: OtpChoices = {
  ttlS: 300,
  site: '',
  locations: { mode: 'anywhere', countries: [] },
  watermark: '',
  identifies: false,
  streamLimit: '',
}

/** The body of the request; `userId` and `viewer` hold an example, for which the owner's server puts its viewer. */
export type OtpBody = {
  ttl: number
  whitelisthref?: string
  ipGeo?: ReturnType<typeof toIpGeo>['ipGeo']
  annotate?: ReturnType<typeof toAnnotation>[]
  userId?: string
  streamLimit?: number
  viewer?: { name: string; email: string }
}

export const EXAMPLE_USER_ID = 'reader-4711'
const EXAMPLE_VIEWER = { name: 'Ann Example', email: 'ann@example.org' }

/** @param defaultAnnotate the watermarks that an OTP has without a choice, which may show the viewer, too */
export function otpBody(choices: OtpChoices, defaultAnnotate?: unknown): OtpBody {
  const { ttlS, site, locations, watermark, identifies, streamLimit } = choices
  const text = watermark.trim()
  const needed = listNeeded(text === '' ? defaultAnnotate : text)
  return {
    ttl: ttlS === '' ? 300 : ttlS,
    ...(site.trim() !== '' && { whitelisthref: site.trim() }),
    ...toIpGeo(locations),
    ...(text !== '' && { annotate: [toAnnotation({ ...NEW_WATERMARK, text })] }),
    ...((identifies || needed.includes('userId') || streamLimit !== '') && { userId: EXAMPLE_USER_ID }),
    ...(streamLimit !== '' && { streamLimit }),
    ...(needed.some((option) => option !== 'userId') && { viewer: EXAMPLE_VIEWER }),
  }
}
