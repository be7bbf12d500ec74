import type { Logger } from 'pino'
import type { Config } from './config/config.ts'
import { Failure } from './errors.ts'
import { CONSOLE_FOLDER, isConsoleBuilt } from './http/console/files.ts'
import { type FirstStart, prepareFirstStart } from './installation/first-start.ts'
import { hasKeyFile } from './installation/master-key.ts'
import { type Foundation, type Overrides, openFoundation, type Run } from './installation/open-foundation.ts'
import { type SandboxAdvice, sandboxAdvice } from './sandbox/bubblewrap.ts'
import { consoleUrl } from './users/sign-in-link.ts'
import { canSignIn } from './users/user.ts'

/** A server that answers. */
export type ReelgateServer = {
  url: string
  firstStart: FirstStart | undefined
  /** Where people open the console, and whether one of them can sign in. Undefined: it was not built. */
  consoleAccess: { url: string; canSignIn: boolean } | undefined
  /** Where the demo video will play that this start makes. */
  demoUrl: string | undefined
  /** Undefined: bubblewrap runs. */
  sandboxAdvice: SandboxAdvice | undefined
  /** Resolves when another server had the database and has released it: what this one has in memory is out of date. Start a new one. */
  outdated: Promise<void>
  /** Stops accepting calls, finishes those in flight, gives chunks back; at most 10 s. */
  stop(): Promise<void>
}

/**
 * Starts all processes of a server in this one.
 * @throws Failure with one sentence that says what to do
 */
export async function startServer(config: Config, log: Logger, overrides: Overrides = {}): Promise<ReelgateServer> {
  const opened = new AsyncDisposableStack() // closed in reverse order, each part whatever becomes of the others
  const stopping = new AbortController()
  let drain = async () => {}
  async function stop(): Promise<void> {
    await drain()
    stopping.abort(new Failure('unavailable', 'The server is stopping. Its next start continues what this one was doing.'))
    await opened.disposeAsync()
  }
  try {
    const { servers, ...started } = await startProcesses({ config, log, opened, signal: stopping.signal }, overrides)
    drain = servers.drain
    return { ...started, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Each is loaded when it is started, while the foundation opens. */
async function startProcesses(
  run: Run,
  overrides: Overrides,
): Promise<Omit<ReelgateServer, 'stop'> & Pick<Foundation, 'servers'>> {
  const loading = Promise.all([
    import('./processes/encoder.ts'),
    import('./processes/web.ts'),
    import('./processes/maintenance.ts'),
  ])
  const foundation = await openFoundation(run, overrides)
  const { config, opened, db, signals, servers, sandbox, ownership } = foundation
  const [{ startEncoder }, { startWeb }, { startMaintenance }] = await loading
  const handOut = await startEncoder(foundation)
  const { url, publicUrl, demo } = await startWeb(foundation, handOut)
  await startMaintenance(foundation)

  const hasConsole = isConsoleBuilt(CONSOLE_FOLDER)
  const has = { hasKeyFile: hasKeyFile(config), hasDemo: demo !== undefined, hasConsole }
  const firstStart = await prepareFirstStart(foundation, has)
  for (const work of ['encode', 'import', 'mp4', 'captions', 'transcription', 'storyboard', 'dub'] as const)
    void signals.send('work-queued', work) // what earlier runs left
  const demoUrl = (await demo?.begin()) ? `${url}/demo` : undefined
  if (demo) opened.defer(() => demo.stop())
  await servers.started()
  return {
    url,
    servers,
    firstStart,
    consoleAccess: hasConsole ? { url: consoleUrl(publicUrl()), canSignIn: await canSignIn({ db }) } : undefined,
    demoUrl,
    sandboxAdvice: sandboxAdvice(sandbox),
    outdated: ownership.released,
  }
}
