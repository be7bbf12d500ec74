type Cell = string | number

/** One line of comma-separated values for each row (RFC 4180). */
export function csvDocument(rows: readonly (readonly Cell[])[]): string {
  return rows.map((row) => `${row.map(cellText).join(',')}\r\n`).join('')
}

/** A spreadsheet takes a text that begins so for a formula, and would run it. */
const FORMULA = /^[=+\-@\t\r]/

function cellText(cell: Cell): string {
  if (typeof cell === 'number') return String(cell)
  const text = FORMULA.test(cell) ? `'${cell}` : cell
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
