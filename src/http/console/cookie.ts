import type { FastifyReply, FastifyRequest } from 'fastify'
import type { NewSignIn } from '../../users/sign-in.ts'
import { isLoopbackHost } from '../demo/from-this-machine.ts'
import type { Scheme } from './origin.ts'

/** The prefix binds it to this host and to https: neither another host of the domain nor a network can set it. */
const NAMES = { https: '__Host-reelgate-console', loopback: 'reelgate-console' } as const satisfies Record<Scheme, string>

/** The token of the sign-in cookie. That of loopback counts on loopback alone, because a network could have set it. */
export function readSignInToken({ headers }: FastifyRequest): string | undefined {
  const cookies = new Map((headers.cookie ?? '').split(';').map((pair) => splitOnce(pair.trim())))
  return cookies.get(NAMES.https) ?? (isLoopbackHost(headers.host ?? '') ? cookies.get(NAMES.loopback) : undefined)
}

function splitOnce(pair: string): [string, string] {
  const at = pair.indexOf('=')
  return at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)]
}

export function setSignInCookie(
  reply: FastifyReply,
  scheme: Scheme,
  { token, expiresAtS }: NewSignIn,
  nowS: number,
): FastifyReply {
  return reply.header('Set-Cookie', cookie(scheme, token, expiresAtS - nowS))
}

/** Both, since nothing is known of the page that has sent it. */
export function clearSignInCookies(reply: FastifyReply): FastifyReply {
  return reply.header('Set-Cookie', [cookie('https', '', 0), cookie('loopback', '', 0)])
}

/** `Strict`: sent with no request that another site causes. Never readable by a script. */
function cookie(scheme: Scheme, token: string, maxAgeS: number): string {
  const secure = scheme === 'https' ? '; Secure' : ''
  return `${NAMES[scheme]}=${token}; Path=/; Max-Age=${maxAgeS}; HttpOnly; SameSite=Strict${secure}`
}
