import { spawn } from 'node:child_process'
import { accessSync, constants, realpathSync } from 'node:fs'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { Failure } from '../errors.ts'
import { librariesIn } from './visible-paths.ts'

// The programs that read media, wherever the owner has them.

export type Tools = { ffmpeg: string; ffprobe: string; prlimit: string; bwrap?: string }

// The first with -fps_mode.
const MIN_FFMPEG = { major: 5, minor: 1 }

/** Of a start that only asks what is installed. */
export const TRIAL_LIMITS = { cpuS: 10, wallS: 30 }

/** Nightly builds have no such number; they are newer. */
export function assertSupportedVersion(version: string) {
  const [, major = 0, minor = 0] = (/^n?(\d+)\.(\d+)/.exec(version) ?? [0, MIN_FFMPEG.major, MIN_FFMPEG.minor]).map(Number)
  if (major > MIN_FFMPEG.major || (major === MIN_FFMPEG.major && minor >= MIN_FFMPEG.minor)) return
  const needed = `${MIN_FFMPEG.major}.${MIN_FFMPEG.minor}`
  throw new Failure('unavailable', `ffmpeg ${version} is installed, but ${needed} or newer is needed: install a newer one`)
}

/** The loader's list, as `ldd` prints it. A statically linked program prints its version instead. */
export async function listLibraries(program: string): Promise<string[]> {
  const child = spawn(program, ['-version'], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { LD_TRACE_LOADED_OBJECTS: '1' },
    timeout: TRIAL_LIMITS.wallS * 1000,
    killSignal: 'SIGKILL',
  })
  child.on('error', () => undefined) // no list then; bubblewrap's own error says more
  return child.pid === undefined ? [] : librariesIn(await text(child.stdout))
}

export function findTool(name: string, folders: readonly string[]): string | undefined {
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
