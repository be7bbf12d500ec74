/** What XML 1.0 forbids even as a reference (section 2.2): dropped, so that every document parses. */
const FORBIDDEN = /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu

/** A carriage return is written as a reference: a parser takes a plain one for a line's end (section 2.11). */
const REFERENCES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '\r': '&#13;' }

/** A document of one root element. A field is an element of its name, a list as many elements of that name. */
export function xmlDocument(root: object): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n${writeElements(root)}`
}

function writeElements(fields: object): string {
  return Object.entries(fields)
    .map(([name, value]) => writeElement(name, value))
    .join('')
}

function writeElement(name: string, value: unknown): string {
  if (Array.isArray(value)) return value.map((each) => writeElement(name, each)).join('')
  const content = typeof value === 'object' && value !== null ? writeElements(value) : escapeText(String(value ?? ''))
  return `<${name}>${content}</${name}>`
}

function escapeText(text: string): string {
  return text.replace(FORBIDDEN, '').replace(/[&<>\r]/g, (letter) => REFERENCES[letter] ?? '')
}
