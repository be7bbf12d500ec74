import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

export type FilmRecipe = { seconds?: number; size?: `${number}x${number}`; rate?: number; sound?: boolean }

/** Made films by their recipe: a folder of this process, gone with it. */
const made = new Map<string, Promise<string>>()
let folder: string | undefined

/**
 * Makes a film small enough to be encoded in an instant: a moving test picture, with a tone or without. The same recipe gives the
 * same file again.
 * @returns the absolute path of an MP4
 */
export function makeFilm({ seconds = 3, size = '64x64', rate = 25, sound = true }: FilmRecipe = {}): Promise<string> {
  const name = `${seconds}s-${size}-${rate}${sound ? '' : '-silent'}.mp4`
  const film = made.get(name) ?? render(join(filmFolder(), name), { seconds, size, rate, sound })
  made.set(name, film)
  return film
}

async function render(path: string, { seconds, size, rate, sound }: Required<FilmRecipe>): Promise<string> {
  const picture = ['-f', 'lavfi', '-i', `testsrc2=size=${size}:rate=${rate}:duration=${seconds}`]
  const tone = sound ? ['-f', 'lavfi', '-i', `sine=frequency=440:duration=${seconds}`, '-c:a', 'aac', '-b:a', '64k'] : []
  const encode = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-g', String(rate)]
  await promisify(execFile)('ffmpeg', ['-nostdin', '-v', 'error', ...picture, ...tone, ...encode, '-y', path])
  return path
}

function filmFolder(): string {
  if (folder === undefined) {
    const own = mkdtempSync(join(tmpdir(), 'reelgate-films-'))
    process.once('exit', () => rmSync(own, { recursive: true, force: true }))
    folder = own
  }
  return folder
}
