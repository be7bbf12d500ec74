/** base64url without padding, the one text form of bytes in the playback protocol. */
export function toBase64url(bytes: Uint8Array): string {
  let binary = ''
  for (const byte of bytes) binary += String.fromCharCode(byte)
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}

export function fromBase64url(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0))
}

/** SHA-256 of a text's UTF-8 bytes: 43 characters of base64url. */
export async function sha256Base64url(text: string): Promise<string> {
  return toBase64url(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))))
}

/** 128 random bits: 22 characters of base64url, the form of page ids. */
export function randomId(): string {
  return toBase64url(crypto.getRandomValues(new Uint8Array(16)))
}
