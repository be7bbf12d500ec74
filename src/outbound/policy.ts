import { lookup } from 'node:dns'
import { BlockList, isIP } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { domainToUnicode } from 'node:url'
import { Failure } from '../errors.ts'
import { addIpRange, isInBlockList, isPublicAddress } from '../net/ip-ranges.ts'
import { createDnsLookup, type DnsLookup } from './dns.ts'

/** Where this installation may send requests, and how it resolves names. */
export type OutboundPolicy = {
  /** `host:port` as an address has them; these may be dialled wherever they are. */
  hosts: ReadonlySet<string>
  ranges: BlockList
  lookUpHost: DnsLookup
}

/**
 * @param allowed entries `HOST:PORT` or `ADDRESS/BITS`, besides the public internet on ports 80 and 443
 * @throws Failure `invalid` that names an entry which is neither
 */
export function createOutboundPolicy(allowed: readonly string[], resolve: typeof lookup = lookup): OutboundPolicy {
  const hosts = new Set<string>()
  const ranges = new BlockList()
  for (const entry of allowed) {
    if (addIpRange(ranges, entry)) continue
    const host = readHost(entry)
    if (!host)
      throw new Failure(
        'invalid',
        `REELGATE_OUTBOUND_ALLOW has "${entry}", which is neither HOST:PORT nor ADDRESS/BITS. Correct it and start again.`,
      )
    hosts.add(host)
  }
  return { hosts, ranges, lookUpHost: createDnsLookup(resolve) }
}

const MAX_ADDRESS_LENGTH = 8192
const MAX_HOST_LENGTH = 253
const MAX_LABEL_LENGTH = 63
const PORTS: Record<string, string> = { 'http:': '80', 'https:': '443' }

/**
 * Parses the URL of an outbound request, and refuses what it shows by itself: scheme, port, credentials, an address or name of this
 * machine. What its name leads to is looked at when it is dialled.
 * @throws Failure `invalid`, in words that carry no query: it may be signed
 */
export function parseOutboundUrl(outbound: OutboundPolicy, text: string): URL {
  if (text.length > MAX_ADDRESS_LENGTH) throw new Failure('invalid', `An address has at most ${MAX_ADDRESS_LENGTH} characters.`)
  const url = URL.parse(text)
  if (!url || !(url.protocol in PORTS))
    throw new Failure('invalid', 'Write a whole address that begins with https:// or http://.')
  const refuse = (why: string) => new Failure('invalid', `${describeUrl(url)} is not allowed: ${why}`)
  if (url.username || url.password) throw refuse('its user name and password would be passed on. Leave them out.')
  const name = readableHost(url)
  if (name.length > MAX_HOST_LENGTH || name.split('.').some((label) => label.length > MAX_LABEL_LENGTH && isIP(name) === 0))
    throw refuse('no host has such a long name.')
  if (/(^|\.)xn--/.test(domainToUnicode(name))) throw refuse('its host name is not well formed.') // what can be decoded is, there
  if (outbound.hosts.has(`${url.hostname}:${effectivePort(url)}`)) return url
  if (!Object.values(PORTS).includes(effectivePort(url)))
    throw refuse(`only ports 80 and 443 are, or what REELGATE_OUTBOUND_ALLOW names.`)
  const isLocal = /(^|\.)localhost\.?$/.test(name) || (isIP(name) !== 0 && !isDialAllowed(outbound, url, name))
  if (isLocal) throw refuse(`it is not on the public internet. REELGATE_OUTBOUND_ALLOW can name it.`)
  return url
}

const LOOK_UP_MS = 2_000

/**
 * Reads an address as `parseOutboundUrl` does, and refuses it, too, where its name leads nowhere that may be dialled now. What cannot
 * be looked up is checked when the request is sent, as all are.
 * @throws Failure `invalid`
 */
export async function assertPublicDestination(outbound: OutboundPolicy, accountId: string, text: string): Promise<URL> {
  const url = parseOutboundUrl(outbound, text)
  const found = outbound.lookUpHost(accountId, readableHost(url)).catch(() => [])
  const addresses = await Promise.race([found, pause(LOOK_UP_MS, [], { ref: false })])
  if (addresses.length > 0 && !addresses.some(({ address }) => isDialAllowed(outbound, url, address)))
    throw new Failure('invalid', `${describeUrl(url)} is not allowed: its host is not on the public internet.`)
  return url
}

/** Whether the connection for `url` may be made to this address. */
export function isDialAllowed(outbound: OutboundPolicy, url: URL, address: string): boolean {
  return (
    outbound.hosts.has(`${url.hostname}:${effectivePort(url)}`) ||
    isPublicAddress(address) ||
    isInBlockList(outbound.ranges, address)
  )
}

/** For sentences and logs: without the query, which may hold a signature. */
export function describeUrl({ origin, pathname }: URL): string {
  return `${origin}${pathname}`.slice(0, 200)
}

/** Without the brackets of an IPv6 address. */
function readableHost({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}

function effectivePort({ protocol, port }: URL): string {
  return port || (PORTS[protocol] ?? '')
}

function readHost(entry: string): string | undefined {
  const [, port = ''] = /:([1-9]\d{0,4})$/.exec(entry) ?? []
  const url = URL.parse(`http://${entry}`)
  if (!url || !port || url.pathname !== '/' || url.search || url.hash || url.username || url.password) return undefined
  return `${url.hostname}:${port}`
}
