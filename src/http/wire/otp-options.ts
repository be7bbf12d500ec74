import { type Static, Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { Failure } from '../../errors.ts'
import { parseJson } from '../../json.ts'
import { MAX_TTL_S, type OtpDeps, type OtpRequest } from '../../playback/otp.ts'
import { type DefaultOptions, type FindOtpDefaults, NO_DEFAULTS, type OtpDefaults } from '../../playback/otp-defaults.ts'
import { isGiven, mergeRules, readRules } from '../../playback/rules/rules.ts'
import { checkWhitelist } from '../../playback/rules/whitelist.ts'
import { fillForViewer, listNeededOptions, parseWatermarks, type Viewer, type ViewerOption } from '../../watermark/watermark.ts'
import { refuseMisspelledNames } from './misspelled-names.ts'

// The options of an OTP as both interfaces send them, JSON or form (wire-contract.md, section 5). Unknown keys are ignored.

export type OtpOptionsDeps = Pick<OtpDeps, 'outbound'> & { findDefaults: FindOtpDefaults }

const DEFAULT_TTL_S = 21_600
const MAX_LICENSE_RULES_BYTES = 4096

/** A whole number, also as a form sends it. */
const Whole = Type.Union([Type.Integer({ minimum: 0 }), Type.String({ pattern: '^[0-9]{1,30}$' })])

const OtpOptions = Type.Object({
  ttl: Type.Optional({
    ...Whole,
    description: 'seconds in which the OTP must be redeemed, 21600 without it; more than a year counts as a year',
    examples: [300],
  }),
  forcedBitrate: Type.Optional({ ...Whole, description: 'kbit/s: the player uses the rendition nearest to it' }),
  userId: Type.Optional(
    Type.Union([Type.String({ pattern: '^[A-Za-z0-9_-]{1,36}$' }), Type.Integer({ minimum: 0 })], {
      description: 'your own identifier of the viewer, best the id in your database',
      examples: ['reader-4711'],
    }),
  ),
  streamLimit: Type.Optional(
    Type.Union([Type.Integer({ minimum: 1, maximum: 100 }), Type.String({ pattern: '^([1-9][0-9]?|100)$' })], {
      description: 'with `userId`: the number of screens on which this viewer may play at the same time',
    }),
  ),
  viewer: Type.Optional(
    Type.Object(
      { name: Type.Optional(Type.String({ maxLength: 128 })), email: Type.Optional(Type.String({ maxLength: 128 })) },
      {
        description:
          'with a `userId`, shown to you next to it; fills {name} and {email} in watermarks, which are refused without them; {id} is the userId, {ip} the address and {date} the day of the playback',
        examples: [{ email: 'ann@example.org' }],
      },
    ),
  ),
})

const Locations = Type.Array(Type.Union([Type.String(), Type.Array(Type.String())]))
const PlaceRule = Type.Object({
  action: Type.Union([Type.Boolean(), Type.String()]),
  ipSet: Type.Optional(Type.Array(Type.String())),
  countrySet: Type.Optional(Type.Array(Type.String())),
})
const Watermark = Type.Object(
  { type: Type.String({ description: '`rtext` (it moves), `text` or `image`' }) },
  { additionalProperties: true },
)
const AS_TEXT = Type.String({ description: 'the same as JSON text' })

/** All options, for the API reference. Those that are not above are checked by their features. */
export const OtpBody = Type.Object({
  ...OtpOptions.properties,
  annotate: Type.Optional(
    Type.Union([Type.Array(Watermark), Watermark, AS_TEXT], {
      description:
        'up to 20 watermarks with texts of up to 500 characters; JSON with single or typographic quotes is accepted, too',
      examples: [[{ type: 'rtext', text: '{email}', alpha: '0.6' }]],
    }),
  ),
  whitelisthref: Type.Optional(
    Type.String({
      description:
        'the site that may embed the video: a host, such as example.org, which includes its subdomains; or a regular expression',
    }),
  ),
  ipGeo: Type.Optional(
    Type.Union(
      [
        Type.Object({ allow: Type.Optional(Locations), block: Type.Optional(Locations), except: Type.Optional(Locations) }),
        AS_TEXT,
      ],
      {
        description:
          'where it may be watched, such as {"allow":["DE","192.0.2.0/24"]}: countries (ISO 3166-1 alpha-2), addresses and ranges; each list makes exceptions to the previous one',
      },
    ),
  ),
  ipGeoRules: Type.Optional(
    Type.Union([Type.Array(PlaceRule), AS_TEXT], {
      description:
        'the same as rules, such as [{"action":true,"ipSet":[],"countrySet":["DE"]}]; the last matching rule decides; an empty set matches everyone',
    }),
  ),
  licenseRules: Type.Optional(
    Type.Union([Type.Object({}, { additionalProperties: true }), AS_TEXT], {
      description: 'stored for DRM licences, without effect yet',
    }),
  ),
})

const isOtpOptions = Compile(OtpOptions)
const NAMES = Object.keys(OtpOptions.properties)
const OPTION_NAMES = Object.keys(OtpBody.properties)

/** The options that an account and a video may have defaults for. The stream limit of an account is a setting of its own. */
const DEFAULTS_OF_ACCOUNT = ['annotate', 'whitelisthref', 'ipGeo', 'ipGeoRules', 'ttl', 'forcedBitrate'] as const
const DEFAULTS_OF_VIDEO = [...DEFAULTS_OF_ACCOUNT, 'streamLimit'] as const
const MAX_DEFAULTS_BYTES = 64 * 1024
/** In replies besides the options: a client that changes what it has read sends them back. */
const ONLY_IN_REPLIES = ['eachOtpNeeds', 'eachOtpRefused']

/** The body that sets the defaults of an account. */
export const AccountDefaultsBody = Type.Pick(OtpBody, [...DEFAULTS_OF_ACCOUNT])
/** The body that sets the defaults of a video. */
export const VideoDefaultsBody = Type.Pick(OtpBody, [...DEFAULTS_OF_VIDEO])

type OtpChoices = Omit<OtpRequest, 'accountId' | 'apiKeyId' | 'videoId'>
type Options = Readonly<Record<string, unknown>>

/**
 * The options of an OTP, with the defaults of its account and video.
 * @throws Failure `invalid` that names the option
 */
export async function readOtpOptions(
  { findDefaults, outbound }: OtpOptionsDeps,
  { accountId, videoId }: { accountId: string; videoId: string },
  body: unknown,
): Promise<OtpChoices> {
  const options = asRecord(body)
  refuseMisspelledNames(Object.keys(options), OPTION_NAMES)
  const known = readKnown(options)
  if (known.streamLimit !== undefined && known.userId === undefined)
    throw new Failure('invalid', 'streamLimit counts the streams of a userId: send userId, too.')
  const userId = known.userId === undefined ? undefined : String(known.userId)
  const viewer = { ...known.viewer, userId }
  const own = readChoices(outbound, options)
  const defaults = (await findDefaults(accountId, videoId)) ?? NO_DEFAULTS
  const licenseRules = readLicenseRules(options.licenseRules)
  const usual = { ttlS: DEFAULT_TTL_S, watermarks: [] }
  if (defaults === NO_DEFAULTS) {
    const chosen = { ...usual, ...own }
    return { ...chosen, watermarks: fillForViewer(chosen.watermarks, viewer), userId, viewer: nameOf(viewer), licenseRules }
  }
  const ofVideo = readChoices(outbound, keptDefaults(options, defaults.ofVideo, defaults))
  const ofAccount = readChoices(outbound, keptDefaults(options, defaults.ofAccount, defaults))
  const chosen = { ...usual, ...ofAccount, ...ofVideo, ...own }
  const watermarks = fillForViewer(chosen.watermarks, viewer)
  const streamLimit = userId === undefined ? undefined : chosen.streamLimit
  const rules = mergeRules(own.rules, ofVideo.rules, ofAccount.rules)
  return { ...chosen, watermarks, userId, viewer: nameOf(viewer), streamLimit, licenseRules, rules }
}

/** For the owner's lists, which know viewers by their userId. */
function nameOf({ userId, name, email }: Viewer): OtpChoices['viewer'] {
  if (userId === undefined || !(name || email)) return undefined
  return { name: name || null, email: email || null }
}

/** Without those that the OTP removes. */
function keptDefaults(
  options: Options,
  { annotate, whitelisthref, ...others }: DefaultOptions,
  { areRemovable }: OtpDefaults,
): Options {
  const isKept = (name: string) => !(areRemovable && isEmpty(options[name]))
  return { ...others, ...(isKept('annotate') && { annotate }), ...(isKept('whitelisthref') && { whitelisthref }) }
}

/** Null is what clients send for an option that is not set. */
function isEmpty(value: unknown): boolean {
  return value === '' || value === '[]' || (Array.isArray(value) && value.length === 0)
}

/**
 * Reads the defaults of an account or a video.
 * @returns the options that are given, as they were sent, and those that each OTP needs besides
 * @throws Failure `invalid` that names the option
 */
export async function readDefaultOptions(
  { outbound }: Pick<OtpDeps, 'outbound'>,
  of: 'account' | 'video',
  body: unknown,
): Promise<{ options: DefaultOptions; eachOtpNeeds: ViewerOption[] }> {
  const names: readonly string[] = of === 'account' ? DEFAULTS_OF_ACCOUNT : DEFAULTS_OF_VIDEO
  const sent = Object.entries(asRecord(body)).filter(([name]) => !ONLY_IN_REPLIES.includes(name))
  const [unknown] = sent.find(([name]) => !names.includes(name)) ?? []
  if (unknown !== undefined)
    throw new Failure(
      'invalid',
      `There is no default "${unknown.slice(0, 40)}" of ${of === 'account' ? 'an account' : 'a video'}. Use ${names.join(', ')}.`,
    )
  const given = Object.fromEntries(sent.filter(([, value]) => isGiven(value)))
  if (Buffer.byteLength(JSON.stringify(given)) > MAX_DEFAULTS_BYTES)
    throw new Failure('invalid', `The defaults may have at most ${MAX_DEFAULTS_BYTES} bytes as JSON.`)
  const { ttlS = 0, rules, watermarks = [] } = readChoices(outbound, given)
  // An OTP's own ttl may be decades, as sites send it; a default is a decision, and counts as what it says.
  if (ttlS > MAX_TTL_S) throw new Failure('invalid', `ttl must be at most ${MAX_TTL_S} seconds, a year.`)
  if (rules?.whitelist) await checkWhitelist(rules.whitelist)
  return { options: given, eachOtpNeeds: listNeededOptions(watermarks) }
}

/** What the options say; what is not given, or empty, is missing. */
function readChoices(outbound: OtpDeps['outbound'], options: Options) {
  const { ttl, streamLimit, forcedBitrate } = readKnown(options)
  if (Number(ttl ?? 1) < 1) throw new Failure('invalid', 'ttl must be a whole number of seconds, at least 1.')
  const watermarks = parseWatermarks(outbound, options.annotate)
  const rules = readRules(options)
  return {
    ...(ttl !== undefined && { ttlS: Number(ttl) }),
    ...(streamLimit !== undefined && { streamLimit: Number(streamLimit) }),
    ...(watermarks.length > 0 && { watermarks }),
    ...(forcedBitrate !== undefined && { forcedBitrateKbps: Math.min(Number(forcedBitrate), 1_000_000) }),
    ...(rules && { rules }),
  }
}

function readKnown(options: Options): Static<typeof OtpOptions> {
  const known: Record<string, unknown> = {}
  for (const name of NAMES) if (isGiven(options[name])) known[name] = parseViewer(name, options[name])
  if (!isOtpOptions.Check(known)) throw new Failure('invalid', explainFault(known))
  return known
}

const SENTENCES: Record<string, string> = {
  ttl: 'ttl must be a whole number of seconds, at least 1.',
  forcedBitrate: 'forcedBitrate must be a whole number of kbit/s.',
  userId: 'userId must have 1 to 36 of the characters A–Z, a–z, 0–9, _ and -.',
  streamLimit: 'streamLimit must be a whole number from 1 to 100.',
  viewer: 'viewer must be an object with name and email, each of at most 128 characters.',
}

function explainFault(known: unknown): string {
  const name = isOtpOptions.Errors(known)[0]?.instancePath.split('/')[1] ?? ''
  return SENTENCES[name] ?? 'The options of the OTP are not valid.'
}

function readLicenseRules(given: unknown): Record<string, unknown> | undefined {
  if (!isGiven(given)) return undefined
  const rules = typeof given === 'string' ? parseJson(given) : given
  if (!isRecord(rules))
    throw new Failure('invalid', 'licenseRules must be a JSON object, such as {"canPersist":true,"rentalDuration":3600}.')
  if (Buffer.byteLength(JSON.stringify(rules)) > MAX_LICENSE_RULES_BYTES)
    throw new Failure('invalid', `licenseRules may have at most ${MAX_LICENSE_RULES_BYTES} bytes as JSON.`)
  if (Number(rules.rentalDuration) < 0)
    throw new Failure('invalid', 'rentalDuration, in licenseRules, must be a number of seconds, at least 0.')
  return rules
}

function asRecord(body: unknown): Readonly<Record<string, unknown>> {
  if (body === undefined || body === null || body === '') return {}
  if (!isRecord(body)) throw new Failure('invalid', 'The body must be an object of options.')
  return body
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A form sends `viewer` as JSON text. Other text is left as it is, and rejected. */
function parseViewer(name: string, value: unknown): unknown {
  return name === 'viewer' && typeof value === 'string' ? (parseJson(value) ?? value) : value
}
