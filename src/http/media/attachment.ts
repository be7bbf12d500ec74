/** Characters that file systems reject, or that make a name look like another: controls, direction marks, unpaired surrogates. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}"*/:<>?\\|]/gu
const MAX_CHARACTERS = 150
/** Left as they are by encodeURIComponent, but not allowed in a value by RFC 8187 (attr-char). */
const NOT_ATTR_CHAR = /[!'()*]/g

/** The Content-Disposition for saving a file under any name that a user chose (RFC 6266, RFC 8187). */
export function contentDisposition(name: string): string {
  const safe = safeName(name)
  const plain =
    safe
      .normalize('NFKD')
      .replace(/[^\x20-\x7e]/g, '')
      .replace(/["\\%;]/g, '_') // full-width quotes and backslashes have become plain ones
      .trim() || 'file'
  const encoded = encodeURIComponent(safe).replace(NOT_ATTR_CHAR, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`
}

/** Keeps the extension when the name is too long. */
function safeName(name: string): string {
  const clean =
    name
      .toWellFormed()
      .replace(UNSAFE, '_')
      .replace(/^[\s.]+|(?<![\s.])[\s.]+$/g, '') || 'file'
  const [extension = ''] = /\.[A-Za-z0-9]{1,8}$/.exec(clean) ?? []
  const stem = [...clean.slice(0, clean.length - extension.length)].slice(0, MAX_CHARACTERS).join('')
  return `${stem}${extension}`
}
