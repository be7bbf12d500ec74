import { useSuspenseQuery } from '@tanstack/react-query'
import type { HistoryBody } from '../../../src/http/api/queue.ts'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { csvUrl } from '../api.ts'
import { Ago } from '../app/ago.tsx'
import { type Column, DataTable } from '../app/data-table.tsx'
import { Section } from '../app/section.tsx'
import { describeActor, describeDetails, describeEventKind } from '../system/audit-words.ts'
import { historyQuery } from './queries.ts'

type Event = HistoryBody['rows'][number]

/** How the video came, was encoded and was changed. */
export function HistoryTab({ video }: { video: VideoBody }) {
  const { data: history } = useSuspenseQuery(historyQuery(video.id))
  return (
    <Section title="History" lead="The newest first. Changes are kept for a year.">
      <DataTable
        label="History"
        csv={csvUrl(`videos/${video.id}/history`)}
        columns={COLUMNS}
        rows={history.rows}
        keyOf={({ at, kind, actor }) => `${at} ${kind} ${actor?.id ?? ''}`}
        empty={<p>Nothing has happened yet.</p>}
      />
    </Section>
  )
}

const COLUMNS: Column<Event>[] = [
  { name: 'What', kind: 'title', cell: ({ kind }) => describeEventKind(kind) },
  { name: 'By', cell: ({ actor }) => (actor === null ? 'The server' : describeActor(actor)) },
  { name: 'Details', cell: ({ details }) => describeDetails(details) },
  { name: 'When', cell: ({ at }) => <Ago at={at} /> },
]
