import type { Socket } from 'node:net'
import type { FastifyRequest } from 'fastify'
import { parseIpAddress } from '../../net/ip.ts'
import type { App } from '../wire/app-type.ts'

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

/** Calls `report` for each request that a proxy has forwarded that is not trusted, with its address. */
export function reportUnknownProxies(
  app: App,
  isUnknownProxy: (address: string) => boolean,
  report: (address: string) => void,
): void {
  app.addHook('onRequest', ({ headers, raw }, _reply, done) => {
    const peer = headers['x-forwarded-for'] === undefined ? '' : getPeerAddress(raw.socket)
    if (peer !== '' && isUnknownProxy(peer)) report(peer)
    done()
  })
}

/** The other end of a connection. */
export function getPeerAddress({ remoteAddress: peer = '' }: Socket): string {
  return peer.includes(':') ? (parseIpAddress(peer) ?? peer) : peer
}
