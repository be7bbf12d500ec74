import { XMLBuilder } from 'fast-xml-parser'

const builder = new XMLBuilder({ format: false })

/** What XML 1.0 forbids even as a reference (section 2.2): dropped, so that every document parses. */
const FORBIDDEN = /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu

/** A document of one root element. */
export function xmlDocument(root: object): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n${builder.build(root)}`.replace(FORBIDDEN, '')
}
