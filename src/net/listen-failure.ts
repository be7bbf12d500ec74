import { createServer } from 'node:net'
import { errorCode, Failure } from '../errors.ts'

/** Where a server listens, and the variables that say so. */
type ListenAddress = { host: string; port: number; hostVariable: string; portVariable: string }

export const LISTEN_VARIABLES = { hostVariable: 'HOST', portVariable: 'PORT' }
export const METRICS_VARIABLES = { hostVariable: 'REELGATE_METRICS_HOST', portVariable: 'REELGATE_METRICS_PORT' }

/** Why a server cannot listen. */
export function listenFailure({ host, port, hostVariable, portVariable }: ListenAddress, cause: unknown): Failure {
  const isTaken = errorCode(cause) === 'EADDRINUSE'
  const sentence = isTaken
    ? `Port ${port} is in use by another program. Stop it, or set ${portVariable} to another one.`
    : `Reelgate cannot listen on ${host}:${port}. Set ${hostVariable} and ${portVariable} to an address of this machine.`
  return new Failure('unavailable', sentence, { cause })
}

/** Listens for a moment. @throws Failure `unavailable` when a server could not listen there */
export async function assertMayListen(address: ListenAddress): Promise<void> {
  const { host, port } = address
  const server = createServer()
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen({ host, port }, resolve)).catch((cause) => {
    throw listenFailure(address, cause)
  })
  await new Promise((resolve) => server.close(resolve))
}
