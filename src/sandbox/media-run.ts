import os from 'node:os'
import type { Readable } from 'node:stream'

/** A source as it is stored: AES-128-CBC. ffmpeg decrypts it while reading, with seeks, so that no decrypted copy is needed. */
export type SealedSource = {
  /** Gives the path of the stored file, valid until `use` resolves. */
  withLocalCopy<T>(use: (path: string) => Promise<T>): Promise<T>
  /** Where it is too large for a copy: opens it to be read in place. */
  openInPlace?: (() => Promise<SealedBlocks>) | undefined
  keyHex: string
  ivHex: string
  /** Of the upload, without the padding. */
  sizeBytes: number
}

/** A stored file, in blocks of a MiB. */
export type SealedBlocks = AsyncDisposable & {
  /** As it is stored, with the padding. */
  sizeBytes: number
  /** A block, verified. @throws when it cannot be read now, or is lost */
  read(number: number): Promise<Buffer>
}

/** Reads one output of the child to its end. When it throws, the child is killed. Slow reading slows the child down. */
export type Reader = (bytes: Readable) => Promise<void>

export type MediaRun = {
  tool: 'ffmpeg' | 'ffprobe'
  /** What may be opened; by default a video. */
  media?: 'video' | 'image'
  source: SealedSource
  /**
   * Whether the source is read from a pipe, from its start to its end: decrypted here, which is eight times as fast, but without seeks. A
   * Matroska gets times above zero.
   */
  isPiped?: boolean | undefined
  /** Options of the input, such as `-ss`. */
  inputArgs?: readonly string[]
  /** In place of `inputArgs`: the same file is opened several times, each time with these options. */
  inputs?: readonly (readonly string[])[]
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

/** Added to the number of the signal that ended a process, as shells do. */
export const SIGNAL_EXIT_BASE = 128
/** Killed by us, by its processor limit, or because the machine ran out of memory. */
export const SIGKILL_EXIT = SIGNAL_EXIT_BASE + os.constants.signals.SIGKILL

/** Whether a run crashed or was killed. The host may be the cause, so this is no finding about the video. */
export function wasKilled({ exitCode }: MediaEnd): boolean {
  return exitCode > SIGNAL_EXIT_BASE
}
