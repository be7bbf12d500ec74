import { Failure } from '../errors.ts'
import { invalid, type Variables } from './environment.ts'

const AWS_ENDPOINT = 'https://s3.{region}.amazonaws.com'
const BUCKET_NAME = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
const PREFIX = /^[\w-][\w.-]*$/

type Credentials = { accessKeyId: string; secretAccessKey: string; sessionToken?: string | undefined }

/**
 * The bucket for the files of videos, and who asks it. Undefined: they are in the data folder.
 * @throws Failure `invalid`; no message has a secret
 */
export function readBucket(variables: Variables) {
  const url = variables.REELGATE_STORAGE_URL
  if (url === undefined) return undefined
  const address = parseBucketUrl(url, variables.AWS_REGION)
  if (!address) throw invalid('REELGATE_STORAGE_URL')
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, AWS_SESSION_TOKEN: sessionToken } = variables
  if (accessKeyId === undefined || secretAccessKey === undefined)
    throw new Failure('invalid', 'REELGATE_STORAGE_URL needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: set both.')
  const credentials: Credentials = { accessKeyId, secretAccessKey, sessionToken }
  return { ...address, credentials }
}

/** s3://BUCKET/PREFIX?endpoint=URL&region=REGION; undefined: it is no such address. */
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
