import { readFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import type { MediaRun } from './media-run.ts'
import type { Tools } from './tools.ts'

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

/** A run as the sandbox sees it: a program, the file that it may open, its limits and its arguments. */
export type SandboxedCall = Pick<MediaRun, 'pipes' | 'limits'> & {
  tool: MediaRun['tool'] | 'prlimit'
  file?: string
  args: readonly string[]
}

export function mediaArgs({ bubblewrap }: SandboxTools, run: MediaRun, sourceFile: string): string[] {
  const { tool, media = 'video', source, isPiped, inputArgs = [], inputs = [inputArgs], outputArgs } = run
  const decryption = isPiped ? [] : ['-decryption_key', source.keyHex, '-decryption_iv', source.ivHex]
  // Demuxers that seek to the end (MXF, FLV) need the true end: `crypto` includes the padding.
  const file = `subfile,,start,0,end,${source.sizeBytes},,:crypto:${bubblewrap ? '/in' : path.resolve(sourceFile)}`
  return [
    // Damage is judged by the output, not by the share of failed packets: some files have thousands of empty ones.
    ...(tool === 'ffmpeg' ? ['-nostdin', '-max_error_rate', '1'] : []),
    ...['-hide_banner', '-v', 'error'],
    // What an input may be holds for that one alone.
    ...inputs.flatMap((args) => [
      ...['-protocol_whitelist', 'file,crypto,subfile,pipe', '-format_whitelist', DEMUXERS[media]],
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

export function sandboxedArgs({ tools, bubblewrap, visible = [] }: SandboxTools, run: SandboxedCall): string[] {
  const { tool, file, limits, args } = run
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
    ...(file ? ['--ro-bind', path.resolve(file), '/in'] : []),
    // Set inside: outside, all processes of this user would count.
    ...[tools.prlimit, `--nproc=${maxThreads()}`, '--', tools[tool], ...args],
  ]
}

/** At most our own limit, which the child may not raise. */
function maxThreads(): number {
  const [, ours] = /^Max processes +\S+ +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
  return Math.min(MAX_THREADS, Number(ours ?? MAX_THREADS))
}
