import { readFileSync, statSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import type { MediaRun } from './media-run.ts'
import type { Tools } from './tools.ts'
import { isWithin, realPath } from './visible-paths.ts'

// How a run is called: what ffmpeg may open, and what it may reach and use.

// More pixels than any camera's video; checked by the decoders before they ask for memory.
export const MAX_PIXELS = 40_000_000
// Without demuxers that open other files (hls, concat, dash, sdp, image2): this list prevents it, not the protocol list.
const DEMUXERS = {
  video: 'mov,matroska,webm,avi,flv,mpegts,mpeg,ogg,asf,mxf,wav,aiff,caf,au,mp3,aac,ac3,eac3,flac',
  image: 'png_pipe,jpeg_pipe,webp_pipe,gif_pipe',
}
/**
 * Packets of Matroska below zero have no time of their own. ffmpeg counts them back from the first that has one if it is among so many;
 * by default 50, which is 1 s of Opus. Packets of Opus last for 2.5 ms at least.
 */
const MAX_UNTIMED_PACKETS = 5_000
/** Many times what the encoder starts on a large machine. Since 5.14 Linux counts per sandbox; root's are not counted. */
const MAX_THREADS = 1024
// A four-rung 1080p ladder takes 0.5 GB; address space also counts each thread's stack and arena, so it grows with the machine.
const MEMORY_BYTES = 4 * 2 ** 30 + os.availableParallelism() * 2 ** 28

/** What a run needs of a sandbox; without `bubblewrap` only limits apply. */
export type SandboxTools = { tools: Tools; bubblewrap?: boolean; visible?: readonly string[] }

/**
 * A program of the operator's. It may start others, read these files and folders besides the system's programs, and write into its `/tmp`.
 * `hidden`: what it never sees, whatever folder that is in.
 */
export type Program = { path: string; files: readonly string[]; hidden: readonly string[] }

/** Programs of the system, with what they need. */
const SYSTEM_FILES = ['/usr', '/bin', '/lib', '/lib64', '/etc/alternatives', '/etc/ld.so.cache']
/** In memory: eight hours of a WAV of 16 kHz. */
const PROGRAM_TMP_BYTES = 2 ** 30
const SHARED_MEMORY_BYTES = 2 ** 26

/** A run as the sandbox sees it: a program, the file that it may open, its limits and its arguments. */
export type SandboxedCall = Pick<MediaRun, 'pipes' | 'limits'> & {
  tool: MediaRun['tool'] | 'prlimit'
  /** Runs this instead of the tool. */
  program?: Program | undefined
  file?: string
  /** It reads nothing that came from outside but frames, and needs devices: it runs outside of bubblewrap, with all the memory that drivers map. */
  usesDevices?: boolean
  /** Lets it connect to what this opens in its network, before it starts. @param pid of a process in that */
  listenIn?: ((pid: number) => Promise<void>) | undefined
  args: readonly string[]
}

/** @param stored the path of the stored file, or where it is read in place */
export function mediaArgs({ bubblewrap }: SandboxTools, run: MediaRun, stored: string | { url: string }): string[] {
  const { tool, media = 'video', source, isPiped, inputArgs = [], inputs = [inputArgs], outputArgs } = run
  const decryption = isPiped ? [] : ['-decryption_key', source.keyHex, '-decryption_iv', source.ivHex]
  // Demuxers that seek to the end (MXF, FLV) need the true end: `crypto` includes the padding.
  const isInPlace = typeof stored !== 'string'
  const sealed = isInPlace ? stored.url : bubblewrap ? '/in' : path.resolve(stored)
  const file = `subfile,,start,0,end,${source.sizeBytes},,:crypto:${sealed}`
  const protocols = `file,crypto,subfile,pipe${isInPlace ? ',http,tcp' : ''}`
  return [
    // Damage is judged by the output, not by the share of failed packets: some files have thousands of empty ones.
    ...(tool === 'ffmpeg' ? ['-nostdin', '-max_error_rate', '1'] : []),
    ...['-hide_banner', '-v', 'error'],
    // What an input may be holds for that one alone.
    ...inputs.flatMap((args) => [
      ...['-protocol_whitelist', protocols, '-format_whitelist', DEMUXERS[media]],
      ...['-max_pixels', String(MAX_PIXELS), '-max_ts_probe', String(MAX_UNTIMED_PACKETS)],
      ...decryption,
      ...args,
      '-i',
      isPiped ? 'pipe:0' : file,
    ]),
    ...outputArgs,
  ]
}

/** The pipe from which bubblewrap reads its filter: the one after the outputs. */
export function filterPipe({ pipes = [] }: Pick<MediaRun, 'pipes'>): number {
  return 3 + pipes.length
}

/** The pipes through which bubblewrap says which process it is about to start, and waits until it may. */
export const startPipes = (run: Pick<MediaRun, 'pipes'>) => ({ info: filterPipe(run) + 1, block: filterPipe(run) + 2 })

/** In place of all devices: those would put the program into a second user namespace, in which nothing can join its network. */
const DEVICES = ['/dev/null', '/dev/zero', '/dev/random', '/dev/urandom']

function startArgs(run: SandboxedCall): string[] {
  const { info, block } = startPipes(run)
  const devices = DEVICES.flatMap((device) => ['--dev-bind', device, device])
  return ['--info-fd', String(info), '--block-fd', String(block), ...devices]
}

export function sandboxedArgs({ tools, bubblewrap, visible = [] }: SandboxTools, run: SandboxedCall): string[] {
  const { tool, file, limits, args } = run
  if (run.program) return programArgs(tools, bubblewrap, { ...run, program: run.program })
  if (run.usesDevices) return ['--core=0', `--cpu=${Math.ceil(limits.cpuS)}`, '--', tools[tool], ...args]
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
    ...(run.listenIn ? startArgs(run) : ['--dev', '/dev']),
    ...['--tmpfs', '/tmp', '--chdir', '/tmp', '--ro-bind', tools[tool], tools[tool]],
    ...(file ? ['--ro-bind', path.resolve(file), '/in'] : []),
    // Set inside: outside, all processes of this user would count.
    ...[tools.prlimit, `--nproc=${maxThreads()}`, '--', tools[tool], ...args],
  ]
}

function programArgs(tools: Tools, bubblewrap: boolean | undefined, run: SandboxedCall & { program: Program }): string[] {
  const { limits, args, program } = run
  const memoryBytes = limits.memoryBytes ?? MEMORY_BYTES
  const limited = ['--core=0', `--fsize=${PROGRAM_TMP_BYTES}`, `--as=${memoryBytes}`, `--cpu=${Math.ceil(limits.cpuS)}`, '--']
  if (!bubblewrap || !tools.bwrap) return [...limited, program.path, ...args]
  const seen = [...SYSTEM_FILES, ...program.files, program.path, tools.prlimit]
  const emptied = seen.flatMap((file) => findHidden(file, program.hidden))
  return [
    ...limited,
    ...[tools.bwrap, '--unshare-all', '--die-with-parent', '--new-session', '--cap-drop', 'ALL', '--clearenv'],
    ...['--setenv', 'PATH', '/usr/local/bin:/usr/bin:/bin', '--seccomp', String(filterPipe(run))],
    ...['--dev', '/dev', '--size', String(SHARED_MEMORY_BYTES), '--tmpfs', '/dev/shm'],
    ...['--size', String(PROGRAM_TMP_BYTES), '--tmpfs', '/tmp', '--chdir', '/tmp'],
    ...seen.flatMap((file) => ['--ro-bind-try', file, file, ...emptied.filter(({ of }) => of === file).flatMap(emptyingArgs)]),
    // At the end: until then mounts are added in them, such as the program's in an installation that is emptied.
    ...[...emptied.filter(({ isFolder }) => isFolder).map(({ place }) => place), '/dev', '/'].flatMap((place) => [
      '--remount-ro',
      place,
    ]),
    ...[tools.prlimit, `--nproc=${maxThreads()}`, '--', program.path, ...args],
  ]
}

/** What is hidden in a folder, under each name that the folder has: `/lib` is often a link to `/usr/lib`. */
function findHidden(folder: string, hidden: readonly string[]) {
  return hidden.map(realPath).flatMap((secret) => {
    const isFolder = statSync(secret, { throwIfNoEntry: false })?.isDirectory()
    if (isFolder === undefined || !isWithin(secret, realPath(folder))) return []
    return [{ of: folder, place: path.join(folder, path.relative(realPath(folder), secret)), isFolder }]
  })
}

function emptyingArgs({ place, isFolder }: { place: string; isFolder: boolean }): string[] {
  return isFolder ? ['--tmpfs', place] : ['--ro-bind', '/dev/null', place]
}

/** At most our own limit, which the child may not raise. */
function maxThreads(): number {
  const [, ours] = /^Max processes +\S+ +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
  return Math.min(MAX_THREADS, Number(ours ?? MAX_THREADS))
}
