// The reel whose hub is a keyhole.
export const REEL =
  'M12 1a11 11 0 1 0 0 22 11 11 0 0 0 0-22Zm0 2.4a2.3 2.3 0 1 1 0 4.6 2.3 2.3 0 0 1 0-4.6ZM5.7 9.6a2.3 2.3 0 1 1 0 4.6 2.3 2.3 0 0 1 0-4.6Zm12.6 0a2.3 2.3 0 1 1 0 4.6 2.3 2.3 0 0 1 0-4.6ZM12 9.4a2.2 2.2 0 0 1 1.1 4.1l.7 3.7h-3.6l.7-3.7A2.2 2.2 0 0 1 12 9.4Z'
/** As a data: URL, so that browsers do not request /favicon.ico. */
export const ICON = `data:image/svg+xml,${encodeURIComponent(
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><path fill="#f2a93b" d="${REEL}"/></svg>`,
)}`

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)
}
