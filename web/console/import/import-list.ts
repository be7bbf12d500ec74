import Papa from 'papaparse'

/** A video to import. `problem` says why it cannot be. */
export type ImportRow = {
  line: number
  url: string
  title: string
  tags: readonly string[]
  /** The names of folders, the outermost first. */
  folders: readonly string[]
  /** When it was added where it comes from. */
  addedAtS: number | undefined
  problem: string | undefined
}

/** Rows of a list that are imported in one go: as many imports of an account may be pending. */
export const MAX_ROWS = 5_000

/**
 * Reads addresses, one a line, or a CSV whose first line names its columns: url, title, tags, folder, date, in any order; only url is
 * needed. Unknown columns are not used.
 */
export function parseImportList(text: string): ImportRow[] {
  const list = text.replace(/^\uFEFF/, '').replaceAll('\r\n', '\n')
  const separator = [',', ';', '\t'].find((one) => readNames(list, one).includes('url'))
  if (separator === undefined)
    return list.split('\n').flatMap((url, index) => (url.trim() === '' ? [] : [toRow(index + 1, { url })]))
  const names = readNames(list, separator)
  let nextLine = 1
  return parseCsv(list, separator).flatMap((cells, index) => {
    const line = nextLine
    nextLine += cells.join().split('\n').length // a cell in quotes may contain line ends
    if (index === 0 || cells.every((cell) => cell.trim() === '')) return []
    return [toRow(line, Object.fromEntries(names.map((name, column) => [name, cells[column] ?? ''])))]
  })
}

/** The names of the columns, if this character separates them. */
function readNames(list: string, separator: string): string[] {
  return (parseCsv(list, separator, 1)[0] ?? []).map((name) => name.trim().toLowerCase())
}

function parseCsv(list: string, delimiter: string, preview?: number): string[][] {
  return Papa.parse<string[]>(list, { delimiter, newline: '\n', preview }).data
}

function toRow(line: number, cells: Readonly<Record<string, string>>): ImportRow {
  const { url = '', title = '', tags = '', folder = '', date = '' } = cells
  const addedAtS = readDate(date)
  const problems = [
    ...(isWebAddress(url) ? [] : ['This is no address that begins with http:// or https://.']),
    ...(Number.isNaN(addedAtS) ? [`“${date}” is no date. Write it as 2026-11-21 or 2026-11-21 18:30.`] : []),
  ]
  return {
    line,
    url: url.trim(),
    title: title.trim(),
    tags: splitList(tags, /[;,|]/),
    folders: splitList(folder, /\//),
    addedAtS,
    problem: problems[0],
  }
}

function isWebAddress(text: string): boolean {
  return URL.canParse(text.trim()) && /^https?:$/.test(new URL(text.trim()).protocol)
}

/** Undefined: none; NaN: not readable. A day without a time is noon in the reader's zone, and so the same day nearly everywhere. */
function readDate(text: string): number | undefined {
  const date = text.trim()
  if (date === '') return undefined
  if (!/^\d{4}-\d{2}-\d{2}/.test(date)) return Number.NaN
  return Math.floor(new Date(date.length === 10 ? `${date}T12:00` : date.replace(' ', 'T')).getTime() / 1000)
}

function splitList(text: string, separator: RegExp): string[] {
  return text
    .split(separator)
    .map((part) => part.trim())
    .filter((part) => part !== '')
}
