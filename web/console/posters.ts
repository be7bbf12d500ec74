import type { VideoBody } from '../../src/http/api/video-body.ts'
import { installationUrl } from './urls.ts'

/** The smallest poster that fills this many pixels, at the console's own address; undefined while there is none. */
export function posterUrl({ posters }: Pick<VideoBody, 'posters'>, widthPx: number): string | undefined {
  const bySize = posters.toSorted((a, b) => a.width - b.width)
  const poster = bySize.find(({ width }) => width >= widthPx) ?? bySize.at(-1)
  const file = poster && /[^/]+$/.exec(poster.posterUrl)?.[0]
  return file && installationUrl(`poster/${file}`).href
}
