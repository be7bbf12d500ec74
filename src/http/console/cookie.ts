import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { NewSignIn } from '../../users/sign-in.ts'
import { isLoopbackHost } from '../server/from-this-machine.ts'
import type { Scheme } from './origin.ts'

/** The prefix binds it to this host and to https: neither another host of the domain nor a network can set it. */
const PREFIXES = { https: '__Host-reelgate-console', loopback: 'reelgate-console' } as const satisfies Record<Scheme, string>
const ID_LENGTH = 8

type CookieDeps = { publicUrl(): string }

/**
 * The cookie's name contains a hash of the public URL: installations below one host, and on loopback those at different ports, share
 * their cookies, and must not replace each other's.
 */
function signInCookieName(scheme: Scheme, publicUrl: string): string {
  return `${PREFIXES[scheme]}-${hash('sha256', publicUrl, 'hex').slice(0, ID_LENGTH)}`
}

/** The name where the console is opened at the public URL. */
export function usualCookieName(publicUrl: string): string {
  return signInCookieName(publicUrl.startsWith('https:') ? 'https' : 'loopback', publicUrl)
}

/** The token of the sign-in cookie. That of loopback counts on loopback alone, because a network could have set it. */
export function readSignInToken({ publicUrl }: CookieDeps, { headers }: FastifyRequest): string | undefined {
  const cookies = new Map((headers.cookie ?? '').split(';').map((pair) => splitOnce(pair.trim())))
  const find = (scheme: Scheme) => cookies.get(signInCookieName(scheme, publicUrl()))
  return find('https') ?? (isLoopbackHost(headers.host ?? '') ? find('loopback') : undefined)
}

function splitOnce(pair: string): [string, string] {
  const at = pair.indexOf('=')
  return at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)]
}

type CookieReply = CookieDeps & { reply: FastifyReply }

export function setSignInCookie(
  { reply, publicUrl }: CookieReply,
  scheme: Scheme,
  { token, expiresAtS }: NewSignIn,
  nowS: number,
): FastifyReply {
  return reply.header('Set-Cookie', cookie(scheme, publicUrl(), token, expiresAtS - nowS))
}

/** Both, since nothing is known of the page that has sent it. */
export function clearSignInCookies({ reply, publicUrl }: CookieReply): FastifyReply {
  return reply.header('Set-Cookie', [cookie('https', publicUrl(), '', 0), cookie('loopback', publicUrl(), '', 0)])
}

/** `Strict`: sent with no request that another site causes. Never readable by a script. */
function cookie(scheme: Scheme, publicUrl: string, token: string, maxAgeS: number): string {
  const secure = scheme === 'https' ? '; Secure' : ''
  return `${signInCookieName(scheme, publicUrl)}=${token}; Path=/; Max-Age=${maxAgeS}; HttpOnly; SameSite=Strict${secure}`
}
