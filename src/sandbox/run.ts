import { spawn } from 'node:child_process'
import { createDecipheriv } from 'node:crypto'
import { accessSync, constants, createReadStream, readFileSync, realpathSync } from 'node:fs'
import { access } from 'node:fs/promises'
import { findPackageJSON } from 'node:module'
import os from 'node:os'
import path from 'node:path'
import { Readable, Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { Failure } from '../errors.ts'
import { limitBytes } from '../limit-bytes.ts'
import { keepKnownTools, readKnownTools } from './known-tools.ts'
import { systemCallFilter } from './system-calls.ts'
import { librariesIn, visiblePaths } from './visible-paths.ts'

/** A source as it is stored: AES-128-CBC. ffmpeg decrypts it while reading, with seeks, so that no decrypted copy is needed. */
export type SealedSource = {
  path: string
  keyHex: string
  ivHex: string
  /** Of the upload, without the padding. */
  sizeBytes: number
}

/** The tools and the sandbox for media: one per server process, which `tryBubblewrap` keeps up to date. */
export type Sandbox = {
  /** Where programs are searched, in order. */
  folders: readonly string[]
  tools: Tools
  /** Files and folders of the system that the tools need inside bubblewrap. */
  visible: readonly string[]
  /** Paths that are never visible inside bubblewrap. */
  hidden: readonly string[]
  /** Where is kept what is known of the tools. */
  cacheDir?: string
  ffmpegVersion: string
  /** Whether bubblewrap has worked here once: from then on nothing runs without it. */
  bubblewrap: boolean
  /** Why the last attempt to start bubblewrap failed. */
  problem?: string
  /** Whether uploads may be opened with limits and whitelists alone where bubblewrap has never worked. */
  weak: boolean
  /** When to try bubblewrap again, on the clock of `performance.now()`. */
  nextTryMs: number
}
type Tools = { ffmpeg: string; ffprobe: string; prlimit: string; bwrap?: string }

/** The settings of a sandbox. */
export type SandboxConfig = {
  toolFolders: readonly string[]
  sandbox: 'required' | 'weak'
  dataDir: string
  masterKeyFile: string
  cacheDir: string
}

/** Reads one output of the child to its end. When it throws, the child is killed. Slow reading slows the child down. */
export type Reader = (bytes: Readable) => Promise<void>

export type MediaRun = {
  tool: 'ffmpeg' | 'ffprobe'
  /** What may be opened; by default a video. */
  media?: 'video' | 'image'
  source: SealedSource
  /** Whether the source is read from a pipe, from its start to its end: decrypted here, which is eight times as fast, but without seeks. */
  isPiped?: boolean | undefined
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
  /** The last 64 KiB. */
  stderr: string
  outOfTime: boolean
}

// More pixels than any camera's video; checked by the decoders before they ask for memory.
export const MAX_PIXELS = 40_000_000
// Without demuxers that open other files (hls, concat, dash, sdp, image2): this list prevents it, not the protocol list.
const DEMUXERS = {
  video: 'mov,matroska,webm,avi,flv,mpegts,mpeg,ogg,asf,mxf,wav,aiff,caf,au,mp3,aac,ac3,eac3,flac',
  image: 'png_pipe,jpeg_pipe,webp_pipe,gif_pipe',
}
// The first with -fps_mode.
const MIN_FFMPEG = { major: 5, minor: 1 }
const STDERR_TAIL_BYTES = 64 * 1024
/** Added to the number of the signal that ended a process, as shells do. */
const SIGNAL_EXIT_BASE = 128
/** Killed by us, by its processor limit, or because the machine ran out of memory. */
export const SIGKILL_EXIT = SIGNAL_EXIT_BASE + os.constants.signals.SIGKILL
/** Whether a run crashed or was killed. The host may be the cause, so this is no finding about the video. */
export function wasKilled({ exitCode }: MediaEnd): boolean {
  return exitCode > SIGNAL_EXIT_BASE
}
/** Many times what the encoder starts on a large machine. Since 5.14 Linux counts per sandbox; root's are not counted. */
const MAX_THREADS = 1024
const RETRY_AFTER_MS = 5_000
// A four-rung 1080p ladder takes 0.5 GB; address space also counts each thread's stack and arena, so it grows with the machine.
const MEMORY_BYTES = 4 * 2 ** 30 + os.availableParallelism() * 2 ** 28

/**
 * Finds ffmpeg and bubblewrap, and tries both.
 * @throws Failure `unavailable` when a needed program is missing or does not start
 */
export async function openSandbox(config: Partial<SandboxConfig> = {}): Promise<Sandbox> {
  // No await before a program is spawned, so that it runs while the caller continues.
  const { toolFolders: folders = ['/usr/local/bin', '/usr/bin', '/bin'] } = config
  const [ffmpeg, ffprobe, prlimit] = ['ffmpeg', 'ffprobe', 'prlimit'].map((name) => findTool(name, folders))
  if (!ffmpeg || !ffprobe) throw new Failure('unavailable', 'ffmpeg is not installed: run apt-get install ffmpeg')
  if (!prlimit) throw new Failure('unavailable', 'prlimit is not installed: run apt-get install util-linux')
  const sandbox: Sandbox = {
    folders,
    tools: { ffmpeg, ffprobe, prlimit },
    visible: [],
    hidden: hiddenPaths(config),
    cacheDir: config.cacheDir,
    ffmpegVersion: '',
    bubblewrap: false,
    weak: config.sandbox === 'weak',
    nextTryMs: 0,
  }
  if (!(await tryBubblewrap(sandbox))) sandbox.ffmpegVersion = await readVersion(sandbox)
  assertSupportedVersion(sandbox.ffmpegVersion)
  return sandbox
}

/** The installation, its data folder and its key: ffmpeg never sees them, whatever folder they are in. */
function hiddenPaths({ dataDir, masterKeyFile }: Partial<SandboxConfig>): string[] {
  const installation = findPackageJSON('.', import.meta.url)
  return [installation && path.dirname(installation), dataDir, masterKeyFile].flatMap((hidden) => hidden ?? [])
}

/** Tries bubblewrap with the command that is used later: some machines have it, but forbid user namespaces. */
export async function tryBubblewrap(sandbox: Sandbox): Promise<boolean> {
  sandbox.tools.bwrap ??= findTool('bwrap', sandbox.folders)
  let trial = await runTrial(sandbox)
  // Once more: the failure may have been temporary.
  if (typeof trial === 'string') trial = await runTrial(sandbox)
  sandbox.nextTryMs = performance.now() + RETRY_AFTER_MS
  if (typeof trial === 'string') {
    sandbox.problem = trial
    return false
  }
  Object.assign(sandbox, trial, { bubblewrap: true, problem: undefined })
  return true
}

/**
 * Starts ffmpeg in bubblewrap, or where that has worked before a smaller program.
 * @returns why it did not start, as text, or what is known now
 */
async function runTrial(sandbox: Sandbox): Promise<string | Pick<Sandbox, 'visible' | 'ffmpegVersion'>> {
  const { cacheDir, hidden } = sandbox
  const { bwrap, ffmpeg, ffprobe, prlimit } = sandbox.tools
  if (!bwrap) return 'it is not installed'
  if (!systemCallFilter()) return `Reelgate has no system call filter for ${process.arch}`
  const programs = [ffmpeg, ffprobe, prlimit]
  const known = cacheDir === undefined ? undefined : readKnownTools(cacheDir, programs)
  const libraries = known?.libraries ?? (await Promise.all(programs.map(listLibraries))).flat()
  const tried = { ...sandbox, visible: visiblePaths(libraries, hidden), bubblewrap: true }
  const { version, end } = known ? await tryAgain(tried, known.ffmpegVersion) : await askVersion(tried)
  if (version === undefined) return end.stderr.trim().split('\n')[0] || `ffmpeg ended with ${end.exitCode} in it`
  if (cacheDir !== undefined && !known) keepKnownTools(cacheDir, programs, { libraries, ffmpegVersion: version })
  return { visible: tried.visible, ffmpegVersion: version }
}

async function tryAgain(sandbox: SandboxTools, ffmpegVersion: string): Promise<VersionAnswer> {
  const end = await runSandboxed(sandbox, { tool: 'prlimit', args: ['--version'], limits: TRIAL_LIMITS })
  return { version: end.exitCode === 0 ? ffmpegVersion : undefined, end }
}

/** Whether uploaded files may be opened now. Bubblewrap that has not worked yet is tried again, at most every few seconds. */
export async function isEncodingAllowed(sandbox: Sandbox): Promise<boolean> {
  if (!sandbox.bubblewrap && performance.now() >= sandbox.nextTryMs) await tryBubblewrap(sandbox)
  return sandbox.bubblewrap || sandbox.weak
}

/** What is wrong with a sandbox, and each way to fix it, as sentences for the operator. */
export type SandboxAdvice = { effect: string; cures: readonly string[] }

/** @returns undefined where bubblewrap runs */
export function sandboxAdvice({ bubblewrap, weak, problem, tools }: Sandbox): SandboxAdvice | undefined {
  if (bubblewrap) return undefined
  const noSandbox = `The sandbox around ffmpeg, bubblewrap, does not run here: ${problem}.`
  const install = tools.bwrap ? [] : ['Install it: apt-get install bubblewrap.']
  const container = `In a container, start it with ${CONTAINER_FLAGS}; docs/operations.md has the rest (The sandbox).`
  const risk = 'a file made to attack ffmpeg can then reach all that Reelgate can: its key, its data, the network.'
  if (weak)
    return { effect: `${noSandbox} REELGATE_SANDBOX=weak: ffmpeg runs without it; ${risk}`, cures: [...install, container] }
  return {
    effect: `${noSandbox} No upload is encoded and no image opened until it does; uploads wait.`,
    cures: [...install, container, `Or set REELGATE_SANDBOX=weak, and ffmpeg runs without it: ${risk}`],
  }
}

/** Bubblewrap needs new namespaces and mounts in them, which Docker and Podman forbid by default. */
const CONTAINER_FLAGS = '--security-opt seccomp=unconfined --security-opt apparmor=unconfined'

/** Nightly builds have no such number; they are newer. */
function assertSupportedVersion(version: string) {
  const [, major = 0, minor = 0] = (/^n?(\d+)\.(\d+)/.exec(version) ?? [0, MIN_FFMPEG.major, MIN_FFMPEG.minor]).map(Number)
  if (major > MIN_FFMPEG.major || (major === MIN_FFMPEG.major && minor >= MIN_FFMPEG.minor)) return
  const needed = `${MIN_FFMPEG.major}.${MIN_FFMPEG.minor}`
  throw new Failure('unavailable', `ffmpeg ${version} is installed, but ${needed} or newer is needed: install a newer one`)
}

/**
 * Runs ffmpeg or ffprobe on a hostile file: no network, no environment, nothing readable but its libraries and the source, nothing
 * writable, no other process, limited memory and time. Resolves when the child has exited and every reader is done.
 * @throws the signal's reason when aborted, what a reader threw, or an error with the code of why it did not start. An exit code is a
 *   result, not an error. Failure `unavailable` where bubblewrap does not start, unless it never did and may be missing
 * @see docs of bubblewrap and prlimit for the flags; each was tried with its attack in test/encode/sandbox.test.ts
 */
export async function runMedia(sandbox: Sandbox, run: MediaRun): Promise<MediaEnd> {
  run.signal?.throwIfAborted()
  await access(run.source.path, constants.R_OK)
  if (!(await isEncodingAllowed(sandbox))) throw new Failure('unavailable', NOT_OPENED)
  const args = mediaArgs(sandbox, run)
  if (!run.isPiped) return throwIfSandboxFailed(await runSandboxed(sandbox, { ...run, args }))
  const { source, ...piped } = run
  const sealed = createReadStream(source.path, { highWaterMark: 2 ** 20 })
  try {
    const end = await runSandboxed(sandbox, { ...piped, stdin: decrypt(sealed, source), args })
    if (sealed.errored) throw sealed.errored
    return throwIfSandboxFailed(end)
  } finally {
    sealed.destroy()
  }
}

/** The clear bytes. Those of a file that the disk has changed may end early: what became of it is checked by others. */
function decrypt(sealed: Readable, { keyHex, ivHex }: SealedSource): Readable {
  const clear = createDecipheriv('aes-128-cbc', Buffer.from(keyHex, 'hex'), Buffer.from(ivHex, 'hex'))
  sealed.on('error', () => clear.destroy())
  return sealed.pipe(clear.on('error', () => undefined))
}

/**
 * Runs ffmpeg in the same sandbox on raw audio that another run has decoded. What it does not read, since it has had enough, is dropped.
 * @throws as `runMedia` does
 */
export async function runOnSamples(
  sandbox: Sandbox,
  { samples, outputArgs, ...run }: Omit<MediaRun, 'tool' | 'media' | 'source' | 'inputArgs'> & { samples: RawAudio },
): Promise<MediaEnd> {
  run.signal?.throwIfAborted()
  if (!(await isEncodingAllowed(sandbox))) throw new Failure('unavailable', NOT_OPENED)
  const { format, rateHz, channels, bytes } = samples
  const input = ['-f', format, '-ar', String(rateHz), '-ac', String(channels), '-i', 'pipe:0']
  const args = [
    '-hide_banner',
    '-v',
    'error',
    '-protocol_whitelist',
    'pipe',
    '-format_whitelist',
    format,
    ...input,
    ...outputArgs,
  ]
  return throwIfSandboxFailed(await runSandboxed(sandbox, { ...run, tool: 'ffmpeg', stdin: bytes, args }))
}

/** Samples one after another; `format` is ffmpeg's name of how one is stored. */
export type RawAudio = { format: 'f32le'; rateHz: number; channels: number; bytes: Readable }

/**
 * Runs ffmpeg without an input file, in the same sandbox if there is one: its own filters generate video and audio.
 * @throws as `runMedia` does
 */
export async function runMediaToFiles(
  sandbox: Sandbox,
  run: Pick<MediaRun, 'stdout' | 'limits' | 'signal'> & { args: readonly string[] },
): Promise<MediaEnd> {
  run.signal?.throwIfAborted()
  const args = ['-nostdin', '-hide_banner', '-v', 'error', ...run.args]
  return throwIfSandboxFailed(await runSandboxed(sandbox, { ...run, tool: 'ffmpeg', args }))
}

const NOT_OPENED =
  'Files are not opened on this server now, since its sandbox does not run. Its log and `reelgate doctor` say what to do; then try again.'

/** A failure of the host, not of the video. */
function throwIfSandboxFailed(end: MediaEnd): MediaEnd {
  if (end.exitCode !== 0 && /^(bwrap|prlimit): /.test(end.stderr))
    throw new Failure('unavailable', `the sandbox did not start: ${end.stderr.trim()}`)
  return end
}

/** A reader that collects an output up to a limit. */
export function collect(maxBytes: number): { reader: Reader; bytes: () => Buffer } {
  const parts: Buffer[] = []
  return {
    reader: async (bytes) => {
      for await (const part of limitBytes(bytes, maxBytes, () => new Error('the output is longer than expected')))
        parts.push(part)
    },
    bytes: () => Buffer.concat(parts),
  }
}

type SandboxedRun = Pick<MediaRun, 'stdout' | 'pipes' | 'limits' | 'signal'> & {
  tool: MediaRun['tool'] | 'prlimit'
  source?: SealedSource
  stdin?: Readable
  args: readonly string[]
}

function withCode(error: Error, cause: Error): Error {
  return Object.assign(error, 'code' in cause ? { code: cause.code } : {})
}

/** What a run needs of a sandbox; without `bubblewrap` only limits apply. */
type SandboxTools = Pick<Sandbox, 'tools'> & Partial<Pick<Sandbox, 'bubblewrap' | 'visible'>>

async function runSandboxed(sandbox: SandboxTools, run: SandboxedRun): Promise<MediaEnd> {
  const pipes = run.pipes ?? []
  const filter = sandbox.bubblewrap ? systemCallFilter() : undefined
  const child = spawn(sandbox.tools.prlimit, sandboxedArgs(sandbox, run), {
    stdio: [
      run.stdin ? 'pipe' : 'ignore',
      run.stdout ? 'pipe' : 'ignore',
      'pipe',
      ...[...pipes, ...(filter ? [filter] : [])].map(() => 'pipe' as const),
    ],
    detached: true, // its own process group, so that its children are killed with it
    env: {},
    cwd: '/',
  })
  const killGroup = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch (error) {
      if (!isNoSuchProcess(error)) throw error
    }
  }
  let outOfTime = false
  const wallTimer = setTimeout(() => {
    outOfTime = true
    killGroup()
  }, run.limits.wallS * 1000)
  run.signal?.addEventListener('abort', killGroup, { once: true })
  try {
    const ended = new Promise<number>((resolve, reject) => {
      // Node's error contains the arguments, and with them the source's key, which must not reach the log.
      child.once('error', (error) => reject(withCode(new Error(`${run.tool} did not start`), error)))
      child.once('exit', killGroup) // a grandchild would keep the pipes open
      child.once('close', (code, signal) => resolve(code ?? SIGNAL_EXIT_BASE + (signal ? os.constants.signals[signal] : 0)))
    })
    if (child.pid === undefined) await ended // throws: with too many open files there are no outputs either
    if (run.signal?.aborted) killGroup() // between the first check and the listener
    if (filter) writeInput(child.stdio[filterPipe(run)], filter)
    if (run.stdin) pipeInput(run.stdin, child.stdin)

    const errors = { tail: Buffer.alloc(0), lines: 0 }
    const reads = [
      readOutput(child.stderr, async (bytes) => keepTail(bytes, errors)),
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
    return { exitCode: exit.value, errorLines: errors.lines, stderr: errors.tail.toString('utf8'), outOfTime }
  } finally {
    clearTimeout(wallTimer)
    run.signal?.removeEventListener('abort', killGroup)
  }
}

/** Not awaited: a child that does not read all of it fails by itself. */
function writeInput(stream: unknown, bytes: Buffer) {
  if (!(stream instanceof Writable)) throw new Error('the child has no such input')
  stream.on('error', () => undefined).end(bytes)
}

/** A child that has ended reads no more: the rest is dropped. */
function pipeInput(bytes: Readable, stream: Writable | null) {
  if (!stream) throw new Error('the child has no standard input')
  stream.on('error', () => undefined).on('close', () => bytes.resume())
  bytes.on('close', () => stream.end()).pipe(stream)
}

async function readOutput(stream: unknown, reader: Reader) {
  if (!(stream instanceof Readable)) throw new Error('the child has no such output')
  await reader(stream)
}

async function keepTail(bytes: Readable, errors: { tail: Buffer; lines: number }) {
  for await (const part of bytes) {
    for (const byte of part) if (byte === 0x0a) errors.lines += 1
    errors.tail = Buffer.concat([errors.tail, part]).subarray(-STDERR_TAIL_BYTES)
  }
}

function mediaArgs(sandbox: Sandbox, run: MediaRun): string[] {
  const { tool, media = 'video', source, isPiped, inputArgs = [], outputArgs } = run
  const decryption = isPiped ? [] : ['-decryption_key', source.keyHex, '-decryption_iv', source.ivHex]
  // Demuxers that seek to the end (MXF, FLV) need the true end: `crypto` includes the padding.
  const file = `subfile,,start,0,end,${source.sizeBytes},,:crypto:${sandbox.bubblewrap ? '/in' : path.resolve(source.path)}`
  return [
    // Damage is judged by the output, not by the share of failed packets: some files have thousands of empty ones.
    ...(tool === 'ffmpeg' ? ['-nostdin', '-max_error_rate', '1'] : []),
    ...['-hide_banner', '-v', 'error', '-protocol_whitelist', 'file,crypto,subfile,pipe', '-format_whitelist', DEMUXERS[media]],
    ...['-max_pixels', String(MAX_PIXELS), ...decryption, ...inputArgs, '-i', isPiped ? 'pipe:0' : file],
    ...outputArgs,
  ]
}

/** The pipe from which bubblewrap reads its filter: the one after the outputs. */
function filterPipe({ pipes = [] }: Pick<MediaRun, 'pipes'>): number {
  return 3 + pipes.length
}

function sandboxedArgs({ tools, bubblewrap, visible = [] }: SandboxTools, run: SandboxedRun): string[] {
  const { tool, source, limits, args } = run
  const memoryBytes = limits.memoryBytes ?? MEMORY_BYTES
  // No file may grow by a byte: outputs are pipes.
  const limited = ['--fsize=0', '--core=0', `--as=${memoryBytes}`, `--cpu=${Math.ceil(limits.cpuS)}`, '--']
  if (!bubblewrap || !tools.bwrap) return [...limited, tools[tool], ...args]
  return [
    ...limited,
    ...[tools.bwrap, '--unshare-all', '--die-with-parent', '--new-session', '--cap-drop', 'ALL', '--clearenv'],
    ...['--seccomp', String(filterPipe(run))],
    ...visible.flatMap((visiblePath) => ['--ro-bind', visiblePath, visiblePath]),
    ...['--ro-bind-try', '/etc/ld.so.cache', '/etc/ld.so.cache', '--ro-bind', tools.prlimit, tools.prlimit],
    // No /proc: ffmpeg does not need it, and a container may not mount one.
    ...['--dev', '/dev', '--tmpfs', '/tmp', '--chdir', '/tmp', '--ro-bind', tools[tool], tools[tool]],
    ...(source ? ['--ro-bind', path.resolve(source.path), '/in'] : []),
    // Set inside: outside, all processes of this user would count.
    ...[tools.prlimit, `--nproc=${maxThreads()}`, '--', tools[tool], ...args],
  ]
}

/** At most our own limit, which the child may not raise. */
function maxThreads(): number {
  const [, ours] = /^Max processes +\S+ +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
  return Math.min(MAX_THREADS, Number(ours ?? MAX_THREADS))
}

const TRIAL_LIMITS = { cpuS: 10, wallS: 30 }

/** The version of ffmpeg, run without bubblewrap. @throws Failure `unavailable` when it does not start */
export async function readVersion({ tools }: Pick<Sandbox, 'tools'>): Promise<string> {
  const { version } = await askVersion({ tools })
  if (version === undefined)
    throw new Failure('unavailable', 'ffmpeg is installed but does not start: run ffmpeg -version to see why')
  return version
}

type VersionAnswer = { version: string | undefined; end: MediaEnd }

async function askVersion(sandbox: SandboxTools): Promise<VersionAnswer> {
  const output = collect(64 * 1024)
  const end = await runSandboxed(sandbox, { tool: 'ffmpeg', args: ['-version'], stdout: output.reader, limits: TRIAL_LIMITS })
  const [, version] = end.exitCode === 0 ? (/^ffmpeg version (\S+)/.exec(output.bytes().toString('utf8')) ?? []) : []
  return { version, end }
}

/** The loader's list, as `ldd` prints it. A statically linked program prints its version instead. */
async function listLibraries(program: string): Promise<string[]> {
  const child = spawn(program, ['-version'], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { LD_TRACE_LOADED_OBJECTS: '1' },
    timeout: TRIAL_LIMITS.wallS * 1000,
    killSignal: 'SIGKILL',
  })
  child.on('error', () => undefined) // no list then; bubblewrap's own error says more
  return child.pid === undefined ? [] : librariesIn(await text(child.stdout))
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

function isNoSuchProcess(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ESRCH'
}
