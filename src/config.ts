import { isIP } from 'node:net'
import { delimiter, isAbsolute, join, resolve } from 'node:path'
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { Failure } from './errors.ts'

/** Every variable that Reelgate reads, with the sentence `reelgate serve --help` shows for it. */
export const VARIABLES = {
  PORT: 'port to listen on (8080)',
  HOST: 'address to listen on (127.0.0.1)',
  REELGATE_PUBLIC_URL: 'address that viewers and clients use, such as https://video.example.org (http://HOST:PORT)',
  REELGATE_DATA: 'data folder (./data)',
  REELGATE_DATABASE_URL:
    'PostgreSQL database instead of one in the data folder, such as postgres://USER:PASSWORD@HOST/NAME, signs in the password as %40 for @ (none)',
  REELGATE_MASTER_KEY_FILE: 'file with the master key (the data folder’s name with .key beside it)',
  REELGATE_MASTER_KEY: 'the master key itself, 64 hexadecimal digits, instead of a file',
  REELGATE_UPLOAD_MAX_BYTES: 'largest upload or import in bytes (32212254720, 30 GiB)',
  REELGATE_IMPORT_MAX_S: 'longest time that an import may take from its first try, in seconds (43200, 12 hours)',
  REELGATE_OUTBOUND_ALLOW:
    'what may be asked besides public addresses on ports 80 and 443: HOST:PORT or ADDRESS/BITS, with commas (nothing)',
  PATH: 'folders in which ffmpeg, ffprobe, prlimit and bwrap are looked for (/usr/local/bin:/usr/bin:/bin)',
  REELGATE_SANDBOX:
    'required or weak: whether ffmpeg may open uploads without bubblewrap, with limits alone, where that does not run (required)',
  REELGATE_ENCODERS: 'videos’ chunks encoded side by side (one per core)',
  REELGATE_TRUSTED_PROXIES:
    'addresses or networks (CIDR) of proxies in front, with commas; from others X-Forwarded-For is ignored',
  REELGATE_LIMITS: 'requests a minute that differ from the defaults, as JSON such as {"reads":{"ip":1200}}, or off',
  REELGATE_COUNTRIES: 'file with the countries of addresses, in the MaxMind format (.mmdb), instead of the one that comes along',
  REELGATE_DEMO: 'on or off: the demo video of a new installation (on)',
  REELGATE_LOG_LEVEL: 'fatal, error, warn, info, debug, trace or silent (info)',
} as const

const Variables = Type.Object({
  PORT: Type.String({ pattern: '^[0-9]{1,5}$', default: '8080' }),
  HOST: Type.String({ minLength: 1, default: '127.0.0.1' }),
  REELGATE_PUBLIC_URL: Type.Optional(Type.String({ pattern: '^https?://[^/?#@\\s]+(/[^?#\\s]*)?$' })),
  REELGATE_DATA: Type.String({ minLength: 1, default: './data' }),
  REELGATE_DATABASE_URL: Type.Optional(Type.String()),
  REELGATE_MASTER_KEY_FILE: Type.Optional(Type.String({ minLength: 1 })),
  REELGATE_MASTER_KEY: Type.Optional(Type.String({ pattern: '^[0-9a-fA-F]{64}$' })),
  REELGATE_UPLOAD_MAX_BYTES: Type.String({ pattern: '^[1-9][0-9]{0,15}$', default: String(30 * 2 ** 30) }),
  // A timer counts to 24 days at most.
  REELGATE_IMPORT_MAX_S: Type.String({ pattern: '^[1-9][0-9]{0,5}$', default: String(12 * 3600) }),
  REELGATE_OUTBOUND_ALLOW: Type.String({ default: '' }),
  PATH: Type.String({ default: '/usr/local/bin:/usr/bin:/bin' }),
  REELGATE_SANDBOX: Type.Union([Type.Literal('required'), Type.Literal('weak')], { default: 'required' }),
  REELGATE_ENCODERS: Type.Optional(Type.String({ pattern: '^([1-9]|[1-5][0-9]|6[0-4])$' })),
  REELGATE_TRUSTED_PROXIES: Type.Optional(Type.String()),
  REELGATE_LIMITS: Type.Optional(Type.String()),
  REELGATE_COUNTRIES: Type.Optional(Type.String({ minLength: 1 })),
  REELGATE_DEMO: Type.Union([Type.Literal('on'), Type.Literal('off')], { default: 'on' }),
  REELGATE_LOG_LEVEL: Type.Union(
    ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'].map((level) => Type.Literal(level)),
    { default: 'info' },
  ),
})
type Variables = Static<typeof Variables>

/** Classes of requests that count against their address alone. */
export type AddressBudget = 'redeem' | 'playback' | 'unauthenticated' | 'pages' | 'posters' | 'docs' | 'health'

/** Requests a minute. Owners' calls count against address, key and account; viewers' against their address alone. */
export type RateLimitConfig = Readonly<
  Record<'reads' | 'writes' | 'otp' | 'uploads', Readonly<{ ip: number; key: number; account: number }>> &
    Record<AddressBudget, Readonly<{ ip: number }>>
>

const DEFAULT_LIMITS: RateLimitConfig = {
  reads: { ip: 600, key: 1200, account: 2400 },
  writes: { ip: 300, key: 600, account: 1200 },
  otp: { ip: 3000, key: 6000, account: 12_000 },
  uploads: { ip: 60, key: 120, account: 240 },
  redeem: { ip: 300 },
  // Requests of players that carry no true proof; those that do count per session.
  playback: { ip: 6000 },
  // Calls of owners' interfaces without a live key.
  unauthenticated: { ip: 60 },
  // The player's page and its files, for a school behind one address that opens a lesson.
  pages: { ip: 6000 },
  posters: { ip: 12_000 },
  docs: { ip: 600 },
  health: { ip: 600 },
}

const PerMinute = Type.Optional(Type.Integer({ minimum: 1, maximum: 1e9 }))
const OfOwners = Type.Optional(
  Type.Object({ ip: PerMinute, key: PerMinute, account: PerMinute }, { additionalProperties: false }),
)
const OfAddresses = Type.Optional(Type.Object({ ip: PerMinute }, { additionalProperties: false }))
const LimitChanges = Type.Object(
  {
    reads: OfOwners,
    writes: OfOwners,
    otp: OfOwners,
    uploads: OfOwners,
    redeem: OfAddresses,
    playback: OfAddresses,
    unauthenticated: OfAddresses,
    pages: OfAddresses,
    posters: OfAddresses,
    docs: OfAddresses,
    health: OfAddresses,
  },
  { additionalProperties: false },
)

/** The one typed, frozen form of the environment. */
export type Config = Readonly<{
  port: number
  host: string
  /** Without a trailing slash. Undefined: made from the address that the server listens on. */
  publicUrl: string | undefined
  dataDir: string
  /** Holds a password: never to be logged. Undefined: SQLite, in the data folder. */
  databaseUrl: string | undefined
  masterKeyFile: string
  /** 64 hexadecimal digits, when the environment and not a file holds the key. */
  masterKeyHex: string | undefined
  uploadMaxBytes: number
  importMaxS: number
  /** Entries `HOST:PORT` or `ADDRESS/BITS`, as written: `openOutbound` reads them. */
  outboundAllow: readonly string[]
  /** Absolute, in order. */
  toolFolders: readonly string[]
  /** Whether ffmpeg may open uploads where bubblewrap does not run. */
  sandbox: 'required' | 'weak'
  /** Undefined: one per core. */
  encoders: number | undefined
  /** Undefined: off. */
  limits: RateLimitConfig | undefined
  /** Addresses and networks, each as `192.0.2.1` or `2001:db8::/32`. */
  trustedProxies: readonly string[]
  /** A file of the owner's own; undefined: the packaged one. */
  countriesFile: string | undefined
  /** Whether a new installation gets a demo video, and an old one shows the one it has. */
  demo: boolean
  logLevel: string
}>

/**
 * Reads the environment; the only reader of it.
 * @throws Failure `invalid` that names the variable whose value cannot be
 */
export function readConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const set = Object.fromEntries(Object.keys(VARIABLES).flatMap((name) => (environment[name] ? [[name, environment[name]]] : [])))
  const variables = Value.Default(Variables, set)
  if (!Value.Check(Variables, variables)) throw new Failure('invalid', refusal(variables))
  return toConfig(variables)
}

function refusal(variables: unknown): string {
  return cannotBe(Value.Errors(Variables, variables)[0]?.instancePath.slice(1) ?? 'A variable')
}

function cannotBe(name: string): string {
  const meaning = Object.entries(VARIABLES).find(([known]) => known === name)?.[1]
  return `${name} has a value that cannot be. It stands for: ${meaning ?? 'a setting'}. Correct it and start again.`
}

/** Where the password of an address holds a sign that ends it, such as a slash, its rest stands in what is told of the address. */
export function isDatabaseUrl(text: string): boolean {
  if (!/^postgres(ql)?:\/\//.test(text) || !URL.canParse(text)) return false
  const { username, password } = new URL(text)
  return username + password !== '' || !text.includes('@')
}

function toConfig(variables: Variables): Config {
  const port = Number(variables.PORT)
  if (port > 65_535)
    throw new Failure('invalid', 'PORT has a value that cannot be: ports go from 0 to 65535. Correct it and start again.')
  if (variables.REELGATE_MASTER_KEY && variables.REELGATE_MASTER_KEY_FILE) {
    throw new Failure('invalid', 'REELGATE_MASTER_KEY and REELGATE_MASTER_KEY_FILE are both set: keep one of them.')
  }
  const trustedProxies = readProxies(variables.REELGATE_TRUSTED_PROXIES ?? '')
  const publicUrl = variables.REELGATE_PUBLIC_URL?.replace(/\/+$/, '')
  if (publicUrl && !URL.canParse(publicUrl)) throw new Failure('invalid', cannotBe('REELGATE_PUBLIC_URL'))
  if (publicUrl && isLoopback(variables.HOST) && !isLoopback(new URL(publicUrl).hostname) && trustedProxies.length === 0) {
    throw new Failure(
      'invalid',
      `REELGATE_PUBLIC_URL is ${publicUrl}, and Reelgate listens on ${variables.HOST} alone, so a proxy stands in front. Name its address in REELGATE_TRUSTED_PROXIES (127.0.0.1 for one on this machine): without it all viewers would share one address and its limits.`,
    )
  }
  const databaseUrl = variables.REELGATE_DATABASE_URL
  if (databaseUrl !== undefined && !isDatabaseUrl(databaseUrl)) throw new Failure('invalid', cannotBe('REELGATE_DATABASE_URL'))
  const dataDir = resolve(variables.REELGATE_DATA)
  return Object.freeze({
    port,
    host: variables.HOST,
    publicUrl,
    dataDir,
    databaseUrl,
    masterKeyFile: resolve(variables.REELGATE_MASTER_KEY_FILE ?? `${dataDir}.key`),
    masterKeyHex: variables.REELGATE_MASTER_KEY,
    uploadMaxBytes: Number(variables.REELGATE_UPLOAD_MAX_BYTES),
    importMaxS: Number(variables.REELGATE_IMPORT_MAX_S),
    outboundAllow: variables.REELGATE_OUTBOUND_ALLOW.split(',').flatMap((entry) => entry.trim() || []),
    toolFolders: variables.PATH.split(delimiter).filter(isAbsolute),
    sandbox: variables.REELGATE_SANDBOX,
    encoders: variables.REELGATE_ENCODERS === undefined ? undefined : Number(variables.REELGATE_ENCODERS),
    limits: readLimits(variables.REELGATE_LIMITS),
    trustedProxies,
    countriesFile: variables.REELGATE_COUNTRIES && resolve(variables.REELGATE_COUNTRIES),
    demo: variables.REELGATE_DEMO === 'on',
    logLevel: String(variables.REELGATE_LOG_LEVEL),
  })
}

function readLimits(text: string | undefined): RateLimitConfig | undefined {
  if (text === 'off') return undefined
  const changes: Record<string, object | undefined> = text === undefined ? {} : readLimitChanges(text)
  const merge = <L extends object>(budget: string, shipped: L): L => ({ ...shipped, ...changes[budget] })
  const { reads, writes, otp, uploads, redeem, playback, unauthenticated, pages, posters, docs, health } = DEFAULT_LIMITS
  return Object.freeze({
    reads: merge('reads', reads),
    writes: merge('writes', writes),
    otp: merge('otp', otp),
    uploads: merge('uploads', uploads),
    redeem: merge('redeem', redeem),
    playback: merge('playback', playback),
    unauthenticated: merge('unauthenticated', unauthenticated),
    pages: merge('pages', pages),
    posters: merge('posters', posters),
    docs: merge('docs', docs),
    health: merge('health', health),
  })
}

function readLimitChanges(text: string): Static<typeof LimitChanges> {
  const changes = parseJson(text)
  if (Value.Check(LimitChanges, changes)) return changes
  throw new Failure(
    'invalid',
    'REELGATE_LIMITS has a value that cannot be. It is off, or JSON such as {"reads":{"ip":1200,"key":2400}}: reads, writes, otp, uploads with ip, key, account; redeem, playback, unauthenticated, pages, posters, docs, health with ip; each a whole number of requests a minute, at least 1. Correct it and start again.',
  )
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function readProxies(text: string): string[] {
  const proxies = text.split(/[\s,]+/).filter((proxy) => proxy !== '')
  const wrong = proxies.find((proxy) => !isAddressOrNetwork(proxy))
  if (wrong === undefined) return proxies
  throw new Failure(
    'invalid',
    `REELGATE_TRUSTED_PROXIES holds "${wrong}", which is neither an address such as 127.0.0.1 nor a network such as 10.0.0.0/8. Correct it and start again.`,
  )
}

function isAddressOrNetwork(text: string): boolean {
  const [, address = '', bits = '0'] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  return isIP(address) !== 0 && Number(bits) <= (isIP(address) === 4 ? 32 : 128)
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost') || host === '::1' || host === '[::1]' || /^127(\.\d+){3}$/.test(host)
}

/** Names that look like ours and are not: a mistyped variable would otherwise be ignored in silence. */
export function listUnknownVariables(environment: NodeJS.ProcessEnv = process.env): string[] {
  return Object.keys(environment).filter((name) => name.startsWith('REELGATE_') && !(name in VARIABLES))
}

/** Where the parts of an installation lie in its data folder. */
export function dataPaths(dataDir: string) {
  return {
    database: join(dataDir, 'reelgate.db'),
    mark: join(dataDir, 'reelgate.mark'),
    lock: join(dataDir, 'lock.db'),
    reserve: join(dataDir, 'reelgate.reserve'),
    controlSocket: join(dataDir, 'control.sock'),
    sources: join(dataDir, 'sources'),
    segments: join(dataDir, 'segments'),
    posters: join(dataDir, 'posters'),
    files: join(dataDir, 'files'),
    tmp: join(dataDir, 'tmp'),
  }
}
