import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { readConfig } from '../config/config.ts'
import { isLoopback } from '../config/loopback.ts'
import type { HardwareName } from '../encode/hardware-names.ts'
import { Failure } from '../errors.ts'
import { isEncodingAllowed, openSandbox, sandboxAdvice } from '../sandbox/bubblewrap.ts'
import { runWorker, type WorkerOptions } from '../workers/client/run-worker.ts'
import { tryHardware } from '../workers/client/try-hardware.ts'
import { openLog } from './log.ts'

type WorkOptions = {
  server: string
  tokenFile?: string
  jobs?: number
  only?: WorkerOptions['kinds']
  encoder?: HardwareName
  cache: string
  cacheSize: number
}

/** Encodes for a server on another machine until a signal ends it: the first one when what is nearly done is done, the second immediately. */
export async function work({ server, tokenFile, jobs, only, encoder, cache, cacheSize }: WorkOptions): Promise<void> {
  // A video has one encoder: where this one left its sound or its pictures to others, none of theirs would encode them.
  if (encoder && only)
    throw new Failure('invalid', '--encoder and --only cannot be combined: the encoder of a video encodes its sound as well.')
  const config = readConfig()
  const log = openLog(config.logLevel)
  const token = tokenFile === undefined ? config.workerToken : readFileSync(tokenFile, 'utf8').trim()
  if (token === undefined)
    throw new Failure(
      'invalid',
      'The token of this worker is missing: set REELGATE_WORKER_TOKEN, or name its file with --token-file.',
    )
  const sandbox = await openSandbox({ ...config, ...(tokenFile === undefined ? {} : { masterKeyFile: resolve(tokenFile) }) })
  const advice = sandboxAdvice(sandbox)
  if (advice && !(await isEncodingAllowed(sandbox))) throw new Failure('unavailable', [advice.effect, ...advice.cures].join(' '))
  const hardware = encoder && (await tryHardware(sandbox, encoder))
  const [stopping, ending] = [new AbortController(), new AbortController()]
  const stop = () => (stopping.signal.aborted ? ending : stopping).abort()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, stop)
  await runWorker({
    ...{
      server: serverUrl(server),
      token,
      mayPutAt: (address) => mayPutAt(address, new URL(server)),
      jobs,
      kinds: only ?? ['video', 'audio'],
      cacheFolder: resolve(cache),
      cacheBytes: cacheSize,
      sandbox,
      hardware,
      log,
    },
    ...{ stopping: stopping.signal, ending: ending.signal },
  })
  process.exit(0) // a connection that is kept open would keep the process for a few seconds
}

/** Not to programs of this machine, which only its own server may name; to others protected on its way, as all else. */
function mayPutAt({ protocol, hostname }: URL, server: URL): boolean {
  return isLoopback(hostname) ? isLoopback(server.hostname) : protocol === 'https:'
}

/** Without a slash at its end. @throws Failure `invalid` where the way there is not protected */
function serverUrl(server: string): string {
  const url = URL.canParse(server) ? new URL(server) : undefined
  const isProtected = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname))
  if (!url || !isProtected || url.username !== '' || url.search !== '')
    throw new Failure(
      'invalid',
      '--server expects the public URL of the server, such as https://video.example.org. http is for addresses of this machine alone: the video and the token would be readable on their way.',
    )
  return server.replace(/(?<!\/)\/+$/, '')
}
