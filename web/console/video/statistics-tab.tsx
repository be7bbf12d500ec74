import { useSuspenseQuery } from '@tanstack/react-query'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { QualitySection } from '../activity/quality-section.tsx'
import { statisticsQuery } from '../activity/queries.ts'
import { csvUrl } from '../api.ts'
import { Chart } from '../charts/chart.tsx'
import { Ago } from '../ui/ago.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { FactList } from '../ui/fact-list.tsx'
import { Section } from '../ui/section.tsx'
import { formatBytes, formatCount, formatDay, formatDuration } from '../units.ts'
import { sessionsQuery, type Viewing, viewingsOfVideoQuery } from '../viewers/queries.ts'
import { SessionTable } from '../viewers/session-table.tsx'
import { ViewerLink } from '../viewers/viewer-link.tsx'
import { WatchedBar } from '../viewers/watched-bar.tsx'
import { retentionQuery } from './queries.ts'

const DAYS = 30
const MAX_SHOWN = 100

/** Who watches and watched the video, how often, and how much of it. */
export function StatisticsTab({ video: { id } }: { video: VideoBody }) {
  const { data: sessions } = useSuspenseQuery(sessionsQuery({ video: id }))
  const { data: statistics } = useSuspenseQuery(statisticsQuery(DAYS, id))
  const { data: retention } = useSuspenseQuery(retentionQuery(id))
  const { data: viewings } = useSuspenseQuery(viewingsOfVideoQuery(id))
  const perDay = (value: (day: (typeof statistics.days)[number]) => number) =>
    statistics.days.map((day) => ({ name: formatDay(Date.parse(day.day) / 1000), value: value(day) }))
  const { viewers, completed, averageWatchedS, parts } = retention
  return (
    <>
      <Section title="Watching now">
        <SessionTable
          sessions={sessions}
          filter={{ video: id }}
          without="video"
          empty="No one is watching this video right now."
        />
      </Section>
      <Section title="The last 30 days">
        <Chart label="Views" valueName="Views" points={perDay(({ views }) => views)} format={formatCount} />
        <Chart label="Bandwidth" valueName="Sent" points={perDay(({ sentBytes }) => sentBytes)} format={formatBytes} />
      </Section>
      <QualitySection days={DAYS} video={id} />
      <Section title="How much was watched" lead="Of viewers with a userId. A part that few reach is where many leave.">
        <FactList
          facts={[
            ['Viewers', formatCount(viewers)],
            [
              'Watched to the end',
              viewers === 0 ? '0' : `${formatCount(completed)} (${Math.round((100 * completed) / viewers)} %)`,
            ],
            ['Watched on average', formatDuration(averageWatchedS)],
          ]}
        />
        {viewers > 0 && (
          <Chart
            label="Viewers of each part"
            valueName="Viewers"
            pointName="Part"
            shape="area"
            points={parts.map(({ fromS, toS, viewers: count }) => ({
              name: `${formatDuration(fromS)}–${formatDuration(toS)}`,
              value: count,
            }))}
            format={(count) => formatCount(Math.round(count * 10) / 10)}
          />
        )}
      </Section>
      <Section title="Who watched">
        <DataTable
          label="Who watched"
          csv={csvUrl(`videos/${id}/viewers`)}
          columns={COLUMNS}
          rows={viewings.slice(0, MAX_SHOWN)}
          keyOf={({ userId }) => userId}
          empty={<p>No viewer with a userId has watched it yet.</p>}
        />
      </Section>
    </>
  )
}

const COLUMNS: Column<Viewing>[] = [
  {
    name: 'Viewer',
    kind: 'title',
    cell: ({ userId, viewer }) => <ViewerLink userId={userId} viewer={viewer} />,
  },
  { name: 'Parts', cell: (viewing) => <WatchedBar viewing={viewing} /> },
  { name: 'Watched', kind: 'number', cell: ({ watchedS }) => formatDuration(watchedS) },
  { name: 'Last', cell: ({ lastAt }) => <Ago at={lastAt} /> },
]
