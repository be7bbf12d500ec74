import { Failure } from '../errors.ts'

const MAX_LENGTH = 500

/**
 * Where the viewers of an account watch: the address that public pages of its videos lead to.
 * @returns undefined: not given; null: none
 * @throws Failure `invalid`
 */
export function readWatchUrl(url: string | null | undefined): string | null | undefined {
  if (!url) return url === undefined ? undefined : null
  const parsed = url.length <= MAX_LENGTH && URL.canParse(url) ? new URL(url) : undefined
  const isForBrowsers = parsed?.protocol === 'https:' || parsed?.protocol === 'http:'
  // What is parsed leniently, such as line breaks, is not kept; the host is the owner's own, never the place of an id.
  if (!isForBrowsers || /[\s\p{Cc}]/u.test(url) || parsed.username || parsed.password || /[{}%]/.test(parsed.host))
    throw new Failure(
      'invalid',
      `watchUrl is an address of your site that begins with https:// or http://, of at most ${MAX_LENGTH} characters, such as https://school.example/lessons/{id}.`,
    )
  return url
}

/** The page on which a video is watched. @param watchUrl as `readWatchUrl` lets it through */
export function watchUrlOf(watchUrl: string, videoId: string): string {
  return watchUrl.replaceAll('{id}', videoId)
}
