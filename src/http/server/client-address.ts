import { BlockList, isIP, type Socket } from 'node:net'
import type { FastifyRequest } from 'fastify'
import { parseIpAddress } from '../../net/ip.ts'

/** The address that a request comes from. */
export type AddressOf = (request: FastifyRequest) => string

/**
 * Trusts the configured proxies alone. In `X-Forwarded-For` the right-most address that is not a proxy's counts: each proxy appends the
 * address it saw, and everything to the left of it comes from the client. No other header is read.
 */
export function clientAddresses(isProxy: (address: string) => boolean): AddressOf {
  return (request) => {
    let address = getPeerAddress(request.raw.socket)
    if (!isProxy(address)) return address
    const seen = request.headers['x-forwarded-for']?.toString().split(',') ?? []
    while (isProxy(address)) {
      const before = parseIpAddress(seen.pop()?.trim() ?? '')
      if (before === undefined) break // nothing left, or a proxy that appended nothing: its own address counts
      address = before
    }
    return address
  }
}

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

/** The other end of a connection. */
export function getPeerAddress({ remoteAddress: peer = '' }: Socket): string {
  return peer.includes(':') ? (parseIpAddress(peer) ?? peer) : peer
}
