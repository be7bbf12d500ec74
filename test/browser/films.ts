import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { untilFinished } from '../data-folder.ts'
import type { Reelgate } from '../reelgate.ts'

/** Uploads a film of one minute, small enough to be encoded in a moment: moving bars and a tone. Resolves once all of it is there. */
export async function addSmallFilm(reelgate: Reelgate, title: string): Promise<string> {
  const videoId = await withSmallFilm((file) => reelgate.owner.upload(title, file))
  await untilFinished(reelgate, videoId)
  return videoId
}

/** Makes that film and gives it away for as long as `use` takes. */
export async function withSmallFilm<T>(use: (file: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-film-'))
  try {
    const file = join(folder, 'film.mp4')
    const picture = ['-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=25:duration=60']
    const sound = ['-f', 'lavfi', '-i', 'sine=frequency=330:duration=60']
    const encode = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-g', '50', '-c:a', 'aac']
    await promisify(execFile)('ffmpeg', ['-nostdin', '-v', 'error', ...picture, ...sound, ...encode, file])
    return await use(file)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
