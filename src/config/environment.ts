import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { Failure } from '../errors.ts'

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
type VariableFacts = Static<typeof VariableFacts> & { name: string }

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
  REELGATE_SERVER_NAME: Type.Optional(
    Type.String({
      description: 'name of this server in the console, where several use one database',
      expected: 'up to 60 letters, digits, dots, hyphens and underscores',
      pattern: '^[A-Za-z0-9._-]{1,60}$',
      defaultText: 'the name of the machine and four letters',
    }),
  ),
  REELGATE_STORAGE_URL: Type.Optional(
    Type.String({
      description: 'bucket for the files of videos, such as s3://BUCKET/PREFIX?endpoint=https://s3.example.org&region=eu-1',
      expected:
        's3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION, each part after the bucket as needed, and the keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
      defaultText: 'the data folder',
    }),
  ),
  AWS_ACCESS_KEY_ID: Type.Optional(Type.String({ description: 'access key of the bucket', minLength: 1, defaultText: 'none' })),
  AWS_SECRET_ACCESS_KEY: Type.Optional(Type.String({ description: 'secret of that key', minLength: 1, defaultText: 'none' })),
  AWS_SESSION_TOKEN: Type.Optional(
    Type.String({ description: 'token of temporary keys, if they are', minLength: 1, defaultText: 'none' }),
  ),
  AWS_REGION: Type.Optional(
    Type.String({ description: 'region of the bucket, where its address has none', minLength: 1, defaultText: 'us-east-1' }),
  ),
  REELGATE_BACKUP_ACCESS_KEY_ID: Type.Optional(
    Type.String({
      description: 'access key of the bucket that reelgate backup and restore are given',
      minLength: 1,
      defaultText: 'AWS_ACCESS_KEY_ID',
    }),
  ),
  REELGATE_BACKUP_SECRET_ACCESS_KEY: Type.Optional(
    Type.String({ description: 'secret of that key', minLength: 1, defaultText: 'AWS_SECRET_ACCESS_KEY' }),
  ),
  REELGATE_STORAGE_OTHER_URL: Type.Optional(
    Type.String({
      description: 'the second bucket while files are moved from one to another, written as REELGATE_STORAGE_URL',
      expected: 's3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION, each part after the bucket as needed',
      defaultText: 'none',
    }),
  ),
  REELGATE_STORAGE_OTHER_ACCESS_KEY_ID: Type.Optional(
    Type.String({ description: 'access key of the second bucket', minLength: 1, defaultText: 'AWS_ACCESS_KEY_ID' }),
  ),
  REELGATE_STORAGE_OTHER_SECRET_ACCESS_KEY: Type.Optional(
    Type.String({ description: 'secret of that key', minLength: 1, defaultText: 'AWS_SECRET_ACCESS_KEY' }),
  ),
  REELGATE_STORAGE_OTHER_SESSION_TOKEN: Type.Optional(
    Type.String({ description: 'token of temporary keys of the second bucket', minLength: 1, defaultText: 'none' }),
  ),
  REELGATE_CACHE_SIZE: Type.String({
    description: 'space in the data folder for copies of sources out of a bucket, which ffmpeg reads; in bytes, or with MB or GB',
    expected: 'a number of bytes such as 20GB',
    pattern: '^[1-9][0-9]{0,14}(MB|GB)?$',
    default: '20GB',
  }),
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
  REELGATE_UPLOAD_EXPIRY_S: Type.String({
    description: 'how long a resumable upload is kept that gets no further, in seconds',
    expected: 'an integer from 60 to 9999999',
    pattern: '^([6-9][0-9]|[1-9][0-9]{2,6})$',
    default: String(24 * 3600),
    defaultText: '86400, 24 hours',
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
  REELGATE_TRANSCRIBE_COMMAND: Type.Optional(
    Type.String({
      description:
        'program that makes captions of speech: gets a WAV of 16 kHz on its standard input and the language as its argument, and prints WebVTT; runs without a network',
      expected: 'the absolute path of a program, without arguments',
      pattern: '^/',
      defaultText: 'none',
    }),
  ),
  REELGATE_TRANSCRIBE_FILES: Type.Optional(
    Type.String({
      description:
        'files and folders that this program may read besides the programs of the system, with colons in between, such as that of its model',
      expected: 'absolute paths with colons in between',
      pattern: '^/[^:]*(:/[^:]*)*$',
      defaultText: 'none',
    }),
  ),
  REELGATE_ENCODERS: Type.Optional(
    Type.String({
      description:
        'number of chunks of videos that are encoded concurrently; 0: workers encode them, and this server only what may not leave it',
      expected: 'an integer from 0 to 64',
      pattern: '^([0-9]|[1-5][0-9]|6[0-4])$',
      defaultText: 'one per core',
    }),
  ),
  REELGATE_WORKER_TOKEN: Type.Optional(
    Type.String({
      description: 'token of `reelgate worker --server`, as `reelgate worker add` printed it; the server does not read it',
      expected: 'worker_ and 64 letters and digits',
      pattern: '^worker_[A-Za-z0-9]{64}$',
      defaultText: 'none',
    }),
  ),
  REELGATE_TRUSTED_PROXIES: Type.Optional(
    Type.String({
      description:
        'addresses or networks (CIDR) of proxies in front, separated by commas; X-Forwarded-For is ignored from all others',
      defaultText: 'none',
    }),
  ),
  REELGATE_MEDIA_ACCEL: Type.Optional(
    Type.String({
      description:
        'the nginx in front sends segments itself: the path of its internal location for the folder segments, such as /segments/; needs REELGATE_TRUSTED_PROXIES',
      expected: 'a path that begins and ends with a /, such as /segments/, of letters, digits, ., - and _',
      pattern: '^/([A-Za-z0-9._-]+/)+$',
      defaultText: 'none: the server sends them',
    }),
  ),
  REELGATE_MEDIA_URL: Type.Optional(
    Type.String({
      description:
        'URL of a CDN or an nginx that fetches segments from this server and keeps them; players load those of finished videos there',
      expected: 'a URL such as https://media.example.org, without a query',
      pattern: '^https?://[^/?#@\\s]+(/[^?#\\s]*)?$',
      defaultText: 'none: from this server',
    }),
  ),
  REELGATE_MEDIA_TOKEN_KEY: Type.Optional(
    Type.String({
      description: 'key of Bunny’s token authentication, whose directory tokens then precede the paths at REELGATE_MEDIA_URL',
      expected: 'the key of a pull zone, of letters, digits and -, and REELGATE_MEDIA_URL with it',
      pattern: '^[A-Za-z0-9-]+$',
      defaultText: 'none: no such tokens',
    }),
  ),
  REELGATE_MEDIA_DELIVERY: Type.Union([Type.Literal('direct'), Type.Literal('server')], {
    description:
      'direct or server: whether players load segments from the bucket, or from where REELGATE_MEDIA_URL and REELGATE_MEDIA_ACCEL say, or all from the server itself',
    expected: 'direct or server',
    default: 'direct',
  }),
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
export type Variables = Static<typeof Variables>

export function describeVariables(): VariableFacts[] {
  return Object.entries(Variables.properties).map(([name, schema]) => {
    if (!Value.Check(VariableFacts, schema)) throw new Error(`${name} has no description`)
    const { description, expected, default: fixed, defaultText } = schema
    return { name, description, expected, default: fixed, defaultText }
  })
}

/** The variables as text, with their defaults. @throws Failure `invalid` */
export function readVariables(environment: NodeJS.ProcessEnv): Variables {
  const set = Object.keys(Variables.properties).flatMap((name) => (environment[name] ? [[name, environment[name]]] : []))
  const variables = Value.Default(Variables, Object.fromEntries(set))
  if (Value.Check(Variables, variables)) return variables
  throw invalid(Value.Errors(Variables, variables)[0]?.instancePath.slice(1) ?? '')
}

/** The error for a variable. Its value is not repeated: it may be a secret. */
export function invalid(name: string): Failure {
  const expected = describeVariables().find((variable) => variable.name === name)?.expected
  return new Failure('invalid', `${name} is invalid: expected ${expected ?? 'another value'}.`)
}

/** Read by `npm start` before there is a server (scripts/prepare.js). */
const LAUNCHER_VARIABLES = ['REELGATE_INSTALL']

/** Names that look like ours but are not: a mistyped variable would otherwise be ignored silently. */
export function listUnknownVariables(environment: NodeJS.ProcessEnv = process.env): string[] {
  const known = [...Object.keys(Variables.properties), ...LAUNCHER_VARIABLES]
  return Object.keys(environment).filter((name) => name.startsWith('REELGATE_') && !known.includes(name))
}
