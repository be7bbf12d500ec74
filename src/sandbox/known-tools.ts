import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'

// Finding out what ffmpeg needs takes three of its starts, a quarter of the processor time of a server's start. The result is kept in
// the cache folder for as long as the programs and the loader's list of libraries are the same files.

/** What does not change while the programs are the same. */
type KnownTools = { libraries: readonly string[]; ffmpegVersion: string }

/** @param programs absolute paths. @returns undefined when one of them was replaced, or nothing is kept */
export function readKnownTools(cacheDir: string, programs: readonly string[]): KnownTools | undefined {
  try {
    const { files, libraries, ffmpegVersion } = JSON.parse(readFileSync(fileIn(cacheDir), 'utf8'))
    const isKnown = files === identify(programs) && Array.isArray(libraries) && typeof ffmpegVersion === 'string'
    return isKnown ? { libraries: libraries.map(String), ffmpegVersion } : undefined
  } catch {
    return undefined // not written yet, or not readable
  }
}

/** Where the folder cannot be written, the next start finds out again. */
export function keepKnownTools(cacheDir: string, programs: readonly string[], known: KnownTools): void {
  const unfinished = `${fileIn(cacheDir)}.${process.pid}`
  try {
    mkdirSync(cacheDir, { recursive: true })
    writeFileSync(unfinished, JSON.stringify({ files: identify(programs), ...known }))
    renameSync(unfinished, fileIn(cacheDir))
  } catch {
    // a cache
  }
}

function fileIn(cacheDir: string): string {
  return path.join(cacheDir, 'ffmpeg.json')
}

function identify(programs: readonly string[]): string {
  return [...programs, '/etc/ld.so.cache']
    .map((file) => {
      const found = statSync(file, { throwIfNoEntry: false })
      return [file, found?.ino, found?.size, found?.mtimeMs, found?.ctimeMs].join(' ')
    })
    .join('\n')
}
