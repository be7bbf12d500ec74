import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { footage } from '../test/footage.ts'
import { CACHE } from './row.ts'

/** Eight seconds of footage, repeated six times, with noise, so that 720p needs 2 Mbit/s like a video with more motion. */
export function make48SVideo(): Promise<string> {
  const encode = ['-c:v', 'libx264', '-preset', 'veryfast', '-crf', '20', '-c:a', 'aac', '-b:a', '128k']
  return makeOnce('video-48-s', ['-stream_loop', '5', '-i', footage.movieHello, '-vf', 'noise=alls=6:allf=t', ...encode])
}

/** Three minutes of footage, repeated ten times. */
export function makeHalfHourVideo(): Promise<string> {
  return makeOnce('video-half-an-hour', ['-stream_loop', '9', '-i', footage.wannaworktogether, '-c', 'copy'])
}

/** So many minutes of the same. */
export function makeLongVideo(minutes: number): Promise<string> {
  const args = ['-stream_loop', '-1', '-i', footage.wannaworktogether, '-t', String(60 * minutes), '-c', 'copy']
  return makeOnce(`video-${minutes}-min`, args)
}

/** 1080p of 13 Mbit/s with noise, as phones record it, of so many seconds. */
export function makePhoneVideo(seconds: number): Promise<string> {
  const rate = ['-b:v', '13M', '-maxrate', '14M', '-bufsize', '13M', '-g', '60', '-pix_fmt', 'yuv420p']
  const encode = ['-vf', 'scale=1920:1080,noise=alls=12:allf=t,fps=30', '-c:v', 'libx264', '-preset', 'fast', ...rate]
  return makeOnce(`phone-${seconds}-s`, [
    ...['-stream_loop', '-1', '-i', footage.cockatoo, '-t', String(seconds), '-an', ...encode],
  ])
}

/** @returns the path of an MP4 that is kept between runs */
async function makeOnce(name: string, args: readonly string[]): Promise<string> {
  const path = join(CACHE, `${name}.mp4`)
  if (existsSync(path)) return path
  const unfinished = join(CACHE, `unfinished-${name}-${process.pid}.mp4`)
  await promisify(execFile)('ffmpeg', ['-nostdin', '-v', 'error', ...args, '-y', unfinished])
  await rename(unfinished, path)
  return path
}
