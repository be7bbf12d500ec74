import type { FastifyRequest } from 'fastify'
import type { ApiKeyHolder, Permission } from '../../accounts/permission.ts'
import { Failure } from '../../errors.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the key must be allowed to do. A route of the interface without it does not register. */
    permission?: Permission
  }
  interface FastifyRequest {
    holder?: ApiKeyHolder
  }
}

/** @throws Failure `unauthenticated` without a header; `invalid` for one not of the one form, or for two */
export function readApiKey(request: FastifyRequest): string {
  const [header, ...others] = request.raw.headersDistinct.authorization ?? []
  if (header === undefined)
    throw new Failure('unauthenticated', 'The Authorization header is missing. Send "Authorization: Apisecret <API secret>".')
  const [, secret] = /^Apisecret ([!-~]+)$/i.exec(header) ?? []
  if (others.length > 0 || !secret) throw new Failure('invalid', 'Bad formatting of Authorization header')
  return secret
}

/** The holder of the key that the request carries. */
export function authenticateRequest(request: FastifyRequest): ApiKeyHolder {
  if (!request.holder) throw new Error('a route was reached without a key')
  return request.holder
}
