import { createHash } from 'node:crypto'

/**
 * Content-Security-Policy of a page without scripts: only its own style, and its icon, which is a `data:` address.
 * @param isForFrames it may be shown in frames of every site, and has images of this server
 */
export function scriptlessPagePolicy(style: string, { isForFrames = false } = {}): string {
  return [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
    `img-src ${isForFrames ? "'self' " : ''}data:`,
    "base-uri 'none'",
    "form-action 'none'",
    `frame-ancestors ${isForFrames ? '*' : "'none'"}`,
  ].join('; ')
}
