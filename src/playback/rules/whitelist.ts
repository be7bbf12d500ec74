import { domainToASCII, domainToUnicode } from 'node:url'
import { LRUCache } from 'lru-cache'
import type { RE2JS } from 're2js'
import { Failure } from '../../errors.ts'

/**
 * Where a video may be embedded: on a host and its subdomains, or on the hosts that an expression finds a match in. Hosts are in the
 * form of browsers: lower case, punycode, no port. A session's expression also has the host, with its port, on which it was opened.
 */
export type Whitelist = { host: string } | { expression: string; openedOn?: string }

const MAX_LENGTH = 500
/** Host characters with a dot; letters of any script. A port says nothing about a host. */
const HOST = /^\.?((?:[\p{L}\p{M}\p{N}_-]+\.)+[\p{L}\p{M}\p{N}_-]+)\.?(?::\d{1,5})?$/u
const NAME_WITH_PORT = /^([\w-]+):\d{1,5}$/

const NOT_ASCII = /\P{ASCII}/u

/** @throws Failure `invalid` when it can match no host. `checkWhitelist` checks expressions further. */
export function readWhitelist(value: unknown): Whitelist {
  if (typeof value !== 'string') throw new Failure('invalid', 'whitelisthref must be a text: a host, or an expression on a host.')
  const text = withoutQuotes(value).trim()
  if (text.length > MAX_LENGTH) throw new Failure('invalid', `whitelisthref may have at most ${MAX_LENGTH} characters.`)
  if (text.includes('/'))
    throw new Failure('invalid', 'whitelisthref must be a host, without “/”: leave out scheme and path, as in example.org.')
  if (/^\[[\d:.a-f]*\](:\d+)?$/i.test(text))
    throw new Failure('invalid', 'whitelisthref must not be an IPv6 address: browsers cannot allow one.')
  const [, name] = HOST.exec(text) ?? []
  if (name === undefined) return { expression: NAME_WITH_PORT.exec(text)?.[1] ?? text }
  const host = domainToASCII(name)
  if (host === '') throw new Failure('invalid', `whitelisthref: “${name}” cannot be a host.`)
  return { host }
}

/** Some clients send the text as JSON. No host holds a quotation mark. */
function withoutQuotes(text: string): string {
  return /^"(.*)"$/s.exec(text)?.[1] ?? text
}

/** @throws Failure `invalid` when its expression cannot be matched in linear time, or is too large */
export async function checkWhitelist(whitelist: Whitelist): Promise<void> {
  if ('expression' in whitelist) await compile(whitelist.expression)
}

/** Whether a page of this host may embed the video. @param hostname as `new URL(…)` has it */
export async function mayEmbed(whitelist: Whitelist, hostname: string): Promise<boolean> {
  const host = hostname.replace(/\.$/, '')
  if (host === '') return false
  if ('host' in whitelist) return host === whitelist.host || host.endsWith(`.${whitelist.host}`)
  const expression = await compile(whitelist.expression)
  return expression.test(host) || (NOT_ASCII.test(whitelist.expression) && expression.test(domainToUnicode(host)))
}

/** The host of a page's address or origin; '' when it has none. */
function hostOfPage(address: string): string {
  return URL.canParse(address) ? new URL(address).hostname : ''
}

/**
 * Who may frame a player page: everyone, these sources of a `frame-ancestors`; or the page is not shown. `insecure`: to a page of an
 * allowed site that came without TLS, where a browser would show its own broken frame instead of a reason.
 */
export type Framing = 'everyone' | 'refused' | 'insecure' | readonly string[]

/** What the server sees of the page around the player. `isTop`: the browser says that there is none. */
export type Embedding = { referer: string | undefined; isTop: boolean }

export async function findFraming(whitelist: Whitelist, { referer, isTop }: Embedding): Promise<Framing> {
  if (isTop) return 'refused'
  if (referer !== undefined && !(await mayEmbed(whitelist, hostOfPage(referer)))) return 'refused'
  if ('host' in whitelist) return isInsecure(referer) ? 'insecure' : frameAncestors(whitelist.host)
  if (referer !== undefined) return [new URL(referer).origin]
  // A player that is reloaded inside its frame sends no Referer, as none of our pages does.
  const { openedOn } = whitelist
  return openedOn === undefined
    ? 'refused'
    : allowedSchemes(hostOfPage(`http://${openedOn}`)).map((scheme) => `${scheme}://${openedOn}`)
}

function isInsecure(referer: string | undefined): boolean {
  return referer?.startsWith('http:') === true && !allowedSchemes(hostOfPage(referer)).includes('http')
}

/** The player works without TLS on a machine of one's own only. */
const LOOPBACK = /^(127(\.\d{1,3}){3}|(.+\.)?localhost)$/
const IPV4 = /^\d{1,3}(\.\d{1,3}){3}$/

function allowedSchemes(host: string): string[] {
  return LOOPBACK.test(host) ? ['https', 'http'] : ['https']
}

function frameAncestors(host: string): string[] {
  const names = IPV4.test(host) ? [host] : [host, `*.${host}`]
  return allowedSchemes(host).flatMap((scheme) => names.flatMap((name) => [`${scheme}://${name}`, `${scheme}://${name}:*`]))
}

/**
 * Whether the page that contains the player may embed the video.
 * @param ticketHost the embedding host that the server saw when it sent the page; `-`: none
 * @param ancestors the origins around the player, as its browser names them, if it does
 */
export async function mayRedeemHere(whitelist: Whitelist, ticketHost: string, ancestors: readonly string[]): Promise<boolean> {
  const hosts = ticketHost === '-' ? ancestors.map(hostOfPage) : [hostOfPage(`http://${ticketHost}`)]
  if (hosts.length === 0) return 'host' in whitelist // its page was sent with `frame-ancestors`, which the browser has kept to
  const may = await Promise.all(hosts.map((host) => mayEmbed(whitelist, host)))
  return may.every((isAllowed) => isAllowed)
}

/** Steps of a compiled expression: with so many the longest host takes up to 30 ms, once. */
const MAX_STEPS = 1_000
/** An upper bound on what compiling may come to, before it has shown how many steps there are: up to 100 ms. */
const MAX_EXPANDED_LENGTH = 10 * MAX_STEPS
/** By its text: an owner's site sends the same expression with every OTP. */
const compiled = new LRUCache<string, RE2JS>({ max: 200 })

async function compile(expression: string): Promise<RE2JS> {
  const known = compiled.get(expression)
  if (known) return known
  if (expandedLength(expression) > MAX_EXPANDED_LENGTH) throw tooLarge()
  const { RE2JS } = await import('re2js')
  const regExp = compileOrExplain(() => RE2JS.compile(expression, RE2JS.CASE_INSENSITIVE))
  if (regExp.programSize() > MAX_STEPS) throw tooLarge()
  compiled.set(expression, regExp)
  return regExp
}

/** An upper bound on an expression's length once its repetitions are expanded, as compiling does: as if each were nested in all others. */
function expandedLength(expression: string): number {
  const counts = [...expression.matchAll(/\{(\d+)(?:,(\d*))?\}/g)].map(([, min, max = '']) =>
    Math.max(1, Number(min), Number(max)),
  )
  return counts.reduce((length, count) => length * count, expression.length)
}

function tooLarge(): Failure {
  return new Failure(
    'invalid',
    'whitelisthref is too large an expression: repeat less in it, or name a host such as example.org.',
  )
}

function compileOrExplain(make: () => RE2JS): RE2JS {
  try {
    return make()
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.replace(/^error parsing regexp: /, '') : ''
    throw new Failure(
      'invalid',
      `whitelisthref is neither a host such as example.org nor an expression that can be matched in linear time (${why}). Look-around and back-references cannot.`,
      { cause },
    )
  }
}
