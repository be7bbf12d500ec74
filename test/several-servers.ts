import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { onTestFinished } from 'vitest'
import { openLog } from '../src/cli/log.ts'
import { readConfig } from '../src/config/config.ts'
import { openSandbox, type Sandbox } from '../src/sandbox/bubblewrap.ts'
import { startServer } from '../src/server.ts'
import { createOwner, type Owner } from './client.ts'
import { type Location, makeLocation } from './installation-folder.ts'
import type { DatabaseOptions } from './postgres.ts'
import { type Reelgate, type StartOptions, serverEnvironment, startReelgate } from './reelgate.ts'

/** One of several servers of an installation, in the test's own process, with a data folder of its own that is empty at its start. */
export type OneOfSeveral = {
  url: string
  dataDir: string
  env: Record<string, string>
  owner: Owner
  output(): string
  /** Resolves when it should start again with nothing in memory. */
  outdated: Promise<void>
  stop(): Promise<void>
}

export type SeveralServers = {
  location: Location
  apiKey: string
  /** @param env of this server alone */
  start(env?: Record<string, string>): Promise<OneOfSeveral>
}

/** Of all servers, as each has it on its machine. */
const KEY = '5a'.repeat(32)

/** Opening one starts ffmpeg. */
let sandbox: Promise<Sandbox> | undefined

/** An installation on PostgreSQL and a bucket, for servers that share it; all are stopped, and it is removed, when the test has finished. */
export async function makeInstallation(options: DatabaseOptions = { database: 'postgres' }): Promise<SeveralServers> {
  const location = await makeLocation({ ...options, storage: 'bucket' })
  const stops: (() => Promise<void>)[] = []
  onTestFinished(async () => {
    await Promise.all(stops.map((stop) => stop()))
    await location.remove()
  })
  const installation: SeveralServers = {
    location,
    apiKey: '',
    async start(env = {}) {
      const folder = await mkdtemp(join(tmpdir(), 'reelgate-one-of-several-'))
      let output = ''
      const lines = new Writable({
        write(line, _encoding, written) {
          output += line
          written()
        },
      })
      const environment: Record<string, string> = {
        ...serverEnvironment(location, { REELGATE_MASTER_KEY: KEY, ...env }),
        REELGATE_DATA: folder,
      }
      const config = readConfig(environment)
      sandbox ??= openSandbox(config)
      const server = await startServer(config, openLog('info', lines), { sandbox })
      let stopped: Promise<void> | undefined
      const stop = () => {
        stopped ??= server.stop().then(() => rm(folder, { recursive: true, force: true }))
        return stopped
      }
      stops.push(stop)
      installation.apiKey ||= server.firstStart?.account?.apiKey ?? ''
      return {
        ...{ url: server.url, dataDir: folder, env: environment, outdated: server.outdated },
        ...{ owner: createOwner(server.url, installation.apiKey), output: () => output, stop },
      }
    },
  }
  return installation
}

/** One more server of an installation: a process of its own, with a data folder of its own. */
export async function startAnother(of: Reelgate, options: Pick<StartOptions, 'env' | 'main'> = {}): Promise<Reelgate> {
  const dataDir = await mkdtemp(join(tmpdir(), 'reelgate-one-of-several-'))
  const { masterKeyFile, databaseUrl, bucket } = of
  const env = { ...of.env, REELGATE_DATA: dataDir, REELGATE_MASTER_KEY_FILE: masterKeyFile }
  const remove = () => rm(dataDir, { recursive: true, force: true })
  return startReelgate({ ...options, location: { dataDir, masterKeyFile, databaseUrl, bucket, env, remove }, copyOf: of })
}
