import { type AddressInfo, isIP } from 'node:net'
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
  try {
    await app.listen({ host, port, backlog: BACKLOG })
  } catch (cause) {
    throw listenFailure({ host, port, ...LISTEN_VARIABLES }, cause)
  }
  return listenUrl(host, (app.server.address() as AddressInfo).port)
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
