import { THEME_OPTIONS } from './messages.ts'
import type { ReelgatePlayerAttributes } from './reelgate.d.ts'
import type { VdoPlayer } from './vdo-player.ts'

/** What an embedding page may say of a player, by the names of the player page's options. */
export const OPTIONS = [
  ...([
    'playbackInfo',
    'autoplay',
    'loop',
    'controls',
    'ccLanguage',
    'lang',
    'litemode',
    't',
    'title',
    'transcript',
    'next',
  ] as const),
  ...THEME_OPTIONS,
] as const satisfies readonly (keyof ReelgatePlayerAttributes)[]

/** @param root the installation's address, with a slash at its end */
export function createPlayerFrame(root: string, otp: string, options: Readonly<Record<string, unknown>>): HTMLIFrameElement {
  const address = new URL('player/', root)
  address.searchParams.set('otp', otp)
  for (const name of OPTIONS) {
    const value = options[name]
    if (value !== undefined && value !== null) address.searchParams.set(name, String(value))
  }
  const frame = document.createElement('iframe')
  frame.title = 'Video'
  frame.allow = 'encrypted-media; fullscreen; autoplay; screen-wake-lock'
  frame.referrerPolicy = 'strict-origin' // a whitelist needs the embedding site's origin
  // As high as a container that has a height; in one without, as its width and the video's ratio make it.
  frame.style.cssText = 'display:block;border:0;width:100%;height:100%;aspect-ratio:16/9'
  frame.src = address.href
  return frame
}

/** What the page says of the language of a part of it; undefined: nothing. */
export function languageOf(part: Element | null | undefined): string | undefined {
  return part?.closest('[lang]')?.getAttribute('lang') || undefined
}

/** Gives the frame the video's ratio of width to height, once that is known. */
export function fitToVideo(frame: HTMLIFrameElement, { video, api }: VdoPlayer) {
  video.addEventListener('loadedmetadata', async () => {
    const { aspectRatio } = await api.getMetaData()
    frame.style.aspectRatio = String(aspectRatio)
  })
}

/**
 * The installation's address, which is the script's own without `path`.
 * @param path what follows the root in the script's address
 */
export function rootOfScript(running: HTMLOrSVGScriptElement | null, path: RegExp): string {
  const scripts = [running, ...document.querySelectorAll('script[src]')] // a module, or code that was fetched, is no running script
  const own = scripts.find((script) => script instanceof HTMLScriptElement && path.test(withoutQuery(script.src)))
  return own instanceof HTMLScriptElement ? withoutQuery(own.src).replace(path, '') : `${location.origin}/`
}

function withoutQuery(address: string): string {
  return address.replace(/[?#].*$/s, '')
}
