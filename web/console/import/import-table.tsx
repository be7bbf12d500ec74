import { Button, Table } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { formatCount, formatDay } from '../units.ts'
import type { ImportRow } from './import-list.ts'
import styles from './import-page.module.css'
import type { ImportResult } from './use-import.ts'

const STEP = 100

/** What was understood of the list, and what has become of each row. Rows with a problem come first: they want an answer. */
export function ImportTable({ rows, results }: { rows: readonly ImportRow[]; results: ReadonlyMap<ImportRow, ImportResult> }) {
  const [shown, setShown] = useState(STEP)
  const hasProblem = (row: ImportRow) => problemOf(row, results) !== undefined
  const sorted = [...rows.filter(hasProblem), ...rows.filter((row) => !hasProblem(row))]
  return (
    <>
      <div className={styles.scroll}>
        <Table className={styles.table} aria-label="What is imported">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Line</Table.Th>
              <Table.Th>Address</Table.Th>
              <Table.Th>Title</Table.Th>
              <Table.Th>Tags</Table.Th>
              <Table.Th>Folder</Table.Th>
              <Table.Th>Date</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {sorted.slice(0, shown).map((row) => (
              <Row key={row.line} row={row} result={results.get(row)} />
            ))}
          </Table.Tbody>
        </Table>
      </div>
      {sorted.length > shown && (
        <Button variant="default" size="xs" className={styles.more} onClick={() => setShown(shown + STEP)}>
          Show more of {formatCount(sorted.length)} rows
        </Button>
      )}
    </>
  )
}

function problemOf(row: ImportRow, results: ReadonlyMap<ImportRow, ImportResult>): string | undefined {
  const result = results.get(row)
  return result && 'problem' in result ? result.problem : row.problem
}

function Row({ row, result }: { row: ImportRow; result: ImportResult | undefined }) {
  const problem = result && 'problem' in result ? result.problem : row.problem
  const title = row.title === '' ? 'from the address' : row.title
  return (
    <Table.Tr>
      <Table.Td>{row.line}</Table.Td>
      <Table.Td className={styles.address}>
        {row.url}
        {problem !== undefined && <span className={styles.problem}>{problem}</span>}
      </Table.Td>
      <Table.Td>
        {result && 'videoId' in result ? (
          <Link to="/videos/$videoId" params={{ videoId: result.videoId }}>
            {title}
          </Link>
        ) : (
          <span className={row.title === '' ? styles.soft : undefined}>{title}</span>
        )}
      </Table.Td>
      <Table.Td>{row.tags.join(', ')}</Table.Td>
      <Table.Td>{row.folders.join(' / ')}</Table.Td>
      <Table.Td>{row.addedAtS !== undefined && !Number.isNaN(row.addedAtS) && formatDay(row.addedAtS)}</Table.Td>
    </Table.Tr>
  )
}
