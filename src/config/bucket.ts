import { Failure } from '../errors.ts'
import { invalid, type Variables } from './environment.ts'
import { isLoopback } from './loopback.ts'

const AWS_ENDPOINT = 'https://s3.{region}.amazonaws.com'
const BUCKET_NAME = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
const PREFIX = /^[\w-][\w.-]*$/

type Credentials = { accessKeyId: string; secretAccessKey: string; sessionToken?: string | undefined }
/** The variables of one bucket: its address, and who asks it. */
const MAIN = {
  url: 'REELGATE_STORAGE_URL',
  accessKeyId: 'AWS_ACCESS_KEY_ID',
  secretAccessKey: 'AWS_SECRET_ACCESS_KEY',
  sessionToken: 'AWS_SESSION_TOKEN',
} as const
const OTHER = {
  url: 'REELGATE_STORAGE_OTHER_URL',
  accessKeyId: 'REELGATE_STORAGE_OTHER_ACCESS_KEY_ID',
  secretAccessKey: 'REELGATE_STORAGE_OTHER_SECRET_ACCESS_KEY',
  sessionToken: 'REELGATE_STORAGE_OTHER_SESSION_TOKEN',
} as const

/** The pages of an installation whose players load from its buckets. */
export type DirectPlayers = {
  origin: string
  /** Of the buckets. */
  bucketOrigins: readonly string[]
  /** Why browsers cannot reach an endpoint from there, as this server can. */
  findProblem(endpoint: string): string | undefined
}

/** Undefined: there is no bucket. */
export function directPlayers(
  publicUrl: string,
  buckets: readonly ({ endpoint: string } | undefined)[],
): DirectPlayers | undefined {
  const players = new URL(publicUrl)
  const bucketOrigins = [...new Set(buckets.flatMap((bucket) => (bucket ? [new URL(bucket.endpoint).origin] : [])))]
  if (bucketOrigins.length === 0) return undefined
  return {
    origin: players.origin,
    bucketOrigins,
    findProblem(endpoint) {
      const { protocol, hostname, origin } = new URL(endpoint)
      if (players.protocol === 'https:' && protocol === 'http:')
        return `browsers block ${origin}, which is not https, on pages of ${players.origin}`
      return isLoopback(hostname) && !isLoopback(players.hostname) ? `${origin} is an address of this machine alone` : undefined
    },
  }
}

/**
 * The bucket for the files of videos, and who asks it; undefined: they are in the data folder. And the other one of a move between
 * buckets: the keys of the first open it, unless it has its own.
 * @throws Failure `invalid`; no message has a secret
 */
export function readBuckets(variables: Variables) {
  const bucket = readBucket(variables, MAIN)
  const own = [OTHER.accessKeyId, OTHER.secretAccessKey, OTHER.sessionToken].some((name) => variables[name] !== undefined)
  return { bucket, otherBucket: readBucket(variables, own ? OTHER : { ...MAIN, url: OTHER.url }) }
}

function readBucket(
  variables: Variables,
  names: typeof MAIN | typeof OTHER | (Omit<typeof MAIN, 'url'> & Pick<typeof OTHER, 'url'>),
) {
  const address = variables[names.url]
  if (address === undefined) return undefined
  const place = parseBucketUrl(address, variables.AWS_REGION)
  if (!place) throw invalid(names.url)
  const accessKeyId = variables[names.accessKeyId]
  const secretAccessKey = variables[names.secretAccessKey]
  if (accessKeyId === undefined || secretAccessKey === undefined)
    throw new Failure('invalid', `${names.url} needs ${names.accessKeyId} and ${names.secretAccessKey}: set both.`)
  const credentials: Credentials = { accessKeyId, secretAccessKey, sessionToken: variables[names.sessionToken] }
  return { ...place, credentials }
}

/** Where a bucket is. `prefix`: empty, or with a slash at its end. Undefined: it is no address of a bucket. */
export function parseBucketUrl(address: string, defaultRegion = 'us-east-1') {
  const url = URL.canParse(address) ? new URL(address) : undefined
  const known = ['endpoint', 'region']
  if (url?.protocol !== 's3:' || url.username + url.password + url.port + url.hash !== '') return undefined
  if ([...url.searchParams.keys()].some((name) => !known.includes(name))) return undefined
  const folders = url.pathname.split('/').filter((part) => part !== '')
  if (!BUCKET_NAME.test(url.hostname) || folders.some((folder) => !PREFIX.test(folder))) return undefined
  const region = url.searchParams.get('region') ?? defaultRegion
  const endpoint = (url.searchParams.get('endpoint') ?? AWS_ENDPOINT.replace('{region}', region)).replace(/(?<!\/)\/+$/, '')
  if (!/^https?:\/\/[^/?#@\s]+$/.test(endpoint) || !URL.canParse(endpoint)) return undefined
  return { endpoint, region, bucket: url.hostname, prefix: folders.map((folder) => `${folder}/`).join('') }
}

/** Who asks the bucket of backups: its own keys, where it has some, and otherwise those of the other bucket. */
export function readBackupKeys(variables: Variables) {
  const { REELGATE_BACKUP_ACCESS_KEY_ID: own, AWS_ACCESS_KEY_ID: shared } = variables
  const keys =
    own === undefined
      ? { id: shared, secret: variables.AWS_SECRET_ACCESS_KEY, sessionToken: variables.AWS_SESSION_TOKEN }
      : { id: own, secret: variables.REELGATE_BACKUP_SECRET_ACCESS_KEY, sessionToken: undefined }
  if (keys.id === undefined || keys.secret === undefined) return { region: variables.AWS_REGION }
  const credentials = { accessKeyId: keys.id, secretAccessKey: keys.secret, sessionToken: keys.sessionToken }
  return { region: variables.AWS_REGION, credentials }
}
