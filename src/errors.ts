/** The kinds of refusal a caller may be told. `http/` maps each to a status and a body, once per interface. */
export type FailureKind =
  | 'invalid'
  | 'unauthenticated'
  | 'forbidden'
  | 'not-found'
  | 'conflict'
  | 'too-large'
  | 'unsupported'
  | 'unavailable'

/** A refusal the caller may read: what was refused, why, what to do. Everything else that is thrown is a bug. */
export class Failure extends Error {
  readonly kind: FailureKind
  constructor(kind: FailureKind, message: string, options?: ErrorOptions) {
    super(message, options)
    this.kind = kind
  }
}
