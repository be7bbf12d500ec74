import { isIP } from 'node:net'

/**
 * The rate limit key of an address: an IPv4 address itself, also when mapped into IPv6; the /64 of an IPv6 address, since
 * one subscriber usually has all of its 2^64 addresses.
 */
export function ipRateLimitKey(address: string): string {
  if (!address.includes(':')) return address
  const groups = ipv6Groups(address.split('%')[0] ?? '')
  const mapped = mappedIpv4(groups)
  if (mapped) return mapped
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')}::/64`
}

/** The network around the /64 of an IPv6 address: its /48, which one customer of a provider often has whole. Undefined for IPv4. */
export function ipNetworkKey(subject: string): string | undefined {
  return subject.endsWith('::/64') ? `${subject.split(':', 3).join(':')}::/48` : undefined
}

/** Where an address is, the narrowest first: its rate limit key, and on IPv6 the network around that. */
export function ipScopes(address: string): string[] {
  const subject = ipRateLimitKey(address)
  const network = ipNetworkKey(subject)
  return network === undefined ? [subject] : [subject, network]
}

/** The network of an address, within which one device often changes its address: the /24 of IPv4, the /48 of IPv6. */
export function addressPrefix(address: string): string {
  const subject = ipRateLimitKey(address)
  return ipNetworkKey(subject) ?? `${subject.split('.', 3).join('.')}.0/24`
}

/** The address in a text that a proxy may have written with brackets or a port. Undefined: there is none. */
export function parseIpAddress(text: string): string | undefined {
  const bare = /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text
  if (isIP(bare) === 0) return undefined
  return bare.includes(':') ? (mappedIpv4(ipv6Groups(bare.split('%')[0] ?? '')) ?? bare) : bare
}

/** The 16-bit numbers of an address: two of IPv4, eight of IPv6, none of what is no address. */
export function parseIpGroups(address: string): number[] {
  const family = isIP(address)
  if (family === 6) return ipv6Groups(address.split('%')[0] ?? '')
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number)
  return family === 4 ? [(a << 8) | b, (c << 8) | d] : []
}

/** The eight numbers of a well formed IPv6 address. */
function ipv6Groups(address: string): number[] {
  const [, head = address, dotted] = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(address) ?? []
  const [a = 0, b = 0, c = 0, d = 0] = dotted?.split('.').map(Number) ?? []
  const text = dotted ? `${head}${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}` : address
  const [left = [], right] = text.split('::').map((side) => side.split(':').filter((group) => group !== ''))
  const zeros = right ? Array<string>(8 - left.length - right.length).fill('0') : []
  return [...left, ...zeros, ...(right ?? [])].map((group) => Number.parseInt(group, 16))
}

function mappedIpv4(groups: readonly number[]): string | undefined {
  const [high = 0, low = 0] = groups.slice(6)
  if (groups[5] !== 0xffff || groups.slice(0, 5).some((group) => group !== 0)) return undefined
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.')
}
