import { BlockList, isIP } from 'node:net'

// What IANA's registries of special-purpose addresses keep from the public internet. The ways to wrap an IPv4 address in IPv6
// (6to4, Teredo, NAT64) are refused as a whole: a gateway would translate them to addresses to which this machine must not connect.
const NOT_PUBLIC_V4 = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24'],
  ...['224.0.0.0/4', '240.0.0.0/4'],
]
/** All of public IPv6. Loopback, `::ffff:…`, NAT64, unique local, link-local and multicast lie outside. */
const PUBLIC_V6 = '2000::/3'
const NOT_PUBLIC_V6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']

const publicV6 = createBlockList([PUBLIC_V6])
const notPublic = createBlockList([...NOT_PUBLIC_V4, ...NOT_PUBLIC_V6])

/** Whether an address, as text, is one of the public internet. What is not an address is not. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 4) return !notPublic.check(address, 'ipv4')
  return family === 6 && publicV6.check(address, 'ipv6') && !notPublic.check(address, 'ipv6')
}

/** @param ranges such as `10.0.0.0/8`; known to be well formed */
function createBlockList(ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) addIpRange(list, range)
  return list
}

/** False: the text is not a range. */
export function addIpRange(list: BlockList, range: string): boolean {
  const [, network = '', bits = ''] = /^(.+)\/(\d{1,3})$/.exec(range) ?? []
  const family = isIP(network)
  if (family === 0 || Number(bits) > (family === 4 ? 32 : 128)) return false
  list.addSubnet(network, Number(bits), family === 4 ? 'ipv4' : 'ipv6')
  return true
}

export function isInBlockList(list: BlockList, address: string): boolean {
  const family = isIP(address)
  return family !== 0 && list.check(address, family === 4 ? 'ipv4' : 'ipv6')
}
