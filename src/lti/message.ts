import { hash } from 'node:crypto'
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import type { LtiPlatformRow } from '../db/tables.ts'
import { Failure } from '../errors.ts'
import { MAX_TENTHS } from './grade.ts'
import type { PlatformKeys } from './platform-keys.ts'

// What a platform says in a launch: an id token (LTI 1.3 core, sections 5 and 6; 1EdTech security framework 1.1, section 5.1.3).

const CLAIM = 'https://purl.imsglobal.org/spec/lti/claim'
const DEEP_LINKING = 'https://purl.imsglobal.org/spec/lti-dl/claim/deep_linking_settings'
const GRADES = 'https://purl.imsglobal.org/spec/lti-ags/claim/endpoint'
export const SCORE_SCOPE = 'https://purl.imsglobal.org/spec/lti-ags/scope/score'

const Text = (maxLength: number) => Type.String({ minLength: 1, maxLength })
const Loose = { additionalProperties: true }
const OrNull = <T extends Type.TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]))

const IdToken = Type.Object(
  {
    iss: Type.String(),
    aud: Type.Union([Type.String(), Type.Array(Type.String())]),
    azp: Type.Optional(Type.String()),
    sub: OrNull(Type.String({ maxLength: 255 })),
    nonce: Type.String(),
    iat: Type.Number(),
    exp: Type.Number(),
    name: OrNull(Type.String()),
    given_name: OrNull(Type.String()),
    family_name: OrNull(Type.String()),
    [`${CLAIM}/message_type`]: Type.String(),
    [`${CLAIM}/version`]: Type.Literal('1.3.0'),
    [`${CLAIM}/deployment_id`]: Text(255),
    [`${CLAIM}/target_link_uri`]: Type.Optional(Type.String({ maxLength: 8192 })),
    [`${CLAIM}/roles`]: OrNull(Type.Array(Type.String())),
    [`${CLAIM}/context`]: OrNull(
      Type.Object({ id: Text(255), title: OrNull(Type.String()), label: OrNull(Type.String()) }, Loose),
    ),
    [`${CLAIM}/custom`]: OrNull(Type.Object({}, Loose)),
    [`${CLAIM}/launch_presentation`]: OrNull(Type.Object({ locale: OrNull(Type.String()) }, Loose)),
    [DEEP_LINKING]: Type.Optional(
      Type.Object(
        {
          deep_link_return_url: Type.String({ maxLength: 8192 }),
          accept_types: Type.Array(Type.String()),
          accept_lineitem: OrNull(Type.Boolean()),
          data: OrNull(Type.String({ maxLength: 16_384 })),
        },
        Loose,
      ),
    ),
    [GRADES]: OrNull(
      Type.Object({ scope: Type.Array(Type.String()), lineitem: Type.Optional(Type.String({ maxLength: 2048 })) }, Loose),
    ),
  },
  Loose,
)

/** A launch whose signature, issuer, audience and time are right. */
export type Message = {
  nonce: string
  deploymentId: string
  /** The platform's own id of the person; undefined for an anonymous launch. */
  subject: string | undefined
  name: string | undefined
  /** May choose videos for a course. */
  isTeacher: boolean
  /** Gets grades. */
  isLearner: boolean
  course: { id: string; title: string } | undefined
  /** A language tag. */
  locale: string | undefined
} & ({ kind: 'resource'; videoId: string | undefined; grade: GradeRequest | undefined } | ({ kind: 'choose' } & ChooseRequest))

/** Where the score of a learner goes, and which share of the video, in tenths, counts as completed. */
type GradeRequest = { lineItem: string; completedAtTenths: number }

type ChooseRequest = { returnUrl: string; data: string | undefined; mayGrade: boolean }

/** After it was signed. */
const MAX_AGE_S = 600
const CLOCKS_MAY_DIFFER_S = 60
/** Longest token that is read: those of platforms have some 4 kB. */
const MAX_TOKEN_LENGTH = 64 * 1024

export type ReadDeps = { platformKeys: PlatformKeys /** Platforms compare times with their own clock. */; wallNowS: () => number }

type Issuer = Pick<LtiPlatformRow, 'id' | 'accountId' | 'keysUrl' | 'issuer' | 'clientId'>

/**
 * Reads the id token of a platform.
 * @throws Failure `unauthenticated`, `invalid` and as `PlatformKeys.get`, in words
 */
export async function readMessage({ platformKeys, wallNowS }: ReadDeps, platform: Issuer, idToken: string): Promise<Message> {
  const { decodeProtectedHeader, errors, jwtVerify } = await import('jose')
  if (idToken.length > MAX_TOKEN_LENGTH) throw notSigned('it is too long')
  const header = readHeader(() => decodeProtectedHeader(idToken))
  if (header.alg !== 'RS256') throw notSigned('it is not signed with RS256')
  if (typeof header.kid !== 'string') throw notSigned('it names no key')
  const key = await platformKeys.get(platform, header.kid)
  const { payload } = await jwtVerify(idToken, key, {
    algorithms: ['RS256'],
    issuer: platform.issuer,
    audience: platform.clientId,
    currentDate: new Date(wallNowS() * 1000),
    maxTokenAge: MAX_AGE_S,
    clockTolerance: CLOCKS_MAY_DIFFER_S,
  }).catch((error: unknown) => {
    throw error instanceof errors.JOSEError ? notSigned(describeError(error.code, 'claim' in error ? error.claim : '')) : error
  })
  if (!Value.Check(IdToken, payload)) throw incomplete()
  // Of several audiences one is meant (OpenID Connect core, section 3.1.3.7).
  const isMeant = typeof payload.aud === 'string' || payload.aud.length === 1 || payload.azp === platform.clientId
  if (!isMeant || (payload.azp !== undefined && payload.azp !== platform.clientId)) throw notSigned('it is for another tool')
  return toMessage(payload)
}

function readHeader<T>(read: () => T): T {
  try {
    return read()
  } catch {
    throw notSigned('it is no token')
  }
}

function describeError(code: string, claim: unknown): string {
  if (
    code === 'ERR_JWT_EXPIRED' ||
    (code === 'ERR_JWT_CLAIM_VALIDATION_FAILED' && (claim === 'iat' || claim === 'exp' || claim === 'nbf'))
  )
    return 'it is older than ten minutes, or the clock of the platform or of this server is wrong'
  if (claim === 'iss') return 'it is from another platform'
  if (claim === 'aud') return 'it is for another tool'
  return 'its signature is not the platform’s'
}

function notSigned(why: string): Failure {
  return new Failure('unauthenticated', `The message of the platform was not accepted: ${why}.`)
}

function incomplete(): Failure {
  return new Failure('invalid', 'The message of the platform lacks what LTI 1.3 asks for. Reelgate needs version 1.3.0.')
}

function toMessage(token: Static<typeof IdToken>): Message {
  const roles = token[`${CLAIM}/roles`] ?? []
  const context = token[`${CLAIM}/context`]
  const subject = token.sub || undefined
  const common = {
    ...{ nonce: token.nonce, deploymentId: token[`${CLAIM}/deployment_id`], subject },
    name: subject && (token.name || [token.given_name, token.family_name].filter(Boolean).join(' ')).slice(0, 128),
    isTeacher: roles.some((role) => TEACHERS.has(role)),
    isLearner: roles.some((role) => LEARNERS.has(role)),
    course: context ? { id: context.id, title: (context.title || context.label || context.id).slice(0, 200) } : undefined,
    locale: readLocale(token[`${CLAIM}/launch_presentation`]?.locale),
  }
  const type = token[`${CLAIM}/message_type`]
  if (type === 'LtiDeepLinkingRequest') return { ...common, kind: 'choose', ...readSettings(token[DEEP_LINKING]) }
  if (type !== 'LtiResourceLinkRequest')
    throw new Failure('invalid', 'The platform asks for something else than to play a video or to choose one.')
  const grades = token[GRADES]
  const lineItem = grades?.scope.includes(SCORE_SCOPE) ? grades.lineitem : undefined
  if (lineItem !== undefined && !isWebAddress(lineItem)) throw incomplete()
  const grade = lineItem === undefined ? undefined : { lineItem, completedAtTenths: readTenths(token[`${CLAIM}/custom`]) }
  return { ...common, kind: 'resource', videoId: readVideoId(token[`${CLAIM}/target_link_uri`]), grade }
}

const MEMBERSHIP = 'http://purl.imsglobal.org/vocab/lis/v2/membership#'
const SYSTEM = 'http://purl.imsglobal.org/vocab/lis/v2/system/person#Administrator'
const INSTITUTION = 'http://purl.imsglobal.org/vocab/lis/v2/institution/person#Administrator'
/** In the course; platforms may shorten these (LTI core, appendix A.2). */
const inCourse = (...roles: string[]) => roles.flatMap((role) => [role, `${MEMBERSHIP}${role}`])
const TEACHERS = new Set([...inCourse('Instructor', 'ContentDeveloper', 'Administrator'), SYSTEM, INSTITUTION])
const LEARNERS = new Set(inCourse('Learner'))

function readSettings(settings: Static<typeof IdToken>[typeof DEEP_LINKING]): ChooseRequest {
  if (!settings || !isWebAddress(settings.deep_link_return_url)) throw incomplete()
  if (!settings.accept_types.includes('ltiResourceLink'))
    throw new Failure('invalid', 'The platform does not accept links to videos here. Add the video as an activity instead.')
  const { deep_link_return_url: returnUrl, data, accept_lineitem: mayGrade } = settings
  return { returnUrl, data: data ?? undefined, mayGrade: mayGrade !== false }
}

function isWebAddress(text: string): boolean {
  return ['https:', 'http:'].includes(URL.parse(text)?.protocol ?? '')
}

/** The custom parameter of a link that says which share is enough. */
export const COMPLETION_PARAMETER = 'completion_percent'

function readTenths(custom: object | null | undefined): number {
  const percent = custom && COMPLETION_PARAMETER in custom ? Number(custom[COMPLETION_PARAMETER]) : Number.NaN
  return percent >= 10 && percent <= 100 ? Math.floor(percent / 10) : DEFAULT_COMPLETED_AT_TENTHS
}

/** As `viewer:completed` counts. */
export const DEFAULT_COMPLETED_AT_TENTHS = MAX_TENTHS - 1

/** The video of a link: its address is `…/lti/videos/{id}`. */
function readVideoId(targetUrl: string | undefined): string | undefined {
  const path = URL.parse(targetUrl ?? '')?.pathname ?? ''
  return /\/lti\/videos\/([0-9a-f]{32})\/?$/.exec(path)?.[1]
}

function readLocale(locale: string | null | undefined): string | undefined {
  const tag = locale?.replaceAll('_', '-') ?? ''
  return /^[A-Za-z0-9-]{2,35}$/.test(tag) ? tag : undefined
}

/** What playback calls a person of a platform: no platform's id, and the same in each launch. */
export function userIdOf(issuer: string, subject: string): string {
  return hash('sha256', JSON.stringify([issuer, subject]), 'base64url').slice(0, 32)
}
