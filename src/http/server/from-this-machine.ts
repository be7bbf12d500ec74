import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Config } from '../../config/config.ts'
import { parseIpAddress } from '../../net/ip.ts'
import { listenUrl } from './listen.ts'

/** What proxies and tunnels say of the one they speak for. */
const PROXY_HEADERS =
  /^(forwarded|via|x-forwarded.*|x-original-.*|x-real-ip|x-client-ip|x-cluster-client-ip|true-client-ip|cf-.*|cdn-.*|fastly-.*)$/

/** What of a request says where it comes from. */
type Asking = Pick<IncomingMessage, 'rawHeaders' | 'httpVersion'> & { socket: Pick<Socket, 'remoteAddress'> }

/**
 * Whether a request was made by a program on this machine to this machine: the peer is loopback, no proxy left a trace, and the one
 * Host is a name of loopback, which no page of another site reaches by pointing its own name here. A proxy with its
 * default settings speaks HTTP/1.0.
 */
export function isFromThisMachine({ socket, rawHeaders, httpVersion }: Asking): boolean {
  const peer = parseIpAddress(socket.remoteAddress ?? '') ?? '' // an IPv4 address mapped into IPv6 becomes itself
  if (!isLoopbackHost(peer.includes(':') ? `[${peer}]` : peer)) return false
  const names = rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase())
  if (httpVersion === '1.0' || names.some((name) => PROXY_HEADERS.test(name))) return false
  const hosts = names.flatMap((name, index) => (name === 'host' ? [rawHeaders[2 * index + 1] ?? ''] : []))
  return hosts.length === 1 && isLoopbackHost(hosts[0] ?? '')
}

/** Whether `host` or `host:port` names this machine to itself: `localhost`, `127.…` or `[::1]`. */
export function isLoopbackHost(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i.test(host)
}

/**
 * The demo is for this machine alone. A public address or a trusted proxy means a proxy in front, and its requests look as if they came
 * from this machine unless it adds a header; and where the server does not listen on a loopback address, the demo could not be opened.
 */
export function isDemoAllowed({
  demo,
  publicUrl,
  host,
  trustedProxies,
}: Pick<Config, 'demo' | 'publicUrl' | 'host' | 'trustedProxies'>): boolean {
  const addresses = [listenUrl(host, 80), ...(publicUrl === undefined ? [] : [publicUrl])]
  return demo && trustedProxies.length === 0 && addresses.every((address) => isLoopbackHost(new URL(address).host))
}
