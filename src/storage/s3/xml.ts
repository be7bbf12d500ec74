const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** The elements of an answer of S3, which are flat lists of texts: no parser is needed for more. */
type Xml = {
  /** The texts of the elements with a name, in their order. */
  all(name: string): string[]
  first(name: string): string | undefined
  /** The elements with a name, each to be read. */
  each(name: string): Xml[]
}

export function readXml(xml: string): Xml {
  const inside = (name: string) => {
    const [, ...parts] = xml.split(`<${name}>`)
    return parts.map((part) => part.split(`</${name}>`, 1)[0] ?? '')
  }
  return {
    all: (name) => inside(name).map(unescapeXml),
    first: (name) => inside(name).map(unescapeXml)[0],
    each: (name) => inside(name).map(readXml),
  }
}

function unescapeXml(text: string): string {
  return text.replace(/&(?:#(\d+)|#x([\da-f]+)|(\w+));/gi, (whole, decimal, hexadecimal, name) => {
    if (decimal) return String.fromCodePoint(Number(decimal))
    if (hexadecimal) return String.fromCodePoint(Number.parseInt(hexadecimal, 16))
    return ENTITIES[name] ?? whole
  })
}

export function escapeXml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)
}
