import pg from 'pg'
import { errorCode, Failure } from '../../errors.ts'
import { toPublicError } from './failures.ts'

/** Without user and password. */
export function redactedUrl(url: string): string {
  const { host, pathname } = new URL(url)
  return `postgres://${host}${pathname}`
}

/** @throws Failure `invalid` for an address that no client accepts, such as one with a missing certificate file */
export function assertValidUrl(url: string): void {
  try {
    new pg.Client({ connectionString: url })
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : 'it cannot be read'
    throw new Failure('invalid', `The address of the database ${redactedUrl(url)} cannot be used: ${why}. Correct it.`, { cause })
  }
}

export function databaseInUse(url: string): Failure {
  return new Failure(
    'unavailable',
    `Another Reelgate server uses the database ${redactedUrl(url)}. Stop it first, or set REELGATE_DATABASE_URL to another database. Several servers may share one where the files of videos are in a bucket (REELGATE_STORAGE_URL).`,
  )
}

export function isDatabaseInUse(error: unknown): error is Error & { cause: Failure } {
  return error instanceof Error && error.cause instanceof Failure
}

/** Why a database cannot be opened, by the error code; waiting does not help. */
const PERMANENT: Readonly<Record<string, string>> = {
  '28P01': 'the password is wrong',
  'no password': 'it requires a password',
  '28000': 'it rejects this user',
  '3D000': 'there is no such database',
  ENOTFOUND: 'its host name is not known',
  certificate: 'its certificate is not trusted (sslrootcert=FILE names its authority)',
  'no TLS': 'it does not support encrypted connections',
}
/** The same, where waiting may help. */
const TRANSIENT: Readonly<Record<string, string>> = {
  '0A000': 'it is a standby, which rejects changes',
  25006: 'it is a standby, which rejects changes',
  '57P01': 'it is starting up or shutting down',
  '57P03': 'it is starting up or shutting down',
  53300: 'it has no connections left',
}

export function isTransient(error: unknown): boolean {
  return !(errorReason(error) in PERMANENT)
}

/** A key of the tables here: an error code, or a word for an error that has none. */
function errorReason(error: unknown): string {
  if (!(error instanceof Error)) return ''
  if (error.message.includes('client password must be a string')) return 'no password'
  if (error.message.includes('does not support SSL')) return 'no TLS'
  const code = errorCode(error)
  if (/CERT|UNABLE_TO_(GET|VERIFY)/.test(code)) return 'certificate'
  return code || errorReason(error.cause)
}

export function unreachable(url: string, error: unknown): Failure {
  if (isDatabaseInUse(error)) return error.cause
  return new Failure(
    'unavailable',
    `The database ${redactedUrl(url)} cannot be opened: ${describeOutage(error)}. Correct REELGATE_DATABASE_URL, or start PostgreSQL.`,
    { cause: error },
  )
}

/** A phrase to follow a colon. */
export function describeOutage(error: unknown): string {
  if (isDatabaseInUse(error)) return error.cause.message
  return { ...PERMANENT, ...TRANSIENT }[errorReason(error)] ?? 'it does not answer'
}

const SHARED_SESSION = 'a pooler shares our connections with other clients. PgBouncer needs pool_mode = session.'

/** Why a database that can be reached cannot be used, by the error code. */
const UNSUPPORTED: Readonly<Record<string, string>> = {
  42501: 'its user may not create tables there. Make that user the owner of the database.',
  '58P01': 'this PostgreSQL lacks the extension pg_trgm. Install its contrib modules.',
  '0A000': 'this PostgreSQL lacks the extension pg_trgm. Install its contrib modules.',
  '42P05': SHARED_SESSION,
  26000: SHARED_SESSION,
}

export function unusable(url: string, error: unknown): unknown {
  const reason = UNSUPPORTED[errorReason(error)]
  return reason === undefined ? toPublicError(error) : cannotBeUsed(url, reason, error)
}

export function sharedSession(url: string): Failure {
  return cannotBeUsed(url, SHARED_SESSION)
}

function cannotBeUsed(url: string, reason: string, cause?: unknown): Failure {
  return new Failure('unavailable', `The database ${redactedUrl(url)} cannot be used: ${reason}`, { cause })
}
