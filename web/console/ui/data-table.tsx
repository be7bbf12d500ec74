import type { ReactNode } from 'react'
import { CsvLink } from './csv-link.tsx'
import styles from './data-table.module.css'

export type Column<Row> = {
  name: string
  cell(row: Row): ReactNode
  /** `title`: what the row is; `number`: aligned at its end; `actions`: what can be done with it, without a heading. */
  kind?: 'title' | 'number' | 'actions'
}

type DataTableProps<Row> = {
  /** What the rows are, for screen readers. */
  label: string
  columns: readonly Column<Row>[]
  rows: readonly Row[]
  keyOf(row: Row): string | number
  /** Where all the rows are a CSV file: `csvUrl` of their list. */
  csv: string
  /** Instead of rows. */
  empty?: ReactNode
}

/** Rows with some columns; on a phone each row is a block, with the name of a column before its value. */
export function DataTable<Row>({ label, columns, rows, keyOf, csv, empty }: DataTableProps<Row>) {
  if (rows.length === 0 && empty !== undefined) return <div className={styles.empty}>{empty}</div>
  return (
    <>
      <table className={styles.table} aria-label={label}>
        <thead>
          <tr>
            {columns.map(({ name, kind }) => (
              <th key={name} scope="col" data-kind={kind}>
                {kind === 'actions' ? <span className="visually-hidden">{name}</span> : name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ name, kind, cell }) => (
                <td key={name} data-kind={kind} data-name={name}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      <CsvLink of={label} href={csv} />
    </>
  )
}
