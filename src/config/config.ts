import { findPackageJSON } from 'node:module'
import { isIP } from 'node:net'
import { hostname } from 'node:os'
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path'
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { Failure } from '../errors.ts'
import { parseJson } from '../json.ts'
import { isMailAddress } from '../mail-address.ts'

/**
 * What the help, the errors and docs/operations.md say about a variable. `defaultText`: describes a default that is computed or
 * hard to read.
 */
const VariableFacts = Type.Object({
  description: Type.String(),
  expected: Type.Optional(Type.String()),
  default: Type.Optional(Type.String()),
  defaultText: Type.Optional(Type.String()),
})
export type VariableFacts = Static<typeof VariableFacts> & { name: string }

const PORT_PATTERN = '^([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$'

/** Every variable that Reelgate reads. `expected` completes the sentence about a value that is invalid. */
const Variables = Type.Object({
  PORT: Type.String({
    description: 'port to listen on',
    expected: 'a port from 0 to 65535',
    pattern: PORT_PATTERN,
    default: '8080',
  }),
  HOST: Type.String({ description: 'address to listen on', minLength: 1, default: '127.0.0.1' }),
  REELGATE_PUBLIC_URL: Type.Optional(
    Type.String({
      description: 'URL that viewers and clients use; upload and poster URLs begin with it',
      expected: 'a URL such as https://video.example.org, without a query',
      pattern: '^https?://[^/?#@\\s]+(/[^?#\\s]*)?$',
      defaultText: 'http://HOST:PORT',
    }),
  ),
  REELGATE_DATA: Type.String({ description: 'data folder', minLength: 1, default: './data' }),
  REELGATE_DATABASE_URL: Type.Optional(
    Type.String({
      description: 'PostgreSQL database to use instead of SQLite, such as postgres://USER:PASSWORD@HOST/NAME',
      expected: 'a URL such as postgres://USER:PASSWORD@HOST/NAME, with %40 for an @ and %2F for a / in the password',
      defaultText: 'SQLite in the data folder',
    }),
  ),
  REELGATE_MASTER_KEY_FILE: Type.Optional(
    Type.String({ description: 'file with the master key', minLength: 1, defaultText: 'the data folder’s name with .key' }),
  ),
  REELGATE_MASTER_KEY: Type.Optional(
    Type.String({
      description: 'the master key itself, 64 hexadecimal digits, instead of a file',
      expected: '64 hexadecimal digits, and during a rotation those of the key before after them, separated by a comma',
      pattern: '^[0-9a-fA-F]{64}([\\s,]+[0-9a-fA-F]{64})*$',
      defaultText: 'none',
    }),
  ),
  REELGATE_MASTER_KEY_COMMAND: Type.Optional(
    Type.String({
      description:
        'program that prints the master key, with its arguments, such as that of a key management service; run at the start, without a shell',
      expected:
        'a program and its arguments, separated by spaces, with \'…\' or "…" around those that contain spaces. There is no shell: put pipes, variables and the like into a script',
      minLength: 1,
      defaultText: 'none',
    }),
  ),
  REELGATE_UPLOAD_MAX_BYTES: Type.String({
    description: 'largest upload or import, in bytes',
    expected: 'a positive integer',
    pattern: '^[1-9][0-9]{0,15}$',
    default: String(30 * 2 ** 30),
    defaultText: '32212254720, 30 GiB',
  }),
  REELGATE_IMPORT_MAX_S: Type.String({
    description: 'longest time that an import may take from its first attempt, in seconds',
    expected: 'an integer from 1 to 999999', // timers are limited to 24 days
    pattern: '^[1-9][0-9]{0,5}$',
    default: String(12 * 3600),
    defaultText: '43200, 12 hours',
  }),
  REELGATE_OUTBOUND_ALLOW: Type.String({
    description:
      'destinations allowed besides public addresses on ports 80 and 443, separated by commas: HOST:PORT, or ADDRESS/BITS on ports 80 and 443',
    default: '',
    defaultText: 'none',
  }),
  PATH: Type.String({
    description: 'folders in which ffmpeg, ffprobe (5.1 or newer), prlimit and bwrap are searched for',
    default: '/usr/local/bin:/usr/bin:/bin',
  }),
  CACHE_DIRECTORY: Type.Optional(
    Type.String({
      description: 'folder for what makes the next start faster and may be deleted; systemd sets it',
      minLength: 1,
      defaultText: '`.cache` in the installation',
    }),
  ),
  REELGATE_SANDBOX: Type.Union([Type.Literal('required'), Type.Literal('weak')], {
    description:
      'required or weak: whether ffmpeg may open uploads without bubblewrap, with limits only, where that does not run',
    expected: 'required or weak',
    default: 'required',
  }),
  REELGATE_ENCODERS: Type.Optional(
    Type.String({
      description: 'number of chunks of videos that are encoded concurrently',
      expected: 'an integer from 1 to 64',
      pattern: '^([1-9]|[1-5][0-9]|6[0-4])$',
      defaultText: 'one per core',
    }),
  ),
  REELGATE_TRUSTED_PROXIES: Type.Optional(
    Type.String({
      description:
        'addresses or networks (CIDR) of proxies in front, separated by commas; X-Forwarded-For is ignored from all others',
      defaultText: 'none',
    }),
  ),
  REELGATE_LIMITS: Type.Optional(
    Type.String({
      description: 'requests per minute that differ from the defaults, as JSON such as {"reads":{"ip":1200}}, or off',
      expected:
        'off, or JSON such as {"reads":{"ip":1200,"key":2400}}: reads, writes, otp, uploads with ip, key, account; redeem, playback, unauthenticated, signIns, pages, posters, docs, health with ip; each a positive integer of requests per minute',
      defaultText: 'see Limits',
    }),
  ),
  REELGATE_COUNTRIES: Type.Optional(
    Type.String({
      description:
        'file with the countries of addresses, in the MaxMind format (.mmdb); read when first needed, so restart after changing it',
      minLength: 1,
      defaultText: 'the packaged file',
    }),
  ),
  JOURNAL_STREAM: Type.Optional(
    Type.String({
      description:
        'set by systemd when it keeps the output: a first start then prints the commands that show its secrets, not the secrets',
      defaultText: 'none',
    }),
  ),
  REELGATE_DEMO: Type.Union([Type.Literal('on'), Type.Literal('off')], {
    description: 'on or off: whether a new installation gets a demo video, and whether an existing one is shown',
    expected: 'on or off',
    default: 'on',
  }),
  REELGATE_VIEWER_DATA_DAYS: Type.String({
    description:
      'days for which viewer data is kept: what each viewer watched, the alerts about viewers, and their ids in usage counters',
    expected: 'an integer from 1 to 3650',
    pattern: '^([1-9]|[1-9][0-9]{1,2}|[12][0-9]{3}|3[0-5][0-9]{2}|36[0-4][0-9]|3650)$',
    default: '90',
  }),
  REELGATE_METRICS_PORT: Type.Optional(
    Type.String({
      description: 'port for Prometheus to read GET /metrics from; never the port of the viewers',
      expected: 'a port from 0 to 65535',
      pattern: PORT_PATTERN,
      defaultText: 'none: no metrics',
    }),
  ),
  REELGATE_METRICS_HOST: Type.String({ description: 'address of that port', minLength: 1, default: '127.0.0.1' }),
  REELGATE_SMTP_URL: Type.Optional(
    Type.String({
      description:
        'mail server that sends alerts and notices to people of the console, such as smtp://USER:PASSWORD@HOST, with STARTTLS, or smtps://USER:PASSWORD@HOST; smtp://localhost and smtp://HOST?tls=off are without encryption',
      expected:
        'a URL such as smtp://USER:PASSWORD@mail.example.org:587 or smtps://…, with %40 for an @ and %2F for a / in user and password, and nothing after it but ?tls=off or ?tls=required',
      defaultText: 'none: no e-mail',
    }),
  ),
  REELGATE_ALERT_TO: Type.Optional(
    Type.String({
      description: 'e-mail addresses that get the alerts, separated by commas',
      expected: 'addresses such as operator@example.org, separated by commas',
      defaultText: 'none: no e-mail',
    }),
  ),
  REELGATE_ALERT_FROM: Type.Optional(
    Type.String({
      description: 'e-mail address that alerts come from',
      expected: 'an address such as reelgate@example.org',
      defaultText: 'the first of REELGATE_ALERT_TO',
    }),
  ),
  REELGATE_LOG_LEVEL: Type.Union(
    (['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const).map((level) => Type.Literal(level)),
    {
      description: 'fatal, error, warn, info, debug, trace or silent; logs go to stderr, one JSON object per line',
      expected: 'fatal, error, warn, info, debug, trace or silent',
      default: 'info',
    },
  ),
})
type Variables = Static<typeof Variables>

export function describeVariables(): VariableFacts[] {
  return Object.entries(Variables.properties).map(([name, schema]) => {
    if (!Value.Check(VariableFacts, schema)) throw new Error(`${name} has no description`)
    const { description, expected, default: fixed, defaultText } = schema
    return { name, description, expected, default: fixed, defaultText }
  })
}

const PerMinute = (shipped: number) => Type.Integer({ minimum: 1, maximum: 1e9, default: shipped })
const OwnerLimits = (ip: number, key: number, account: number) =>
  Type.Object(
    { ip: PerMinute(ip), key: PerMinute(key), account: PerMinute(account) },
    { additionalProperties: false, default: {} },
  )
const AddressLimit = (ip: number) => Type.Object({ ip: PerMinute(ip) }, { additionalProperties: false, default: {} })

/** Requests per minute. Owners' calls count against address, key and account; viewers' against their address only. */
const RateLimitConfig = Type.Object(
  {
    reads: OwnerLimits(600, 1200, 2400),
    writes: OwnerLimits(300, 600, 1200),
    otp: OwnerLimits(3000, 6000, 12_000),
    uploads: OwnerLimits(60, 120, 240),
    redeem: AddressLimit(300),
    // Requests of players without a valid proof; those with one count per session.
    playback: AddressLimit(6000),
    // Owners' calls without a valid key.
    unauthenticated: AddressLimit(60),
    // Attempts to sign in to the console, by any means.
    signIns: AddressLimit(30),
    // The player's page and its files, for a school behind one address that opens a lesson.
    pages: AddressLimit(6000),
    posters: AddressLimit(12_000),
    docs: AddressLimit(600),
    health: AddressLimit(600),
  },
  { additionalProperties: false },
)
export type RateLimitConfig = Static<typeof RateLimitConfig>

/** Classes of requests that count against their address only. */
export type AddressBudget = Exclude<keyof RateLimitConfig, 'reads' | 'writes' | 'otp' | 'uploads'>

/** The typed, frozen form of the environment. */
export type Config = Readonly<ReturnType<typeof toConfig>>

/**
 * Reads the environment; nothing else reads it.
 * @throws Failure `invalid` that names the variable with the invalid value
 */
export function readConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const set = Object.keys(Variables.properties).flatMap((name) => (environment[name] ? [[name, environment[name]]] : []))
  const variables = Value.Default(Variables, Object.fromEntries(set))
  if (Value.Check(Variables, variables)) return Object.freeze(toConfig(variables))
  throw invalid(Value.Errors(Variables, variables)[0]?.instancePath.slice(1) ?? '')
}

/** The value is not repeated: it may be a secret. */
function invalid(name: string): Failure {
  const expected = describeVariables().find((variable) => variable.name === name)?.expected
  return new Failure('invalid', `${name} is invalid: expected ${expected ?? 'another value'}.`)
}

/**
 * Whether it is the URL of a PostgreSQL database. An unescaped `/` in a password would end it, and the rest of the password
 * would be logged.
 */
export function isDatabaseUrl(text: string): boolean {
  if (!/^postgres(ql)?:\/\//.test(text) || !URL.canParse(text)) return false
  const { username, password } = new URL(text)
  return username + password !== '' || !text.includes('@')
}

function toConfig(variables: Variables) {
  const [keyPlace, otherKeyPlace] = MASTER_KEY_PLACES.filter((name) => variables[name] !== undefined)
  if (otherKeyPlace) throw new Failure('invalid', `${keyPlace} and ${otherKeyPlace} are both set: keep one of them.`)
  const trustedProxies: readonly string[] = readProxies(variables.REELGATE_TRUSTED_PROXIES ?? '')
  const publicUrl = variables.REELGATE_PUBLIC_URL?.replace(/(?<!\/)\/+$/, '')
  if (publicUrl && !URL.canParse(publicUrl)) throw invalid('REELGATE_PUBLIC_URL')
  if (publicUrl && isLoopback(variables.HOST) && !isLoopback(new URL(publicUrl).hostname) && trustedProxies.length === 0) {
    throw new Failure(
      'invalid',
      `REELGATE_PUBLIC_URL is ${publicUrl} but Reelgate listens on ${variables.HOST} only, so there is a proxy in front. Name its address in REELGATE_TRUSTED_PROXIES (127.0.0.1 for one on this machine): without it all viewers would share one address and its limits.`,
    )
  }
  const databaseUrl = variables.REELGATE_DATABASE_URL
  if (databaseUrl !== undefined && !isDatabaseUrl(databaseUrl)) throw invalid('REELGATE_DATABASE_URL')
  const dataDir = resolve(variables.REELGATE_DATA)
  const outboundAllow: readonly string[] = variables.REELGATE_OUTBOUND_ALLOW.split(',').flatMap((entry) => entry.trim() || [])
  const toolFolders: readonly string[] = variables.PATH.split(delimiter).filter(isAbsolute)
  return {
    port: Number(variables.PORT),
    host: variables.HOST,
    /** Without a trailing slash. Undefined: made from the address that the server listens on. */
    publicUrl,
    dataDir,
    /** Holds a password: never to be logged. Undefined: SQLite, in the data folder. */
    databaseUrl,
    masterKeyFile: resolve(variables.REELGATE_MASTER_KEY_FILE ?? `${dataDir}.key`),
    /** The key ring as hexadecimal digits, when the environment and not a file holds it. */
    masterKeyHex: variables.REELGATE_MASTER_KEY,
    /** A program that prints the key, and its arguments. */
    masterKeyCommand:
      variables.REELGATE_MASTER_KEY_COMMAND === undefined ? undefined : readCommand(variables.REELGATE_MASTER_KEY_COMMAND),
    /** The variable that says where the master key comes from. */
    masterKeyPlace: keyPlace ?? 'REELGATE_MASTER_KEY_FILE',
    uploadMaxBytes: Number(variables.REELGATE_UPLOAD_MAX_BYTES),
    importMaxS: Number(variables.REELGATE_IMPORT_MAX_S),
    /** Entries `HOST:PORT` or `ADDRESS/BITS`, as written: `createOutboundPolicy` reads them. */
    outboundAllow,
    /** Absolute, in order. */
    toolFolders,
    /** What makes the next start faster. */
    cacheDir: variables.CACHE_DIRECTORY ?? join(dirname(findPackageJSON('.', import.meta.url) ?? '.'), '.cache'),
    /** Whether ffmpeg may open uploads where bubblewrap does not run. */
    sandbox: variables.REELGATE_SANDBOX,
    /** Undefined: one per core. */
    encoders: variables.REELGATE_ENCODERS === undefined ? undefined : Number(variables.REELGATE_ENCODERS),
    /** Undefined: off. */
    limits: readLimits(variables.REELGATE_LIMITS),
    /** Addresses and networks, each as `192.0.2.1` or `2001:db8::/32`. */
    trustedProxies,
    /** A file of the owner's own; undefined: the packaged one. */
    countriesFile: variables.REELGATE_COUNTRIES && resolve(variables.REELGATE_COUNTRIES),
    /** DEVICE:INODE of the output that systemd's journal keeps. */
    journalStream: variables.JOURNAL_STREAM,
    demo: variables.REELGATE_DEMO === 'on',
    viewerDataDays: Number(variables.REELGATE_VIEWER_DATA_DAYS),
    /** Undefined: no metrics. */
    metrics:
      variables.REELGATE_METRICS_PORT === undefined
        ? undefined
        : { host: variables.REELGATE_METRICS_HOST, port: Number(variables.REELGATE_METRICS_PORT) },
    /** Undefined: alerts are not sent by e-mail. */
    alertMail: readAlertMail(variables, publicUrl === undefined ? hostname() : new URL(publicUrl).host),
    logLevel: variables.REELGATE_LOG_LEVEL,
  }
}

const MASTER_KEY_PLACES = ['REELGATE_MASTER_KEY', 'REELGATE_MASTER_KEY_FILE', 'REELGATE_MASTER_KEY_COMMAND'] as const

/** A word of a command: bare, or in quotes. What a shell would act on is rejected, since here it would be taken literally. */
const COMMAND_WORD = /\s*(?:([^\s'"\\$`|&;<>()*?~#]+)|'([^']*)'|"([^"\\$`]*)")(?=\s|$)/y

/** @throws Failure `invalid` for what only a shell could run */
function readCommand(text: string): readonly string[] {
  const words: string[] = []
  const line = text.trim()
  for (COMMAND_WORD.lastIndex = 0; COMMAND_WORD.lastIndex < line.length; ) {
    const word = COMMAND_WORD.exec(line)
    if (!word) throw invalid('REELGATE_MASTER_KEY_COMMAND')
    words.push(word[1] ?? word[2] ?? word[3] ?? '')
  }
  if (!words[0]) throw invalid('REELGATE_MASTER_KEY_COMMAND')
  return words
}

/** How alerts are sent by e-mail. */
export type AlertMailConfig = Readonly<{
  /** The installation's public host, or this machine's name. */
  installation: string
  host: string
  port: number
  security: 'tls' | 'starttls' | 'none'
  /** Never to be logged. */
  login: { user: string; pass: string } | undefined
  to: readonly string[]
  from: string
}>

function readAlertMail(variables: Variables, installation: string): AlertMailConfig | undefined {
  const { REELGATE_SMTP_URL: url, REELGATE_ALERT_TO: recipients, REELGATE_ALERT_FROM: sender } = variables
  if (url === undefined && recipients === undefined) return undefined
  if (url === undefined || recipients === undefined) {
    const missing = url === undefined ? 'REELGATE_SMTP_URL, the mail server' : 'REELGATE_ALERT_TO, the addresses that get alerts'
    throw new Failure('invalid', `Alerts by e-mail need REELGATE_SMTP_URL and REELGATE_ALERT_TO. Set ${missing}.`)
  }
  const to = recipients.split(',').map((address) => address.trim())
  const from = sender ?? to[0] ?? ''
  if (!to.every(isMailAddress)) throw invalid('REELGATE_ALERT_TO')
  if (!isMailAddress(from)) throw invalid('REELGATE_ALERT_FROM')
  return { installation, ...readSmtpUrl(url), to, from }
}

const SMTP_URL =
  /^(?<scheme>smtps?):\/\/(?:(?<user>[^:@/?#\s]+):(?<password>[^:@/?#\s]+)@)?(?<host>\[[\da-f:]+\]|[\w.-]+)(?::(?<port>[1-9]\d{0,4}))?\/?(?:\?tls=(?<tls>off|required))?$/i
const SMTP_PORTS = { tls: 465, starttls: 587, none: 25 } as const

function readSmtpUrl(text: string): Pick<AlertMailConfig, 'host' | 'port' | 'security' | 'login'> {
  const { scheme, user, password, host: bracketed, port, tls } = SMTP_URL.exec(text)?.groups ?? {}
  if (scheme === undefined || bracketed === undefined || Number(port ?? 1) > 65_535) throw invalid('REELGATE_SMTP_URL')
  const host = bracketed.replace(/^\[|\]$/g, '')
  const login = user && password ? { user: decodePart(user), pass: decodePart(password) } : undefined
  // A mail server on this machine often has a certificate that nothing trusts, and what it is sent does not leave the machine.
  const isPlain = tls === undefined ? isLoopback(host) : tls === 'off'
  const security = scheme.toLowerCase() === 'smtps' ? 'tls' : isPlain ? 'none' : 'starttls'
  if (security === 'none' && login && !isLoopback(host)) {
    throw new Failure(
      'invalid',
      'REELGATE_SMTP_URL has a password and tls=off, so that others on the network could read it. Leave out tls=off, or user and password.',
    )
  }
  return { host, port: Number(port ?? SMTP_PORTS[security]), security, login }
}

function decodePart(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw invalid('REELGATE_SMTP_URL')
  }
}

function readLimits(text = '{}'): RateLimitConfig | undefined {
  if (text === 'off') return undefined
  const limits = Value.Default(RateLimitConfig, parseJson(text))
  if (Value.Check(RateLimitConfig, limits)) return limits
  throw invalid('REELGATE_LIMITS')
}

function readProxies(text: string): string[] {
  const proxies = text.split(/[\s,]+/).filter((proxy) => proxy !== '')
  const invalidProxy = proxies.find((proxy) => !isAddressOrNetwork(proxy))
  if (invalidProxy === undefined) return proxies
  throw new Failure(
    'invalid',
    `REELGATE_TRUSTED_PROXIES is invalid: expected addresses such as 127.0.0.1 or networks such as 10.0.0.0/8, got "${invalidProxy}".`,
  )
}

function isAddressOrNetwork(text: string): boolean {
  const [, address = '', bits = '0'] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  return isIP(address) !== 0 && Number(bits) <= (isIP(address) === 4 ? 32 : 128)
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost') || host === '::1' || host === '[::1]' || /^127(\.\d+){3}$/.test(host)
}

/** Read by `npm start` before there is a server (scripts/prepare.js). */
const LAUNCHER_VARIABLES = ['REELGATE_INSTALL']

/** Names that look like ours but are not: a mistyped variable would otherwise be ignored silently. */
export function listUnknownVariables(environment: NodeJS.ProcessEnv = process.env): string[] {
  const known = [...Object.keys(Variables.properties), ...LAUNCHER_VARIABLES]
  return Object.keys(environment).filter((name) => name.startsWith('REELGATE_') && !known.includes(name))
}

/** The paths of the parts of a data folder. */
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
    restoring: join(dataDir, 'restoring'),
    beforeUpgrade: join(dataDir, 'before-upgrade'),
    backupStream: join(dataDir, 'backup-stream'),
  }
}
