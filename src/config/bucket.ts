import { Failure } from '../errors.ts'
import { invalid, type Variables } from './environment.ts'

const AWS_ENDPOINT = 'https://s3.{region}.amazonaws.com'
const BUCKET_NAME = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
const PREFIX = /^[\w-][\w.-]*$/

/**
 * The bucket for the files of videos, and who asks it. Undefined: they are in the data folder.
 * @throws Failure `invalid`; no message has a secret
 */
export function readBucket(variables: Variables) {
  const address = variables.REELGATE_STORAGE_URL
  if (address === undefined) return undefined
  const url = URL.canParse(address) ? new URL(address) : undefined
  const known = ['endpoint', 'region']
  if (url?.protocol !== 's3:' || url.username + url.password + url.port + url.hash !== '') throw invalid('REELGATE_STORAGE_URL')
  if ([...url.searchParams.keys()].some((name) => !known.includes(name))) throw invalid('REELGATE_STORAGE_URL')
  const folders = url.pathname.split('/').filter((part) => part !== '')
  if (!BUCKET_NAME.test(url.hostname) || folders.some((folder) => !PREFIX.test(folder))) throw invalid('REELGATE_STORAGE_URL')
  const region = url.searchParams.get('region') ?? variables.AWS_REGION ?? 'us-east-1'
  const endpoint = (url.searchParams.get('endpoint') ?? AWS_ENDPOINT.replace('{region}', region)).replace(/(?<!\/)\/+$/, '')
  if (!/^https?:\/\/[^/?#@\s]+$/.test(endpoint) || !URL.canParse(endpoint)) throw invalid('REELGATE_STORAGE_URL')
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, AWS_SESSION_TOKEN: sessionToken } = variables
  if (accessKeyId === undefined || secretAccessKey === undefined)
    throw new Failure('invalid', 'REELGATE_STORAGE_URL needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: set both.')
  const prefix = folders.map((folder) => `${folder}/`).join('')
  return { endpoint, region, bucket: url.hostname, prefix, credentials: { accessKeyId, secretAccessKey, sessionToken } }
}
