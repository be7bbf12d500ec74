import { TextInput } from '@mantine/core'
import { useSuspenseQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { HistoryBody } from '../../../src/http/api/queue.ts'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { csvUrl } from '../api.ts'
import { describeActor } from '../system/audit-words.ts'
import { Ago } from '../ui/ago.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { SearchIcon } from '../ui/icons.tsx'
import { Section } from '../ui/section.tsx'
import { historyQuery } from './queries.ts'

type Event = HistoryBody['rows'][number]

/** How the video came, was encoded and was changed. */
export function HistoryTab({ video }: { video: VideoBody }) {
  const { data: history } = useSuspenseQuery(historyQuery(video.id))
  const [words, setWords] = useState('')
  const found = history.rows.filter((event) => textOf(event).includes(words.toLowerCase()))
  return (
    <Section title="History" lead="The newest first. Changes are kept for a year.">
      <TextInput
        type="search"
        aria-label="Search the history"
        placeholder="Search what, by whom or changes"
        maw={360}
        leftSection={<SearchIcon size={16} />}
        value={words}
        onChange={({ target }) => setWords(target.value)}
      />
      <DataTable
        label="History"
        csv={csvUrl(`videos/${video.id}/history`)}
        columns={COLUMNS}
        rows={found}
        keyOf={({ at, kind, actor }) => `${at} ${kind} ${actor?.id ?? ''}`}
        empty={<p>{words === '' ? 'Nothing has happened yet.' : `No event has “${words}” in it.`}</p>}
      />
    </Section>
  )
}

function byWhom({ actor }: Event): string {
  return actor === null ? 'The server' : describeActor(actor)
}

function textOf(event: Event): string {
  return [event.what, byWhom(event), event.changes].join(' ').toLowerCase()
}

const COLUMNS: Column<Event>[] = [
  { name: 'What', kind: 'title', cell: ({ what }) => what },
  { name: 'By', cell: byWhom },
  { name: 'Changes', cell: ({ changes }) => changes },
  { name: 'When', cell: ({ at }) => <Ago at={at} /> },
]
