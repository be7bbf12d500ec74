import { spawn } from 'node:child_process'
import { accessSync, constants, realpathSync } from 'node:fs'
import { access } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { Readable } from 'node:stream'
import { Failure } from '../errors.ts'

/** A source as it lies on disk: AES-128-CBC. ffmpeg deciphers it while reading, with seeks, so that no clear copy is needed. */
export type SealedSource = {
  path: string
  keyHex: string
  ivHex: string
  /** As it was uploaded, without the padding. */
  sizeBytes: number
}

/** What media is run with. `bubblewrap` false: this machine forbids user namespaces, only limits and whitelists hold. */
export type Sandbox = { tools: Tools; bubblewrap: boolean; ffmpegVersion: string }
type Tools = { ffmpeg: string; ffprobe: string; prlimit: string; bwrap?: string }

/** Reads one of the child's outputs to its end; what it throws ends the child. Slow reading slows the child down. */
export type Reader = (bytes: Readable) => Promise<void>

export type MediaRun = {
  tool: 'ffmpeg' | 'ffprobe'
  /** What may be opened: a film, which is meant when nothing is said, or a still picture. */
  media?: 'film' | 'picture'
  source: SealedSource
  /** Options of the input, such as `-ss`. */
  inputArgs?: readonly string[]
  /** Everything after the input. Outputs are named `pipe:3`, `pipe:4`, … in the order of `pipes`. */
  outputArgs: readonly string[]
  stdout?: Reader
  pipes?: readonly Reader[]
  limits: MediaLimits
  signal?: AbortSignal
}

export type MediaLimits = { memoryBytes?: number; cpuS: number; wallS: number }

export type MediaEnd = {
  /** 0 is success; 128 + n is signal n. */
  exitCode: number
  /** Lines at level `error`. A file that decodes cleanly gives none. */
  errorLines: number
  /** The last 64 KiB of what it said. */
  stderr: string
  outOfTime: boolean
}

// More pixels than any camera's film; checked by the decoders before they ask for memory.
export const MAX_PIXELS = 40_000_000
// A demuxer that opens other files (hls, concat, dash, sdp, image2) is not here: this list, not the protocols', keeps it from reading them.
const DEMUXERS = {
  film: 'mov,matroska,webm,avi,flv,mpegts,mpeg,ogg,asf,wav,mp3,aac,flac,mxf',
  picture: 'png_pipe,jpeg_pipe,webp_pipe,gif_pipe',
}
// The first with -fps_mode.
const OLDEST_FFMPEG = { major: 5, minor: 1 }
const STDERR_TAIL_BYTES = 64 * 1024
/** What the number of the signal that ended a process is added to. */
const SIGNALLED = 128
/** Killed: by us, by its processor limit, or by a machine that ran out of memory. */
export const SIGKILL_EXIT = SIGNALLED + os.constants.signals.SIGKILL
/** Whether a run crashed or was killed. That may be the machine's fault, so it says nothing of the film yet. */
export function wasEndedBySignal({ exitCode }: MediaEnd): boolean {
  return exitCode > SIGNALLED
}
// A four-rung 1080p ladder takes 0.5 GB; address space also counts each thread's stack and arena, so it grows with the machine.
const MEMORY_BYTES = 4 * 2 ** 30 + os.availableParallelism() * 2 ** 28

/**
 * Finds ffmpeg and its cage, and tries them once.
 * @param folders where programs are looked for, in order
 * @throws Failure `unavailable` when a needed program is missing or does not start
 */
export async function openSandbox(folders: readonly string[] = ['/usr/local/bin', '/usr/bin', '/bin']): Promise<Sandbox> {
  // Nothing is awaited before ffmpeg is spawned, so that it runs while the caller continues.
  const [ffmpeg, ffprobe, prlimit, bwrap] = ['ffmpeg', 'ffprobe', 'prlimit', 'bwrap'].map((name) => findTool(name, folders))
  if (!ffmpeg || !ffprobe) throw new Failure('unavailable', 'ffmpeg is not installed: run apt-get install ffmpeg')
  if (!prlimit) throw new Failure('unavailable', 'prlimit is not installed: run apt-get install util-linux')
  const tools: Tools = { ffmpeg, ffprobe, prlimit, bwrap }
  // The very command that will be used later: some machines have bwrap but forbid user namespaces.
  const caged = bwrap ? await readVersion({ tools, bubblewrap: true, ffmpegVersion: '' }) : undefined
  const ffmpegVersion = caged ?? (await readVersion({ tools, bubblewrap: false, ffmpegVersion: '' }))
  if (!ffmpegVersion) throw new Failure('unavailable', 'ffmpeg is installed but does not start: run ffmpeg -version to see why')
  refuseOldVersion(ffmpegVersion)
  return { tools, bubblewrap: caged !== undefined, ffmpegVersion }
}

/** Builds of a day have no such number; they are newer. */
function refuseOldVersion(version: string) {
  const [, major = 0, minor = 0] = (/^n?(\d+)\.(\d+)/.exec(version) ?? [0, OLDEST_FFMPEG.major, OLDEST_FFMPEG.minor]).map(Number)
  if (major > OLDEST_FFMPEG.major || (major === OLDEST_FFMPEG.major && minor >= OLDEST_FFMPEG.minor)) return
  const needed = `${OLDEST_FFMPEG.major}.${OLDEST_FFMPEG.minor}`
  throw new Failure('unavailable', `ffmpeg ${version} is installed, but ${needed} or newer is needed: install a newer one`)
}

/**
 * Runs ffmpeg or ffprobe on a hostile file: no network, no environment, nothing readable but the source, nothing writable, bounded
 * memory and time. Resolves when the child and all its children are gone and every reader is done.
 * @throws the signal's reason when aborted, what a reader threw, or the code of what kept it from starting; an exit code is an answer, not an error
 * @see docs of bubblewrap and prlimit for the flags; each was tried with its attack in test/encode/hostile.test.ts
 */
export async function runMedia(sandbox: Sandbox, run: MediaRun): Promise<MediaEnd> {
  run.signal?.throwIfAborted()
  await access(run.source.path, constants.R_OK)
  return refuseBrokenCage(await runCaged(sandbox, { ...run, args: mediaArgs(sandbox, run) }))
}

/**
 * Runs ffmpeg on no file at all, in the same cage: its own sources make picture and sound, and nothing comes from outside.
 * @throws as `runMedia` does
 */
export async function drawMedia(
  sandbox: Sandbox,
  run: Pick<MediaRun, 'stdout' | 'limits' | 'signal'> & { args: readonly string[] },
): Promise<MediaEnd> {
  run.signal?.throwIfAborted()
  const args = ['-nostdin', '-hide_banner', '-v', 'error', ...run.args]
  return refuseBrokenCage(await runCaged(sandbox, { ...run, tool: 'ffmpeg', args }))
}

/** Not the film's fault, and not a sentence for its owner. */
function refuseBrokenCage(end: MediaEnd): MediaEnd {
  if (end.exitCode !== 0 && /^(bwrap|prlimit): /.test(end.stderr))
    throw new Failure('unavailable', `the sandbox did not start: ${end.stderr.trim()}`)
  return end
}

/** A reader that keeps everything, up to a limit. */
export function collect(limitBytes: number): { reader: Reader; bytes: () => Buffer } {
  const parts: Buffer[] = []
  let sizeBytes = 0
  return {
    reader: async (bytes) => {
      for await (const part of bytes) {
        sizeBytes += part.length
        if (sizeBytes > limitBytes) throw new OutputTooLong()
        parts.push(part)
      }
    },
    bytes: () => Buffer.concat(parts),
  }
}

/** A tool said more than its reader was ready to keep. */
export class OutputTooLong extends Error {}

type CagedRun = Pick<MediaRun, 'tool' | 'stdout' | 'pipes' | 'limits' | 'signal'> & {
  source?: SealedSource
  args: readonly string[]
}

function withCode(error: Error, cause: Error): Error {
  return Object.assign(error, 'code' in cause ? { code: cause.code } : {})
}

async function runCaged(sandbox: Sandbox, run: CagedRun): Promise<MediaEnd> {
  const pipes = run.pipes ?? []
  const child = spawn(sandbox.tools.prlimit, cageArgs(sandbox, run), {
    stdio: ['ignore', run.stdout ? 'pipe' : 'ignore', 'pipe', ...pipes.map(() => 'pipe' as const)],
    detached: true, // its own process group, so that whatever it starts can be killed with it
    env: {},
    cwd: '/',
  })
  const killGroup = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch (error) {
      if (!isGone(error)) throw error
    }
  }
  let outOfTime = false
  const wall = setTimeout(() => {
    outOfTime = true
    killGroup()
  }, run.limits.wallS * 1000)
  run.signal?.addEventListener('abort', killGroup, { once: true })
  try {
    const ended = new Promise<number>((resolve, reject) => {
      // Node's error would carry the arguments, and with them the source's key, into the log.
      child.once('error', (error) => reject(withCode(new Error(`${run.tool} did not start`), error)))
      child.once('exit', killGroup) // a grandchild would hold the pipes open
      child.once('close', (code, signal) => resolve(code ?? SIGNALLED + (signal ? os.constants.signals[signal] : 0)))
    })
    if (child.pid === undefined) await ended // throws: where too many files are open, there are no outputs either
    if (run.signal?.aborted) killGroup() // between the first look and the listener

    const said = { tail: Buffer.alloc(0), lines: 0 }
    const reads = [
      readOutput(child.stderr, async (bytes) => keepTail(bytes, said)),
      ...(run.stdout ? [readOutput(child.stdout, run.stdout)] : []),
      ...pipes.map((reader, index) => readOutput(child.stdio[3 + index], reader)),
    ].map((read) =>
      read.catch((error: unknown) => {
        killGroup()
        throw error
      }),
    )
    const [exit, ...readings] = await Promise.allSettled([ended, ...reads])
    run.signal?.throwIfAborted()
    for (const reading of readings) if (reading.status === 'rejected' && !outOfTime) throw reading.reason
    if (exit.status === 'rejected') throw exit.reason
    return { exitCode: exit.value, errorLines: said.lines, stderr: said.tail.toString('utf8'), outOfTime }
  } finally {
    clearTimeout(wall)
    run.signal?.removeEventListener('abort', killGroup)
  }
}

async function readOutput(stream: unknown, reader: Reader) {
  if (!(stream instanceof Readable)) throw new Error('the child has no such output')
  await reader(stream)
}

async function keepTail(bytes: Readable, said: { tail: Buffer; lines: number }) {
  for await (const part of bytes) {
    for (const byte of part) if (byte === 0x0a) said.lines += 1
    said.tail = Buffer.concat([said.tail, part]).subarray(-STDERR_TAIL_BYTES)
  }
}

function mediaArgs(sandbox: Sandbox, { tool, media = 'film', source, inputArgs = [], outputArgs }: MediaRun): string[] {
  return [
    // Of what cannot be decoded, what came out is the measure, never a share of the packets: some files have thousands of empty ones.
    ...(tool === 'ffmpeg' ? ['-nostdin', '-max_error_rate', '1'] : []),
    ...['-hide_banner', '-v', 'error', '-protocol_whitelist', 'file,crypto,subfile,pipe', '-format_whitelist', DEMUXERS[media]],
    ...['-max_pixels', String(MAX_PIXELS), '-decryption_key', source.keyHex, '-decryption_iv', source.ivHex],
    ...inputArgs,
    // A demuxer that looks for something at the end (MXF, FLV) must find the end: `crypto` counts the padding in.
    ...['-i', `subfile,,start,0,end,${source.sizeBytes},,:crypto:${sandbox.bubblewrap ? '/in' : path.resolve(source.path)}`],
    ...outputArgs,
  ]
}

function cageArgs(sandbox: Sandbox, { tool, source, limits, args }: CagedRun): string[] {
  const { tools } = sandbox
  const memoryBytes = limits.memoryBytes ?? MEMORY_BYTES
  // No file may grow by a byte: outputs are pipes.
  const limited = ['--fsize=0', '--core=0', `--as=${memoryBytes}`, `--cpu=${Math.ceil(limits.cpuS)}`, '--']
  if (!sandbox.bubblewrap || !tools.bwrap) return [...limited, tools[tool], ...args]
  return [
    ...limited,
    ...[tools.bwrap, '--unshare-all', '--die-with-parent', '--new-session', '--cap-drop', 'ALL', '--clearenv'],
    ...['--ro-bind', '/usr', '/usr', '--symlink', 'usr/lib', '/lib', '--symlink', 'usr/lib64', '/lib64'],
    // Debian's BLAS, which a filter links, is reached through /etc/alternatives.
    ...['--ro-bind-try', '/etc/ld.so.cache', '/etc/ld.so.cache', '--ro-bind-try', '/etc/alternatives', '/etc/alternatives'],
    ...['--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp', '--chdir', '/tmp'],
    ...['--ro-bind', tools[tool], tools[tool]],
    ...(source ? ['--ro-bind', path.resolve(source.path), '/in'] : []),
    ...[tools[tool], ...args],
  ]
}

async function readVersion(sandbox: Sandbox): Promise<string | undefined> {
  const output = collect(64 * 1024)
  const limits = { cpuS: 10, wallS: 30 }
  const end = await runCaged(sandbox, { tool: 'ffmpeg', args: ['-version'], stdout: output.reader, limits })
  return end.exitCode === 0 ? /^ffmpeg version (\S+)/.exec(output.bytes().toString('utf8'))?.[1] : undefined
}

function findTool(name: string, folders: readonly string[]): string | undefined {
  const file = folders.map((folder) => path.join(folder, name)).find(isExecutable)
  return file && realpathSync(file)
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

function isGone(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ESRCH'
}
