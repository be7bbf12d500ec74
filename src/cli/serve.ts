import { flushCompileCache } from 'node:module'
import { setFlagsFromString } from 'node:v8'
import type { Logger } from 'pino'
import { readConfig } from '../config/config.ts'
import { listUnknownVariables } from '../config/environment.ts'
import { Failure, hostFailure } from '../errors.ts'
import { openLog } from './log.ts'
import { welcomeText } from './welcome.ts'

/** Less than service managers wait before they kill; the slowest step, finishing responses in flight, takes up to 6 s. */
const MAX_STOP_MS = 9_000

/** Runs the server until a signal stops it. */
export async function serve(): Promise<void> {
  const config = readConfig()
  const log = openLog(config.logLevel)
  for (const name of listUnknownVariables()) log.warn(`config: unknown variable ${name} ignored`)
  if (!config.limits) log.warn('rate limits: off (REELGATE_LIMITS); use this for measurements only')
  // Memory that only the start needs would be kept for good if the heap grew for it.
  setFlagsFromString('--semi-space-growth-factor=1')
  // Imported here, so that other commands start without the server's modules. ffmpeg is tried while they load.
  const { openSandbox } = await import('../sandbox/bubblewrap.ts')
  const sandbox = openSandbox(config)
  sandbox.catch(() => undefined) // startServer throws it, after errors of the database
  const { startServer } = await import('../server.ts')
  const stopped = waitForStopSignal() // before the start: a caller that reads its last line may stop it immediately
  let server = await startServer(config, log, { sandbox }).catch((error) => {
    throw startFailure(error, log)
  })
  setFlagsFromString('--semi-space-growth-factor=2')
  flushCompileCache() // Node does it only when the process ends in good order
  process.stdout.write(welcomeText(config, server))
  if (server.sandboxAdvice) log.warn(server.sandboxAdvice.effect)
  const port = Number(new URL(server.url).port)
  while (await Promise.race([stopped.then(() => false), server.outdated.then(() => true)])) {
    await server.stop()
    server = await startServer({ ...config, port }, log, { sandbox })
  }
  // A database that does not answer must not delay the stop: what was acknowledged is durable already.
  setTimeout(() => process.exit(0), MAX_STOP_MS).unref()
  await server.stop()
}

/** An operator gets a sentence; what only a developer can use goes to the log. */
function startFailure(error: unknown, log: Logger): Failure {
  const known = error instanceof Failure ? error : hostFailure(error)
  if (known) return known
  log.fatal({ err: error }, 'start: failed')
  const reason = error instanceof Error ? error.message : String(error)
  return new Failure('unavailable', `Reelgate cannot start: ${reason.split('\n')[0]}. See what reelgate doctor says.`, {
    cause: error,
  })
}

function waitForStopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve())
  })
}
