import { Progress } from '@mantine/core'
import { useSuspenseQuery } from '@tanstack/react-query'
import { csvUrl } from '../api.ts'
import { VideoLink } from '../catalogue/video-link.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { Page } from '../ui/page.tsx'
import { Section } from '../ui/section.tsx'
import { formatBytes, formatEstimate } from '../units.ts'
import { queueQuery, type Work } from './queries.ts'
import { SystemParts } from './system-parts.tsx'

/** What the server does with the account's videos. */
export function QueuePage() {
  const { data: rows } = useSuspenseQuery(queueQuery)
  return (
    <Page title="System">
      <SystemParts />
      <Section title="Queue" lead="Encoding, waiting and importing, the oldest first. It continues when this page is closed.">
        <DataTable
          label="Queue"
          csv={csvUrl('queue')}
          columns={COLUMNS}
          rows={rows}
          keyOf={({ video }) => video}
          empty={<p>Nothing to do. New videos are here until the last of their renditions is encoded.</p>}
        />
      </Section>
    </Page>
  )
}

const STATES = { importing: 'Importing', waiting: 'Waiting', encoding: 'Encoding' } as const

const COLUMNS: Column<Work>[] = [
  { name: 'Video', kind: 'title', cell: ({ video, title }) => <VideoLink id={video} title={title} /> },
  { name: 'State', cell: ({ state }) => STATES[state] },
  { name: 'Done', cell: (work) => <Done work={work} /> },
  {
    name: 'Plays',
    cell: ({ status, playableS }) => (status === 'ready' ? 'Already' : playableS !== null && formatEstimate(playableS)),
  },
  { name: 'Finished', cell: ({ remainingS }) => remainingS !== null && formatEstimate(remainingS) },
  { name: 'Speed', kind: 'number', cell: ({ speed }) => speed !== null && speed > 0 && `${speed.toFixed(1)} × real time` },
]

function Done({ work: { title, part, chunks, receivedBytes } }: { work: Work }) {
  if (part !== null)
    return (
      <div>
        <Progress value={100 * part} aria-label={`Encoding of ${title}`} mb={4} />
        {Math.floor(100 * part)} %{chunks && `, chunk ${chunks.done} of ${chunks.all}`}
      </div>
    )
  return receivedBytes === null ? null : `${formatBytes(receivedBytes)} received`
}
