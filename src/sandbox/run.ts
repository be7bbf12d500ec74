import { createDecipheriv } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import { Failure } from '../errors.ts'
import { mediaArgs, type Program } from './arguments.ts'
import { isEncodingAllowed, type Sandbox } from './bubblewrap.ts'
import { runSandboxed } from './child-process.ts'
import { readOn, serveBlocks } from './in-place.ts'
import { LOOPBACK } from './loopback-port.ts'
import { raiseMatroskaTimes } from './matroska.ts'
import type { MediaEnd, MediaRun, SealedBlocks, SealedSource } from './media-run.ts'
import { findTool } from './tools.ts'

/**
 * Runs ffmpeg or ffprobe on a hostile file: no network, no environment, nothing readable but its libraries and the source, nothing
 * writable, no other process, limited memory and time. Resolves when the child has exited and every reader is done.
 * @throws the signal's reason when aborted, what opening the source or a reader threw, or an error with the code of why it did not start. An exit code is a
 *   result, not an error. Failure `unavailable` where bubblewrap does not start, unless it never did and may be missing
 * @see docs of bubblewrap and prlimit for the flags; each was tried with its attack in test/encode/sandbox.test.ts
 */
export async function runMedia(sandbox: Sandbox, run: MediaRun): Promise<MediaEnd> {
  run.signal?.throwIfAborted()
  const { openInPlace } = run.source
  if (!openInPlace) return run.source.withLocalCopy((file) => runOnFile(sandbox, run, file))
  await using blocks = await openInPlace()
  return await runInPlace(sandbox, run, blocks)
}

async function runOnFile(sandbox: Sandbox, run: MediaRun, file: string): Promise<MediaEnd> {
  if (run.isPiped) return runOnStream(sandbox, run, createReadStream(file, { highWaterMark: 2 ** 20 }))
  if (!(await isEncodingAllowed(sandbox))) throw new Failure('unavailable', NOT_OPENED)
  const args = mediaArgs(sandbox, run, file)
  return throwIfSandboxFailed(await runSandboxed(sandbox, { ...run, file, args }))
}

async function runInPlace(sandbox: Sandbox, run: MediaRun, blocks: SealedBlocks): Promise<MediaEnd> {
  if (run.isPiped) return runOnStream(sandbox, run, Readable.from(readOn(blocks)))
  if (!(await isEncodingAllowed(sandbox))) throw new Failure('unavailable', NOT_OPENED)
  const unread = new AbortController()
  const signal = AbortSignal.any([unread.signal, ...(run.signal ? [run.signal] : [])])
  await using server = serveBlocks(blocks, (error) => unread.abort(error))
  const nsenter = findTool('nsenter', sandbox.folders)
  const url = sandbox.bubblewrap ? `http://${LOOPBACK.host}:${LOOPBACK.port}/` : await server.listen()
  const args = mediaArgs(sandbox, run, { url })
  const listenIn = (pid: number) => server.listenIn(pid, nsenter)
  return throwIfSandboxFailed(await runSandboxed(sandbox, { ...run, signal, args, listenIn }))
}

/** The stored file from its start to its end. */
async function runOnStream(sandbox: Sandbox, run: MediaRun, sealed: Readable): Promise<MediaEnd> {
  try {
    if (!(await isEncodingAllowed(sandbox))) throw new Failure('unavailable', NOT_OPENED)
    const stdin = Readable.from(raiseMatroskaTimes(decrypt(sealed, run.source)))
    const end = await runSandboxed(sandbox, { ...run, stdin, args: mediaArgs(sandbox, run, '') })
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
  { samples: { format, rateHz, channels, bytes }, ...run }: PipedRun & { samples: RawAudio },
): Promise<MediaEnd> {
  const inputArgs = ['-ar', String(rateHz), '-ac', String(channels)]
  return runPiped(sandbox, { ...run, format, bytes, inputArgs })
}

/**
 * Runs ffmpeg in the same sandbox on an init segment and segments of fragmented MP4, with or without gaps between them.
 * @throws as `runMedia` does, and what the fragments throw
 */
export async function runOnFragments(
  sandbox: Sandbox,
  { fragments, ...run }: PipedRun & { fragments: Readable; inputArgs: readonly string[] },
): Promise<MediaEnd> {
  // Unheard it would end this process, and ffmpeg would wait for more.
  const broken = new AbortController()
  fragments.once('error', (error) => broken.abort(error))
  const signal = AbortSignal.any([broken.signal, ...(run.signal ? [run.signal] : [])])
  return runPiped(sandbox, { ...run, signal, format: 'mov', bytes: fragments })
}

/**
 * Runs ffmpeg on raw frames of planar 4:2:0 that another run has decoded, with the devices of this machine. Nothing of a file reaches it but the
 * colors of pixels, so it runs outside of bubblewrap, where drivers find what they need.
 * @throws as `runMedia` does
 */
export async function runOnFrames(
  { tools }: Pick<Sandbox, 'tools'>,
  {
    frames: { widthPx, heightPx, rate, bytes },
    inputArgs,
    ...run
  }: PipedRun & { frames: RawVideo; inputArgs: readonly string[] },
): Promise<MediaEnd> {
  run.signal?.throwIfAborted()
  const format = ['-pixel_format', 'yuv420p', '-video_size', `${widthPx}x${heightPx}`, '-framerate', rate]
  const args = pipedArgs({ format: 'rawvideo', inputArgs: [...inputArgs, ...format], outputArgs: run.outputArgs })
  return runSandboxed({ tools }, { ...run, tool: 'ffmpeg', usesDevices: true, stdin: bytes, args })
}

/** Frames one after another, at this rate per second. */
type RawVideo = { widthPx: number; heightPx: number; rate: string; bytes: Readable }

/** A run that reads its input from a pipe. */
type PipedRun = Omit<MediaRun, 'tool' | 'media' | 'source' | 'inputArgs'>

async function runPiped(
  sandbox: Sandbox,
  { format, bytes, inputArgs, outputArgs, ...run }: PipedRun & { format: string; bytes: Readable; inputArgs: readonly string[] },
): Promise<MediaEnd> {
  run.signal?.throwIfAborted()
  if (!(await isEncodingAllowed(sandbox))) throw new Failure('unavailable', NOT_OPENED)
  const args = pipedArgs({ format, inputArgs, outputArgs })
  return throwIfSandboxFailed(await runSandboxed(sandbox, { ...run, tool: 'ffmpeg', stdin: bytes, args }))
}

function pipedArgs({
  format,
  inputArgs,
  outputArgs,
}: { format: string } & Record<'inputArgs' | 'outputArgs', readonly string[]>) {
  const guard = ['-hide_banner', '-v', 'error', '-protocol_whitelist', 'pipe', '-format_whitelist', format]
  return [...guard, '-f', format, ...inputArgs, '-i', 'pipe:0', ...outputArgs]
}

/** Samples one after another; `format` is ffmpeg's name of how one is stored. */
type RawAudio = { format: 'f32le'; rateHz: number; channels: number; bytes: Readable }

/**
 * Runs ffmpeg without an input file, in the same sandbox if there is one: its own filters generate video and audio.
 * @throws as `runMedia` does
 */
export async function runMediaToFiles(
  sandbox: Sandbox,
  run: Pick<MediaRun, 'stdout' | 'pipes' | 'limits' | 'signal'> & { args: readonly string[] },
): Promise<MediaEnd> {
  run.signal?.throwIfAborted()
  const args = ['-nostdin', '-hide_banner', '-v', 'error', ...run.args]
  return throwIfSandboxFailed(await runSandboxed(sandbox, { ...run, tool: 'ffmpeg', args }))
}

/**
 * Runs a program of the operator's in the same sandbox: without a network, and with nothing to read but the system's programs and its files.
 * @throws as `runMedia` does
 */
export async function runProgram(
  sandbox: Sandbox,
  {
    program,
    ...run
  }: Pick<MediaRun, 'stdout' | 'limits' | 'signal'> & {
    program: Omit<Program, 'hidden'>
    args: readonly string[]
    stdin: Readable
    onStderr?(part: Buffer): void
  },
): Promise<MediaEnd> {
  run.signal?.throwIfAborted()
  if (!(await isEncodingAllowed(sandbox))) throw new Failure('unavailable', NOT_OPENED)
  return throwIfSandboxFailed(
    await runSandboxed(sandbox, { ...run, tool: 'prlimit', program: { ...program, hidden: sandbox.hidden } }),
  )
}

const NOT_OPENED =
  'Files are not opened on this server now, since its sandbox does not run. Its log and `reelgate doctor` say what to do; then try again.'

/** A failure of the host, not of the video. */
function throwIfSandboxFailed(end: MediaEnd): MediaEnd {
  if (end.exitCode !== 0 && /^(bwrap|prlimit): /.test(end.stderr))
    throw new Failure('unavailable', `the sandbox did not start: ${end.stderr.trim()}`)
  return end
}
