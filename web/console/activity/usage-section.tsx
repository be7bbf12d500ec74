import { NativeSelect } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import type { UsageBody } from '../../../src/http/api/statistics.ts'
import { csvUrl } from '../api.ts'
import { VideoLink } from '../catalogue/video-link.tsx'
import { CsvLink } from '../ui/csv-link.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { FailureNotice } from '../ui/failure.tsx'
import { Section } from '../ui/section.tsx'
import { countVideos, countViews, formatBytes, formatCount, formatMonth } from '../units.ts'
import { keptMonths, usageQuery } from './queries.ts'
import styles from './usage-section.module.css'

type Usage = UsageBody['rows'][number]

const MAX_SHOWN = 100

/** What each video was used in a month. */
export function UsageSection({ month: name, onChange }: { month: string | undefined; onChange(month: string): void }) {
  const months = keptMonths()
  const [newest] = months
  const month = months.find((one) => one.name === name) ?? newest
  const {
    data: rows,
    error,
    refetch,
  } = useQuery({
    ...usageQuery(month ?? { name: '', from: '', to: '' }),
    placeholderData: keepPreviousData,
  })
  if (!month) return null
  const sum = (value: (row: Usage) => number) => (rows ?? []).reduce((total, row) => total + value(row), 0)
  return (
    <Section
      title="By month and video"
      actions={
        <NativeSelect
          aria-label="Month"
          value={month.name}
          onChange={({ currentTarget }) => onChange(currentTarget.value)}
          data={months.map(({ name: value, from }) => ({ value, label: formatMonth(Date.parse(from) / 1000) }))}
        />
      }
    >
      {error && <FailureNotice error={error} onRetry={() => refetch()} />}
      {rows && rows.length > 0 && (
        <p className={styles.sum}>
          {`${countViews(sum(({ views }) => views))} of ${countVideos(rows.length)}, ${formatBytes(sum(({ sentBytes }) => sentBytes))} sent.`}
          {rows.length > MAX_SHOWN && <span>{` The ${MAX_SHOWN} with the most views are shown; the file has all.`}</span>}
        </p>
      )}
      {rows && (
        <DataTable
          label={`Usage in ${formatMonth(Date.parse(month.from) / 1000)}`}
          columns={USAGE_COLUMNS}
          rows={rows.slice(0, MAX_SHOWN)}
          keyOf={({ video }) => video}
          csv={csvUrl('usage', { from: month.from, to: month.to })}
          empty={<p>Nothing was watched in this month.</p>}
        />
      )}
      <CsvLink of="Usage of all months and videos" href={csvUrl('usage', { from: months.at(-1)?.from, to: newest?.to })}>
        All months as CSV
      </CsvLink>
    </Section>
  )
}

export const USAGE_COLUMNS: Column<Omit<Usage, 'span'>>[] = [
  { name: 'Video', kind: 'title', cell: ({ video, title }) => <VideoLink id={video} title={title} tab="statistics" /> },
  { name: 'Views', kind: 'number', cell: ({ views }) => formatCount(views) },
  { name: 'Sent', kind: 'number', cell: ({ sentBytes }) => formatBytes(sentBytes) },
]
