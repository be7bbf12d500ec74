import { SegmentedControl } from '@mantine/core'
import { keepPreviousData, useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { QualityRow } from '../../../src/http/api/quality.ts'
import { csvUrl } from '../api.ts'
import { VideoLink } from '../catalogue/video-link.tsx'
import { Chart } from '../charts/chart.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { FactList } from '../ui/fact-list.tsx'
import { Section } from '../ui/section.tsx'
import { formatCount, formatDay, formatPercent, formatSeconds } from '../units.ts'
import { countryName } from '../viewers/device.ts'
import { lastDays } from '../viewers/queries.ts'
import styles from './quality-section.module.css'
import { qualityQuery } from './queries.ts'

/** How videos play at their viewers, of the account or of one video. */
export function QualitySection({ days, video }: { days: number; video?: string }) {
  const { data: byDay } = useSuspenseQuery(qualityQuery(days, 'day', video))
  const found = new Map(byDay.map((row) => [row.of, row]))
  const perDay = (value: (row: QualityRow) => number | null) =>
    eachDay(days).map((day) => {
      const row = found.get(day)
      return { name: formatDay(Date.parse(day) / 1000), value: row ? value(row) : null }
    })
  const sum = (value: (row: QualityRow) => number) => byDay.reduce((total, row) => total + value(row), 0)
  const [starts, waitedS, playedS] = [sum((row) => row.starts), sum((row) => row.waitedS), sum((row) => row.playedS)]
  const stopped = sum(({ errors }) => errors.reduce((total, { views }) => total + views, 0))
  return (
    <Section
      title="How it plays"
      lead="As players report it while they play: how long viewers wait for the first frame, and for the rest. After a seek does not count. 95 % of views started within the 95th percentile."
    >
      {byDay.length === 0 ? (
        <p>Nothing was played in these days.</p>
      ) : (
        <>
          <FactList
            facts={[
              ['Views', formatCount(sum(({ views }) => views))],
              [
                'Waited at least once',
                formatPercent(
                  shareOf(
                    sum((row) => row.waitedViews),
                    starts,
                  ),
                ),
              ],
              ['Time spent waiting', formatPercent(shareOf(waitedS, waitedS + playedS))],
              ['Given up before the first frame', formatCount(sum(({ abandoned }) => abandoned))],
              ['Stopped by an error', formatCount(stopped)],
              [
                'Frames dropped',
                formatPercent(
                  shareOf(
                    sum((row) => row.droppedFrames),
                    sum(({ frames }) => frames),
                  ),
                ),
              ],
            ]}
          />
          <div className={styles.charts}>
            <Chart
              label="Time to the first frame"
              valueName="Median"
              points={perDay(({ startMedianMs }) => startMedianMs)}
              format={formatMs}
            />
            <Chart
              label="Views that waited"
              valueName="Waited"
              points={perDay((row) => (row.starts === 0 ? null : 100 * shareOf(row.waitedViews, row.starts)))}
              format={(percent) => formatPercent(percent / 100)}
            />
          </div>
          <QualityGroups days={days} video={video} />
        </>
      )}
    </Section>
  )
}

const GROUPS = [
  { value: 'country', label: 'Countries' },
  { value: 'browser', label: 'Browsers' },
  { value: 'network', label: 'Networks' },
  { value: 'video', label: 'Videos' },
] as const
type Group = (typeof GROUPS)[number]['value']
const MAX_SHOWN = 100

function QualityGroups({ days, video }: { days: number; video: string | undefined }) {
  const [by, setBy] = useState<Group>('country')
  const { data: rows = [] } = useQuery({ ...qualityQuery(days, by, video), placeholderData: keepPreviousData })
  const groups = GROUPS.filter(({ value }) => value !== 'video' || video === undefined)
  const { label } = GROUPS.find(({ value }) => value === by) ?? GROUPS[0]
  return (
    <>
      <SegmentedControl
        aria-label="Compare"
        value={by}
        onChange={(next) => setBy(GROUPS.find(({ value }) => value === next)?.value ?? 'country')}
        data={[...groups]}
      />
      <DataTable
        label={`How it plays: ${label}`}
        columns={[{ name: label, kind: 'title', cell: (row) => nameOf(by, row) }, ...COLUMNS]}
        rows={rows.slice(0, MAX_SHOWN)}
        csv={csvUrl('quality', { ...lastDays(days), by, video })}
        keyOf={({ of }) => of}
      />
    </>
  )
}

const COLUMNS: Column<QualityRow>[] = [
  { name: 'Views', kind: 'number', cell: ({ views }) => formatCount(views) },
  { name: 'First frame, median', kind: 'number', cell: ({ startMedianMs }) => formatMs(startMedianMs) },
  { name: '95th percentile', kind: 'number', cell: ({ startP95Ms }) => formatMs(startP95Ms) },
  { name: 'Waited', kind: 'number', cell: ({ waitedViews, starts }) => formatPercent(shareOf(waitedViews, starts)) },
  {
    name: 'Errors',
    kind: 'number',
    cell: ({ errors }) => errors.map(({ kind, views }) => `${kind} ${formatCount(views)}`).join(', ') || '0',
  },
]

function nameOf(by: Group, { of, title }: QualityRow) {
  if (by === 'video') return <VideoLink id={of} title={title} tab="statistics" />
  if (of === '') return 'not known'
  return by === 'country' ? countryName(of) : of
}

function eachDay(count: number): string[] {
  return Array.from({ length: count }, (_, n) => lastDays(count - n).from)
}

function shareOf(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole
}

function formatMs(ms: number | null): string {
  return ms === null ? '–' : formatSeconds(ms / 1000)
}
