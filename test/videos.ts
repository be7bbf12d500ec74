import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { link, mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

export type VideoRecipe = {
  seconds?: number
  size?: `${number}x${number}`
  rate?: number
  audioTrack?: boolean
  /** Of one dark colour, so that what else is on the screen can be found by its own. */
  dark?: boolean
}

/** Videos are kept under the hash of what made them, so that only the first run of the tests makes them. */
const FOLDER = join(import.meta.dirname, '../.cache/videos')

/**
 * Makes a video small enough to be encoded in an instant: a moving test picture, with a tone or without. The same recipe gives the
 * same file again.
 * @returns the absolute path of an MP4
 */
export async function makeVideo({
  seconds = 3,
  size = '64x64',
  rate = 25,
  audioTrack = true,
  dark = false,
}: VideoRecipe = {}): Promise<string> {
  const videoTrack = [
    '-f',
    'lavfi',
    '-i',
    `${dark ? 'color=c=0x203040:' : 'testsrc2='}size=${size}:rate=${rate}:duration=${seconds}`,
  ]
  const tone = audioTrack ? ['-f', 'lavfi', '-i', `sine=frequency=440:duration=${seconds}`, '-c:a', 'aac', '-b:a', '64k'] : []
  const encode = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-g', String(rate)]
  return runOnce([...videoTrack, ...tone, ...encode])
}

/** A tone. @returns the absolute path of an M4A */
export async function makeSound(seconds: number): Promise<string> {
  return runOnce(['-f', 'lavfi', '-i', `sine=frequency=440:duration=${seconds}`, '-c:a', 'aac', '-b:a', '64k'], '.m4a')
}

/** The first seconds of a video, as they are in it. @returns the absolute path of an MP4 */
export async function cutVideo(path: string, seconds: number): Promise<string> {
  return runOnce(['-i', path, '-t', String(seconds), '-c', 'copy'])
}

function runOnce(args: string[], extension = '.mp4'): Promise<string> {
  return keepVideo(args.join(' '), extension, (file) =>
    promisify(execFile)('ffmpeg', ['-nostdin', '-v', 'error', ...args, '-y', file]),
  )
}

/** @param make makes the video of a recipe, in the file that it is given. @returns the absolute path of the kept one */
export async function keepVideo(recipe: string, extension: string, make: (file: string) => Promise<unknown>): Promise<string> {
  const path = join(FOLDER, `${createHash('sha256').update(recipe).digest('hex').slice(0, 16)}${extension}`)
  if (existsSync(path)) return path
  await mkdir(FOLDER, { recursive: true })
  const unfinished = `${path}.${randomBytes(4).toString('hex')}${extension}`
  await make(unfinished)
  await keepFirst(unfinished, path)
  return path
}

/** Moves a made video to where it is kept, unless another test was first: in the other's place, it would end the reading of who sends that one. */
export async function keepFirst(made: string, kept: string): Promise<void> {
  await link(made, kept).catch((error) => {
    if (error.code !== 'EEXIST') throw error
  })
  await rm(made)
}

/** A video of more than 8 MiB, which a bucket takes in parts: most of it is a box that players pass over. */
export async function makeLargeVideo(recipe: VideoRecipe): Promise<Buffer<ArrayBuffer>> {
  const free = Buffer.concat([Buffer.alloc(8), randomBytes(9 * 2 ** 20)])
  free.writeUInt32BE(free.length)
  free.write('free', 4)
  return Buffer.concat([await readFile(await makeVideo(recipe)), free])
}
