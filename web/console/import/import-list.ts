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
  const [head = '', ...rest] = text.replace(/^\uFEFF/, '').split(/\r?\n/)
  const separator = [';', '\t', ','].find((one) => head.includes(one)) ?? ','
  const names = parseCsv(head, separator)[0]?.cells.map((name) => name.trim().toLowerCase()) ?? []
  if (!names.includes('url'))
    return [head, ...rest].flatMap((line, index) => (line.trim() === '' ? [] : [toRow(index + 1, { url: line })]))
  return parseCsv(rest.join('\n'), separator).map(({ line, cells }) =>
    toRow(line + 1, Object.fromEntries(names.map((name, column) => [name, cells[column] ?? '']))),
  )
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

type CsvRecord = { line: number; cells: string[] }

/** RFC 4180, with any separator: a cell in quotes may contain separators, line ends and doubled quotes. Empty lines are left out. */
export function parseCsv(text: string, separator: string): CsvRecord[] {
  const records: CsvRecord[] = []
  let record: CsvRecord = { line: 1, cells: [''] }
  let isQuoted = false
  let line = 1
  const end = () => {
    if (record.cells.some((cell) => cell.trim() !== '')) records.push(record)
    record = { line: line + 1, cells: [''] }
  }
  for (let index = 0; index < text.length; index++) {
    const letter = text[index] ?? ''
    const last = record.cells.length - 1
    if (letter === '"' && isQuoted && text[index + 1] === '"') {
      record.cells[last] += '"'
      index++
    } else if (letter === '"' && (isQuoted || record.cells[last] === '')) isQuoted = !isQuoted
    else if (letter === separator && !isQuoted) record.cells.push('')
    else if (letter === '\n' && !isQuoted) {
      end()
      line++
    } else {
      if (letter === '\n') line++
      if (letter !== '\r' || isQuoted) record.cells[last] += letter
    }
  }
  end()
  return records
}
