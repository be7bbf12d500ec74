import { type ErrorCode, FAILURES } from './error-catalogue.ts'

/** The kinds of error that a caller may see. */
export type FailureKind = Exclude<ErrorCode, 'internal'>

/** An error for the caller: what was expected, what happened, what to do. Everything else that is thrown is a bug. */
export class Failure extends Error {
  readonly kind: FailureKind
  /** When the same may succeed, where that is known. */
  readonly retryAfterS: number | undefined
  constructor(kind: FailureKind, message: string = FAILURES[kind].sentence, options?: ErrorOptions & { retryAfterS?: number }) {
    super(message, options)
    this.kind = kind
    this.retryAfterS = options?.retryAfterS
  }
}

/** The database does not answer. Whatever opened it logs that once; callers that meet this error need not log it again. */
export class DatabaseUnavailable extends Failure {
  constructor(message: string, options?: ErrorOptions) {
    super('unavailable', message, options)
  }
}

/** The files of videos cannot be read or written now, such as those of a disk that is not mounted: nothing is known of any of them. */
export class StorageUnavailable extends Failure {
  constructor(message: string, options?: ErrorOptions & { retryAfterS?: number }) {
    super('unavailable', message, options)
  }
}

/** A file on the disk of this server is missing or changed. Whatever finds it logs that once. */
export class DamagedFile extends Failure {
  constructor(message: string) {
    super('unavailable', message)
  }
}

/** Another server uses the database: this one must return nothing, not even what it has in memory. */
export class DatabaseInUse extends DatabaseUnavailable {
  constructor() {
    super('The database is held by another server: this one rejects all calls. Stop one of the two.')
  }
}

/** The log level of an error: `debug` for a damaged file, the unavailable database and what failed because of it, which are logged once. */
export function logLevelFor<Level extends string>(error: unknown, level: Level): Level | 'debug' {
  const cause = error instanceof Failure ? error.cause : undefined
  const isLogged = (each: unknown) => each instanceof DatabaseUnavailable || each instanceof DamagedFile
  return [error, cause].some(isLogged) ? 'debug' : level
}

/** The same for an id that does not exist, for a deleted video and for another account's. */
export function videoNotFound(): Failure {
  return new Failure('not-found', 'Video not found')
}

const HOST_ERRORS: Readonly<Record<string, string>> = {
  ENOSPC: 'The disk of this server is full. Try again when there is space.',
  EDQUOT: 'The disk quota of this server is used up. Try again when there is space.',
  EROFS: 'The disk of this server cannot be written. Try again when that is corrected.',
  EMFILE: 'This server has too many files open. Try again in a moment.',
  ENFILE: 'This server has too many files open. Try again in a moment.',
  EAGAIN: 'This server is busy. Try again in a moment.',
  ENOMEM: 'This server is short of memory. Try again in a moment.',
}

/** Such as ENOENT; empty when it has none. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

export function isDiskFull(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes(errorCode(error))
}

/** A failure of the whole host, as an error for the caller: the request is valid, and may succeed later. */
export function hostFailure(error: unknown): Failure | undefined {
  if (error instanceof StorageUnavailable) return error
  const sentence = HOST_ERRORS[errorCode(error)]
  return sentence === undefined ? undefined : new Failure('unavailable', sentence, { cause: error })
}

/** Whether an error has nothing to do with the work that met it, and may be gone later. */
export function isHostFailure(error: unknown): boolean {
  return error instanceof Failure ? error.kind === 'unavailable' : hostFailure(error) !== undefined
}
