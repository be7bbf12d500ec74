import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { onTestFinished } from 'vitest'
import { dataPaths } from '../src/config/data-paths.ts'
import { sendCommand } from '../src/control/socket.ts'
import type { BucketAddress } from '../src/storage/s3/bucket.ts'
import { createOwner, type Owner } from './client.ts'
import { untilFinished } from './data-folder.ts'
import { type Golden, getGolden } from './golden.ts'
import { type Location, makeLocation, type PlaceOptions } from './installation-folder.ts'
import { STORAGE, type StorageOptions } from './s3.ts'
import { createViewer, type Viewer } from './viewer.ts'

const ROOT = join(import.meta.dirname, '..')
const MAIN = join(ROOT, 'bin', 'main.js')

/** A running server: a process of its own, on a free port, with a data folder of its own. */
export type Reelgate = {
  url: string
  dataDir: string
  masterKeyFile: string
  /** Undefined: SQLite, in the data folder. */
  databaseUrl: string | undefined
  /** Undefined: the files of videos are in the data folder. */
  bucket: BucketAddress | undefined
  /** What tells another process of this installation. */
  env: Record<string, string>
  owner: Owner
  /** The video that it was started with. */
  videoId: string
  /** What the server printed and logged so far. */
  output(): string
  pid: number
  newViewer(): Viewer
  /** A second owner, in an account made through the running server's control socket. */
  newOwner(name: string): Promise<Owner>
  cli(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }>
  /** Sends SIGTERM. @returns the exit code */
  stop(): Promise<number | null>
  /** Ends server and ffmpeg as a power cut would: SIGKILL. */
  kill(): Promise<void>
  /** Starts the same installation again, on the same port. */
  restart(): Promise<void>
}

export type StartOptions = Omit<PlaceOptions, 'copyOf'> & {
  env?: Record<string, string>
  /** What starts the server, such as faketime. */
  wrapper?: string[]
  /** The program, where it is not the build of this clone. */
  main?: string
  /** A stopped installation to go on from, with the same owner. */
  copyOf?: Golden | Reelgate
  /** Where an installation is already; the caller removes it. `copyOf` says whose it is. */
  location?: Location
  /** A file that is a finished video of the owner's from the start, under this title: `videoId`. */
  video?: string
  title?: string
}

/** Starts a server for this test; it is stopped and its folder removed when the test has finished. */
export async function startReelgate(options: StartOptions = {}): Promise<Reelgate> {
  const reelgate = await startSharedReelgate(options)
  onTestFinished(() => reelgate.remove())
  return reelgate
}

/** For a file whose tests share one server: the caller stops it in `afterAll`. */
export async function startSharedReelgate(options: StartOptions = {}): Promise<Reelgate & { remove(): Promise<void> }> {
  const from = await originOf(options)
  const location = options.location ?? (await makeLocation({ ...options, copyOf: from }))
  const reelgate = await startIn(location, options, from)
  await setTitle(reelgate, options.title)
  return Object.assign(reelgate, {
    async remove() {
      await reelgate.kill()
      await location.remove()
    },
  })
}

/** What a server is started from: nothing, a stopped installation, or one made with the video that its options name. */
export async function originOf({ copyOf, video, storage }: StartOptions): Promise<Golden | Reelgate | undefined> {
  return video === undefined ? copyOf : goldenWith(video, storage)
}

/** Gives the video that a server was started with its title: tests that call it differently share one golden installation. */
export async function setTitle(
  { owner, videoId }: Pick<Reelgate, 'owner' | 'videoId'>,
  title: string | undefined,
): Promise<void> {
  if (title === undefined) return
  const { status } = await owner.call('POST', `/api/videos/${videoId}`, { body: { title } })
  if (status !== 200) throw new Error(`the video was not renamed: ${status}`)
}

/** A stopped installation in which this file is a finished video, called `A video`. */
export function goldenWith(video: string, storage: StorageOptions['storage'] = STORAGE): Promise<Golden> {
  return getGolden(`${storage} ${video}`, async (folder) => {
    const reelgate = await startSharedReelgate({ within: folder, storage })
    const videoId = await reelgate.owner.upload('A video', video)
    await untilFinished(reelgate, videoId)
    await reelgate.stop()
    const { dataDir, masterKeyFile, databaseUrl, bucket, owner } = reelgate
    return { dataDir, masterKeyFile, databaseUrl, bucket, owner: { apiKey: owner.apiKey }, videoId }
  })
}

async function startIn(location: Location, options: StartOptions, from: Golden | Reelgate | undefined): Promise<Reelgate> {
  const env = serverEnvironment(location, options.env)
  let run = await startProcess(env, options)
  const apiKey = from?.owner.apiKey ?? /API secret {2}(\w{64})/.exec(run.output())?.[1] ?? ''
  const { url } = run

  return {
    ...handlesOf(location, env, url, apiKey),
    videoId: from?.videoId ?? '',
    output: () => run.output(),
    get pid() {
      return run.child.pid ?? 0
    },
    async stop() {
      run.child.kill('SIGTERM')
      return run.ended
    },
    async kill() {
      run.child.kill('SIGKILL')
      await run.ended
    },
    async restart() {
      run = await startProcess({ ...env, PORT: new URL(url).port }, options)
    },
  }
}

/** What a server under test finds in its environment. */
export function serverEnvironment(location: Location, more: Record<string, string> = {}): Record<string, string> {
  // Suites ask more in a minute than an owner does; those of limits set their own. One suite wants the demo video. Where a machine has no
  // bubblewrap, all but the tests of the sandbox run without.
  const defaults = {
    PORT: '0',
    REELGATE_LIMITS: 'off',
    REELGATE_DEMO: 'off',
    REELGATE_LOG_LEVEL: 'info',
    REELGATE_SANDBOX: 'weak',
  }
  return { PATH: process.env.PATH ?? '', ...location.env, ...defaults, ...more }
}

/** What owners, viewers and the command line do with a server, wherever it runs. */
export function handlesOf(
  { dataDir, masterKeyFile, databaseUrl, bucket, ...location }: Location,
  env: Record<string, string>,
  url: string,
  apiKey: string,
) {
  return {
    url,
    dataDir,
    masterKeyFile,
    databaseUrl,
    bucket,
    env: location.env,
    owner: createOwner(url, apiKey),
    newViewer: () => createViewer(url),
    async newOwner(name: string) {
      const { controlSocket } = dataPaths(env.REELGATE_DATA ?? dataDir)
      const made = await sendCommand(controlSocket, 'account create', { name, mayUpload: true, mayImport: true })
      return createOwner(url, (made as { apiKey: string }).apiKey)
    },
    cli: (...args: string[]) => runCli(args, env),
  }
}

type Run = { child: ChildProcess; url: string; output(): string; ended: Promise<number | null> }

async function startProcess(env: Record<string, string>, { wrapper = [], main = MAIN }: StartOptions): Promise<Run> {
  const [command = process.execPath, ...args] = [...wrapper, process.execPath, main, 'serve']
  const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  const ended = once(child, 'exit').then(([code]): number | null => code)
  const serving = Promise.withResolvers<string>()
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (text: Buffer) => {
      output += text
      // The last line of the start is printed after everything else that a test may want of it.
      const url = /serves (http:\S+) [\s\S]*$/.exec(output)?.[1]
      if (url) serving.resolve(url)
    })
  }
  ended.then(() => serving.reject(new Error(`the server ended before it served: ${output}`)))
  return { child, url: await serving.promise, output: () => output, ended }
}

/** Runs `reelgate ARGS` to its end. */
export async function runCli(
  args: string[],
  env: Record<string, string>,
  timeoutMs = 120_000,
): Promise<{ code: number; stdout: string; stderr: string }> {
  try {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [MAIN, ...args], {
      env: { PATH: process.env.PATH, ...env },
      timeout: timeoutMs,
    })
    return { code: 0, stdout, stderr }
  } catch (error) {
    const failed = error as { code?: number; stdout?: string; stderr?: string }
    return { code: failed.code ?? -1, stdout: failed.stdout ?? '', stderr: failed.stderr ?? '' }
  }
}
