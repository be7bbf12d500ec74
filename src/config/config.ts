import { findPackageJSON } from 'node:module'
import { isIP } from 'node:net'
import { hostname } from 'node:os'
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path'
import { Failure } from '../errors.ts'
import { readAlertMail } from './alert-mail.ts'
import { directPlayers, readBackupKeys, readBuckets } from './bucket.ts'
import { invalid, readVariables, type Variables } from './environment.ts'
import { isLoopback } from './loopback.ts'
import { readLimits } from './rate-limits.ts'
import { readSecrets } from './secrets.ts'

/** The typed, frozen form of the environment. */
export type Config = Readonly<ReturnType<typeof toConfig>>

/**
 * Reads the environment; nothing else reads it.
 * @throws Failure `invalid` that names the variable with the invalid value
 */
export function readConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  return Object.freeze(toConfig(readVariables(environment)))
}

function toConfig(variables: Variables) {
  const trustedProxies: readonly string[] = readProxies(variables.REELGATE_TRUSTED_PROXIES ?? '')
  const publicUrl = variables.REELGATE_PUBLIC_URL?.replace(/(?<!\/)\/+$/, '')
  if (publicUrl && !URL.canParse(publicUrl)) throw invalid('REELGATE_PUBLIC_URL')
  if (publicUrl && isLoopback(variables.HOST) && !isLoopback(new URL(publicUrl).hostname) && trustedProxies.length === 0) {
    throw new Failure(
      'invalid',
      `REELGATE_PUBLIC_URL is ${publicUrl} but Reelgate listens on ${variables.HOST} only, so there is a proxy in front. Name its address in REELGATE_TRUSTED_PROXIES (127.0.0.1 for one on this machine): without it all viewers would share one address and its limits.`,
    )
  }
  if (variables.REELGATE_MEDIA_ACCEL && trustedProxies.length === 0) {
    throw new Failure(
      'invalid',
      'REELGATE_MEDIA_ACCEL needs the nginx in front in REELGATE_TRUSTED_PROXIES (127.0.0.1 for one on this machine): only a proxy that is named there is asked to send files.',
    )
  }
  const mediaUrl = variables.REELGATE_MEDIA_URL?.replace(/(?<!\/)\/+$/, '')
  if (mediaUrl && !URL.canParse(mediaUrl)) throw invalid('REELGATE_MEDIA_URL')
  if (variables.REELGATE_MEDIA_TOKEN_KEY && !mediaUrl) throw invalid('REELGATE_MEDIA_TOKEN_KEY')
  const isDirect = variables.REELGATE_MEDIA_DELIVERY === 'direct'
  const { bucket, otherBucket } = readBuckets(variables)
  if (bucket && isDirect && variables.REELGATE_MEDIA_ACCEL !== undefined)
    throw new Failure(
      'invalid',
      'REELGATE_MEDIA_ACCEL needs files that nginx can read, and REELGATE_STORAGE_URL puts them into a bucket: unset one of them.',
    )
  const dataDir = resolve(variables.REELGATE_DATA)
  const outboundAllow: readonly string[] = variables.REELGATE_OUTBOUND_ALLOW.split(',').flatMap((entry) => entry.trim() || [])
  const toolFolders: readonly string[] = variables.PATH.split(delimiter).filter(isAbsolute)
  return {
    port: Number(variables.PORT),
    host: variables.HOST,
    /** Without a trailing slash. Undefined: made from the address that the server listens on. */
    publicUrl,
    dataDir,
    /** Undefined: made from the machine's. */
    serverName: variables.REELGATE_SERVER_NAME,
    /** Whether other servers may use the same database at the same time; only where the files of videos are in a bucket as well. */
    sharesDatabase: variables.REELGATE_DATABASE_URL !== undefined && bucket !== undefined,
    ...readSecrets(variables, dataDir),
    /** Has secrets. Undefined: the files of videos are in the data folder. */
    bucket,
    /** Has secrets. Of a bucket that `backup` and `restore` are given. */
    backupKeys: readBackupKeys(variables),
    /** Has secrets. Of a move between two buckets: the one that is not in `bucket`. */
    otherBucket,
    cacheBytes: readSize(variables.REELGATE_CACHE_SIZE),
    uploadMaxBytes: Number(variables.REELGATE_UPLOAD_MAX_BYTES),
    uploadExpiryS: Number(variables.REELGATE_UPLOAD_EXPIRY_S),
    importMaxS: Number(variables.REELGATE_IMPORT_MAX_S),
    /** Entries `HOST:PORT` or `ADDRESS/BITS`, as written: `createOutboundPolicy` reads them. */
    outboundAllow,
    /** Absolute, in order. */
    toolFolders,
    /** What makes the next start faster. */
    cacheDir: variables.CACHE_DIRECTORY ?? join(dirname(findPackageJSON('.', import.meta.url) ?? '.'), '.cache'),
    /** Whether ffmpeg may open uploads where bubblewrap does not run. */
    sandbox: variables.REELGATE_SANDBOX,
    /** Undefined: captions are not made of speech. */
    transcriber:
      variables.REELGATE_TRANSCRIBE_COMMAND === undefined
        ? undefined
        : {
            path: resolve(variables.REELGATE_TRANSCRIBE_COMMAND),
            files: (variables.REELGATE_TRANSCRIBE_FILES ?? '')
              .split(':')
              .filter((path) => path !== '')
              .map((path) => resolve(path)),
          },
    /** Undefined: one per core. */
    encoders: variables.REELGATE_ENCODERS === undefined ? undefined : Number(variables.REELGATE_ENCODERS),
    /** Undefined: off. */
    limits: readLimits(variables.REELGATE_LIMITS),
    /** Addresses and networks, each as `192.0.2.1` or `2001:db8::/32`. */
    trustedProxies,
    /** Undefined: no nginx in front sends segments. */
    mediaAccel: isDirect ? variables.REELGATE_MEDIA_ACCEL : undefined,
    /** Where players load segments of finished videos, without a trailing slash; undefined: from this server. */
    mediaOrigin: isDirect && mediaUrl ? { url: mediaUrl, bunnyKey: variables.REELGATE_MEDIA_TOKEN_KEY } : undefined,
    /** The pages whose players load segments of finished videos straight from the bucket that has them; undefined: they do not. */
    directPlayers: isDirect && !mediaUrl && publicUrl ? directPlayers(publicUrl, [bucket, otherBucket]) : undefined,
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

const UNITS: Readonly<Record<string, number>> = { MB: 1e6, GB: 1e9 }

function readSize(text: string): number {
  const [, digits, unit = ''] = /^(\d+)(MB|GB)?$/.exec(text) ?? []
  return Number(digits) * (UNITS[unit] ?? 1)
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
