import { mkdir } from 'node:fs/promises'
import { Writable } from 'node:stream'
import { onTestFinished } from 'vitest'
import { openLog } from '../src/cli/log.ts'
import { welcomeText } from '../src/cli/welcome.ts'
import { type Config, readConfig } from '../src/config/config.ts'
import { openSandbox, type Sandbox } from '../src/sandbox/bubblewrap.ts'
import { startServer } from '../src/server.ts'
import { makeLocation } from './installation-folder.ts'
import { DATABASE } from './postgres.ts'
import * as apart from './reelgate.ts'

/** A server in the test's own process: what is tested is its HTTP, not how it starts, ends or is killed. */
export type Reelgate = Omit<apart.Reelgate, 'pid' | 'kill'>
export type StartOptions = Omit<apart.StartOptions, 'wrapper' | 'main'>

/** Shared by the servers of this process that look for programs in the same folders: opening a sandbox starts ffmpeg. */
const sandboxes = new Map<string, Promise<Sandbox>>()

function getSandbox(config: Config): Promise<Sandbox> {
  const key = [config.sandbox, ...config.toolFolders].join(':')
  const sandbox = sandboxes.get(key) ?? openSandbox(config)
  sandboxes.set(key, sandbox)
  return sandbox
}

/** Starts a server for this test; it is stopped and its folder removed when the test has finished. */
export async function startReelgate(options: StartOptions = {}): Promise<Reelgate> {
  const reelgate = await startSharedReelgate(options)
  onTestFinished(() => reelgate.remove())
  return reelgate
}

/** For a file whose tests share one server: the caller removes it in `afterAll`. */
export async function startSharedReelgate(options: StartOptions = {}): Promise<Reelgate & { remove(): Promise<void> }> {
  // A test that reads rows of PostgreSQL blocks its thread meanwhile, and with it this server's transactions.
  if ((options.database ?? DATABASE) !== 'sqlite') return apart.startSharedReelgate(options)
  const from = await apart.originOf(options)
  const location = options.location ?? (await makeLocation({ ...options, copyOf: from }))
  await mkdir(location.dataDir, { recursive: true, mode: 0o700 })
  const env = { ...apart.serverEnvironment(location, options.env) }
  let output = ''
  const log = new Writable({
    write(line, _encoding, written) {
      output += line
      written()
    },
  })

  async function start(port: string) {
    output = ''
    const config = readConfig({ ...env, PORT: port })
    const server = await startServer(config, openLog(config.logLevel, log), { sandbox: getSandbox(config) })
    output += welcomeText(config, server)
    return server
  }

  let server = await start(env.PORT ?? '0')
  const { url, firstStart } = server
  const reelgate = {
    ...apart.handlesOf(location, env, url, from?.owner.apiKey ?? firstStart?.account?.apiKey ?? ''),
    videoId: from?.videoId ?? '',
    output: () => output,
    async stop() {
      await server.stop()
      return 0
    },
    async restart() {
      server = await start(new URL(url).port)
    },
    async remove() {
      await server.stop()
      await location.remove()
    },
  }
  await apart.setTitle(reelgate, options.title)
  return reelgate
}
