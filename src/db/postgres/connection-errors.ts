import pg from 'pg'
import { Failure } from '../../errors.ts'
import { errorCode } from '../write.ts'
import { toPublicError } from './failures.ts'

/** Without user and password. */
export function redactedUrl(url: string): string {
  const { host, pathname } = new URL(url)
  return `postgres://${host}${pathname}`
}

/** @throws Failure `invalid` for an address that no client can be made with, such as one with a certificate that is not there */
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
    `Another Reelgate server works with the database ${redactedUrl(url)}. Stop it first, or set REELGATE_DATABASE_URL to another.`,
  )
}

export function isDatabaseInUse(error: unknown): error is Error & { cause: Failure } {
  return error instanceof Error && error.cause instanceof Failure
}

/** Why a database cannot be opened, by what it or the network says. */
const WRONG: Readonly<Record<string, string>> = {
  '28P01': 'the password is wrong',
  'no password': 'it asks for a password',
  '28000': 'it does not let this user in',
  '3D000': 'there is no such database',
  ENOTFOUND: 'its host name is not known',
  certificate: 'its certificate is not trusted (sslrootcert=FILE names its authority)',
  'no TLS': 'it takes no encrypted connections',
}
/** The same, where waiting may help. */
const NOT_YET: Readonly<Record<string, string>> = {
  '0A000': 'it is a standby, which takes no changes',
  25006: 'it is a standby, which takes no changes',
  '57P01': 'it is starting up or shutting down',
  '57P03': 'it is starting up or shutting down',
  53300: 'it has no connection left',
}

export function isTransient(error: unknown): boolean {
  return !(reasonOf(error) in WRONG)
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return ''
  if (error.message.includes('client password must be a string')) return 'no password'
  if (error.message.includes('does not support SSL')) return 'no TLS'
  const code = errorCode(error)
  if (/CERT|UNABLE_TO_(GET|VERIFY)/.test(code)) return 'certificate'
  return code || reasonOf(error.cause)
}

export function unreachable(url: string, error: unknown): Failure {
  if (isDatabaseInUse(error)) return error.cause
  return new Failure(
    'unavailable',
    `The database ${redactedUrl(url)} cannot be opened: ${describeOutage(error)}. Correct REELGATE_DATABASE_URL, or start PostgreSQL.`,
    { cause: error },
  )
}

/** In words that follow a colon. */
export function describeOutage(error: unknown): string {
  if (isDatabaseInUse(error)) return error.cause.message
  return { ...WRONG, ...NOT_YET }[reasonOf(error)] ?? 'it does not answer'
}

/** Why a database that can be reached is of no use, by what it says. */
const UNFIT: Readonly<Record<string, string>> = {
  42501: 'its user may not make tables there. Make that user the owner of the database.',
  '58P01': 'this PostgreSQL lacks the extension pg_trgm. Install its contrib modules.',
  '0A000': 'this PostgreSQL lacks the extension pg_trgm. Install its contrib modules.',
  '42P05': 'a pooler gives our connections to others meanwhile. PgBouncer needs pool_mode = session.',
  26000: 'a pooler gives our connections to others meanwhile. PgBouncer needs pool_mode = session.',
}

export function unusable(url: string, error: unknown): unknown {
  const why = UNFIT[reasonOf(error)]
  return why === undefined
    ? toPublicError(error)
    : new Failure('unavailable', `The database ${redactedUrl(url)} cannot be used: ${why}`, { cause: error })
}
