import type { AddressInfo } from 'node:net'
import type { Config } from '../../config.ts'
import { Failure } from '../../errors.ts'
import type { App } from './app.ts'

/** In-flight answers get so long at a stop; then their connections are closed. */
const STOP_GRACE_MS = 6_000

/**
 * Begins to answer.
 * @returns the port
 * @throws Failure `unavailable` when the port is taken or the address is not one of this machine
 */
export async function listen(app: App, { host, port }: Pick<Config, 'host' | 'port'>): Promise<number> {
  try {
    await app.listen({ host, port })
  } catch (cause) {
    const isTaken = cause instanceof Error && 'code' in cause && cause.code === 'EADDRINUSE'
    const sentence = isTaken
      ? `Port ${port} is in use by another program. Stop it, or set PORT to another one.`
      : `Reelgate cannot listen on ${host}:${port}. Set HOST and PORT to an address of this machine.`
    throw new Failure('unavailable', sentence, { cause })
  }
  return (app.server.address() as AddressInfo).port
}

/** Stops accepting and lets answers finish, within bounds. */
export async function closeApp(app: App): Promise<void> {
  const impatience = setTimeout(() => app.server.closeAllConnections(), STOP_GRACE_MS)
  await app.close()
  clearTimeout(impatience)
}
