import { SegmentedControl } from '@mantine/core'
import { useSuspenseQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import type { StatisticsBody } from '../../../src/http/api/statistics.ts'
import { csvUrl } from '../api.ts'
import { Chart } from '../charts/chart.tsx'
import { StorageMeter } from '../system/storage.tsx'
import { DataTable } from '../ui/data-table.tsx'
import { Page } from '../ui/page.tsx'
import { Section } from '../ui/section.tsx'
import { countViews, formatBytes, formatCount, formatDay } from '../units.ts'
import { lastDays } from '../viewers/queries.ts'
import { QualitySection } from './quality-section.tsx'
import { statisticsQuery } from './queries.ts'
import { USAGE_COLUMNS, UsageSection } from './usage-section.tsx'

const route = getRouteApi('/signed-in/activity')

/** Views, bandwidth and storage over time, and the videos that are watched most. */
export function ActivityPage() {
  const { days = '30', month } = route.useSearch()
  const navigate = route.useNavigate()
  const { data: statistics } = useSuspenseQuery(statisticsQuery(Number(days)))
  const perDay = (value: (day: StatisticsBody['days'][number]) => number | null) =>
    statistics.days.map((day) => ({ name: formatDay(Date.parse(day.day) / 1000), value: value(day) }))
  const sum = (value: (day: StatisticsBody['days'][number]) => number) =>
    statistics.days.reduce((total, day) => total + value(day), 0)
  return (
    <Page
      title="Activity"
      actions={
        <SegmentedControl
          aria-label="Days"
          value={days}
          onChange={(next) =>
            void navigate({
              search: (before) => ({ ...before, days: next === '7' || next === '90' ? next : undefined }),
              replace: true,
              resetScroll: false,
            })
          }
          data={[
            { value: '7', label: '7 days' },
            { value: '30', label: '30 days' },
            { value: '90', label: '90 days' },
          ]}
        />
      }
    >
      <Section title={countViews(sum(({ views }) => views))}>
        <Chart label="Views" valueName="Views" points={perDay(({ views }) => views)} format={formatCount} />
      </Section>
      <Section title={`${formatBytes(sum(({ sentBytes }) => sentBytes))} sent`}>
        <Chart label="Bandwidth" valueName="Sent" points={perDay(({ sentBytes }) => sentBytes)} format={formatBytes} />
      </Section>
      <Section
        title={`${formatBytes(statistics.days.findLast(({ storageBytes }) => storageBytes !== null)?.storageBytes ?? 0)} stored`}
        lead="What the videos take on the disk, those in the trash included. Renditions count once a video is encoded."
      >
        <StorageMeter />
        <Chart label="Storage" valueName="Stored" points={perDay(({ storageBytes }) => storageBytes)} format={formatBytes} />
      </Section>
      <Section title="Watched most">
        <DataTable
          label="Videos that are watched most"
          columns={USAGE_COLUMNS}
          rows={statistics.videos}
          csv={csvUrl('usage', { ...lastDays(Number(days)), by: 'all' })}
          keyOf={({ video }) => video}
          empty={<p>Nothing was watched in these days. A view counts when a player gets its first key.</p>}
        />
      </Section>
      <QualitySection days={Number(days)} />
      <UsageSection
        month={month}
        onChange={(next) =>
          void navigate({ search: (before) => ({ ...before, month: next }), replace: true, resetScroll: false })
        }
      />
    </Page>
  )
}
