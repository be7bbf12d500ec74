/** The long-lived, unguessable address of a poster, below the installation's root. */
export function posterPath(token: string): string {
  return `poster/${token}.jpg`
}
