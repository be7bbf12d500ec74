import { BlockList, isIP } from 'node:net'
import { isPublicAddress } from './ip-ranges.ts'

/** Whether an address is one of the configured proxies. */
export function proxiesAmong(trustedProxies: readonly string[]): (address: string) => boolean {
  const proxies = new BlockList()
  for (const proxy of trustedProxies) {
    const [address = '', bits] = proxy.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (bits === undefined) proxies.addAddress(address, family)
    else proxies.addSubnet(address, Number(bits), family)
  }
  return (address) => trustedProxies.length > 0 && proxies.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

/**
 * Whether an address that sends `X-Forwarded-For` looks like a proxy that was left out of the configuration: where some are trusted, any
 * other; where none is, one of this machine or a private network. From elsewhere on the internet anyone may send the header.
 */
export function unknownProxiesAmong(trustedProxies: readonly string[]): (address: string) => boolean {
  const isProxy = proxiesAmong(trustedProxies)
  return (address) => isIP(address) !== 0 && (trustedProxies.length > 0 ? !isProxy(address) : !isPublicAddress(address))
}
