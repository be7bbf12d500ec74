import { type Static, Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { Failure } from '../../errors.ts'
import { parseJson } from '../../json.ts'
import type { OtpDeps, OtpRequest } from '../../playback/otp.ts'
import { isGiven, readRules } from '../../playback/rules.ts'
import { parseWatermarks } from '../../watermark/watermark.ts'
import { refuseMisspelledNames } from './misspelled-names.ts'

// The options of an OTP as both interfaces send them, JSON or form (wire-contract.md, section 5). Unknown keys are ignored.

const DEFAULT_TTL_S = 21_600
const MAX_LICENSE_RULES_BYTES = 4096

/** A whole number, also as a form sends it. */
const Whole = Type.Union([Type.Integer({ minimum: 0 }), Type.String({ pattern: '^[0-9]{1,30}$' })])

const OtpOptions = Type.Object({
  ttl: Type.Optional({
    ...Whole,
    description: 'seconds in which the OTP must be redeemed, 21600 without it',
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
          'fills {name} and {email} in watermarks; {id} is the userId, {ip} the address and {date} the day of the playback',
        examples: [{ email: 'ann@example.org' }],
      },
    ),
  ),
})

const Places = Type.Array(Type.Union([Type.String(), Type.Array(Type.String())]))
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
      description: 'up to 20 watermarks; JSON with single or typographic quotes is accepted, too',
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
      [Type.Object({ allow: Type.Optional(Places), block: Type.Optional(Places), except: Type.Optional(Places) }), AS_TEXT],
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

type OtpChoices = Omit<OtpRequest, 'accountId' | 'apiKeyId' | 'videoId'>

/** @throws Failure `invalid` that names the option */
export function readOtpOptions({ outbound }: Pick<OtpDeps, 'outbound'>, body: unknown): OtpChoices {
  const options = asRecord(body)
  refuseMisspelledNames(Object.keys(options), OPTION_NAMES)
  const known: Record<string, unknown> = {}
  for (const name of NAMES) if (isGiven(options[name])) known[name] = parseViewer(name, options[name])
  if (!isOtpOptions.Check(known)) throw new Failure('invalid', explainFault(known))
  return choices(outbound, known, options)
}

function choices(
  outbound: OtpDeps['outbound'],
  known: Static<typeof OtpOptions>,
  options: Readonly<Record<string, unknown>>,
): OtpChoices {
  const ttlS = known.ttl === undefined ? DEFAULT_TTL_S : Number(known.ttl)
  if (ttlS < 1) throw new Failure('invalid', 'ttl must be a whole number of seconds, at least 1.')
  if (known.streamLimit !== undefined && known.userId === undefined)
    throw new Failure('invalid', 'streamLimit counts the streams of a userId: send userId, too.')
  const userId = known.userId === undefined ? undefined : String(known.userId)
  return {
    ttlS,
    userId,
    streamLimit: known.streamLimit === undefined ? undefined : Number(known.streamLimit),
    watermarks: parseWatermarks(outbound, options.annotate, { ...known.viewer, userId }),
    forcedBitrateKbps: known.forcedBitrate === undefined ? undefined : Math.min(Number(known.forcedBitrate), 1_000_000),
    licenseRules: readLicenseRules(options.licenseRules),
    rules: readRules(options),
  }
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
