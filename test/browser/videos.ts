import { untilFinished } from '../data-folder.ts'
import type { Reelgate } from '../in-process.ts'
import { makeFilm } from '../videos.ts'

/** A film of one minute, small enough to be encoded in a moment: a moving picture and a tone. */
export const makeSmallFilm = () => makeFilm({ seconds: 60, size: '320x180' })

/** Uploads that film. Resolves once all of it is there. */
export async function addSmallFilm(reelgate: Reelgate, title: string): Promise<string> {
  const videoId = await reelgate.owner.upload(title, await makeSmallFilm())
  await untilFinished(reelgate, videoId)
  return videoId
}
