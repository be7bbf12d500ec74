import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { type AddressInfo, createServer, isIP, type Server } from 'node:net'
import type { Config } from '../../config/config.ts'
import { LISTEN_VARIABLES, listenFailure } from '../../net/listen-failure.ts'
import type { App } from '../wire/app-type.ts'

/** How long responses in flight may take at a stop before their connections are closed. */
const STOP_GRACE_MS = 6_000

/** Connections that wait to be accepted: a class of viewers opens its pages in the same second. Linux allows 4096 unless it is set otherwise. */
const BACKLOG = 4096

/**
 * Starts to accept connections.
 * @returns the URL for clients on this machine
 * @throws Failure `unavailable` when the port is taken or the address is not one of this machine
 */
export async function listen(app: App, { host, port }: Pick<Config, 'host' | 'port'>): Promise<string> {
  const [first = host, ...others] = host === 'localhost' ? await listAddresses(host) : [host]
  const forwarders = others.map(() => createForwarder(app))
  try {
    await app.listen({ host: first, port, backlog: BACKLOG })
  } catch (cause) {
    throw listenFailure({ host, port, ...LISTEN_VARIABLES }, cause)
  }
  const address = app.server.address() as AddressInfo
  for (const [index, forwarder] of forwarders.entries()) {
    const listening = once(forwarder.listen({ host: others[index], port: address.port, backlog: BACKLOG }), 'listening')
    await listening.catch(() => undefined) // such as `::1` without IPv6
  }
  return listenUrl(host, address.port)
}

async function listAddresses(host: string): Promise<string[]> {
  const found = await lookup(host, { all: true, order: 'ipv4first' }).catch(() => [])
  return [...new Set(found.map(({ address }) => address))]
}

/**
 * Hands the connections of another address to the server. Fastify would open a second server for it, to which nothing applies that is
 * attached to the first: the limits of connections (threat U18), the order of requests (F-100), the answer to what is not HTTP.
 */
function createForwarder(app: App): Server {
  const forwarder = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => app.server.emit('connection', socket))
  const closed = once(forwarder, 'close')
  app.addHook('preClose', (done) => {
    forwarder.close()
    done() // streams of events end after this
  })
  app.addHook('onClose', async () => void (await closed))
  return forwarder
}

/** The URL that a server listening on `host:port` has for clients on this machine. */
export function listenUrl(host: string, port: number): string {
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `http://${isIP(reachable) === 6 ? `[${reachable}]` : reachable}:${port}`
}

/** Stops accepting connections and lets responses in flight finish, within `STOP_GRACE_MS`. */
export async function closeApp(app: App): Promise<void> {
  const forceClose = setTimeout(() => app.server.closeAllConnections(), STOP_GRACE_MS)
  await app.close()
  clearTimeout(forceClose)
}
