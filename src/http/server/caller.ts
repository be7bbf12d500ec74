import type { FastifyRequest } from 'fastify'
import type { Caller, Permission } from '../../accounts/permission.ts'
import { Failure } from '../../errors.ts'
import type { TokenHolder, Uploader } from '../../ingest/upload-token.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the caller must be allowed to do. A route of the interface with neither this nor `isPublic` does not register. */
    permission?: Permission
    /** Only for people who administrate the installation. */
    isForAdministrators?: true
    /** The key may also be sent as `Bearer`, for clients that know no other form; so may an upload token. */
    acceptsBearer?: true
    /** Available without authentication. */
    isPublic?: true
  }
  interface FastifyRequest {
    holder?: Caller
    /** Who sends an upload token, instead of a holder. */
    tokenHolder?: TokenHolder
  }
}

/** Finds who sends a request: by its key below `/api`, by its cookie below `/console/api`. @throws Failure */
export type FindCaller = (request: FastifyRequest) => Promise<Caller>

/** @throws Failure `unauthenticated` without a header; `invalid` for one not of the one form, or for two */
export function readApiKey(request: FastifyRequest): string {
  const [header, ...others] = request.raw.headersDistinct.authorization ?? []
  if (header === undefined)
    throw new Failure('unauthenticated', 'The Authorization header is missing. Send "Authorization: Apisecret <API secret>".')
  const { acceptsBearer } = request.routeOptions.config
  const [, secret] = (acceptsBearer ? /^(?:Apisecret|Bearer) ([!-~]+)$/i : /^Apisecret ([!-~]+)$/i).exec(header) ?? []
  if (others.length > 0 || !secret) throw new Failure('invalid', 'Bad formatting of Authorization header')
  return secret
}

/** The holder of the key that the request carries, or the person who is signed in. */
export function authenticateRequest(request: FastifyRequest): Caller {
  if (!request.holder) throw new Error('a route was reached without authentication')
  return request.holder
}

/** Who sends a request to a route that accepts upload tokens. */
export function uploaderOf(request: FastifyRequest): Uploader {
  return request.tokenHolder ?? authenticateRequest(request)
}

/** Whose account a change concerns, and who makes it. */
export function changedBy(request: FastifyRequest): { accountId: string; by: Caller } {
  const by = authenticateRequest(request)
  return { accountId: by.accountId, by }
}
