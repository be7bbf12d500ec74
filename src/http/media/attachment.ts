/** Characters that no file system takes, or that make a name look like another: controls, marks of direction, half characters. */
const UNFIT = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}"*/:<>?\\|]/gu
const MAX_CHARACTERS = 150
/** What RFC 8187 lets stand in a value as it is (attr-char); percent-encoding leaves some others. */
const NOT_ATTR_CHAR = /[!'()*]/g

/** A Content-Disposition under which a browser saves a file by a name that somebody chose (RFC 6266, RFC 8187). */
export function contentDisposition(name: string): string {
  const fit = fitName(name)
  const plain =
    fit
      .normalize('NFKD')
      .replace(/[^\x20-\x7e]/g, '')
      .replace(/["\\%;]/g, '_') // full-width quotes and backslashes have become plain ones
      .trim() || 'file'
  const encoded = encodeURIComponent(fit).replace(NOT_ATTR_CHAR, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`
}

/** Its ending stays, whatever is too long. */
function fitName(name: string): string {
  const clean =
    name
      .toWellFormed()
      .replace(UNFIT, '_')
      .replace(/^[\s.]+|[\s.]+$/g, '') || 'file'
  const [ending = ''] = /\.[A-Za-z0-9]{1,8}$/.exec(clean) ?? []
  const stem = [...clean.slice(0, clean.length - ending.length)].slice(0, MAX_CHARACTERS).join('')
  return `${stem}${ending}`
}
