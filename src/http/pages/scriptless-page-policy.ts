import { createHash } from 'node:crypto'

/** Content-Security-Policy of a page without scripts: only its own style, and its icon, which is a `data:` address. */
export function scriptlessPagePolicy(style: string): string {
  return [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}
