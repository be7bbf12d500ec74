import { Button, TextInput } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useInfiniteQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { csvUrl } from '../api.ts'
import { Ago } from '../ui/ago.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { FailureNotice } from '../ui/failure.tsx'
import { SearchIcon } from '../ui/icons.tsx'
import { Page } from '../ui/page.tsx'
import { Section } from '../ui/section.tsx'
import { type AuditEvent, describeActor } from './audit-words.ts'
import { auditLogQuery } from './queries.ts'
import { SystemParts } from './system-parts.tsx'

const route = getRouteApi('/signed-in/system/audit-log')

const TYPING_PAUSE_MS = 250

/** Who changed what in the account. */
export function AuditLogPage() {
  const { q = '' } = route.useSearch()
  const navigate = route.useNavigate()
  const [words] = useDebouncedValue(q, TYPING_PAUSE_MS)
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(auditLogQuery(words))
  return (
    <Page title="System">
      <SystemParts />
      <Section title="Audit log" lead="Who changed what, the newest first, kept for a year.">
        <TextInput
          type="search"
          aria-label="Search the audit log"
          placeholder="Search a name, a title or what was done"
          maw={360}
          leftSection={<SearchIcon size={16} />}
          value={q}
          onChange={({ target }) =>
            void navigate({ search: { q: target.value || undefined }, replace: true, resetScroll: false })
          }
        />
        {error && <FailureNotice error={error} onRetry={() => refetch()} />}
        {data && (
          <DataTable
            label="Audit log"
            csv={csvUrl('audit-log', { q: words })}
            columns={COLUMNS}
            rows={data.pages.flatMap(({ rows }) => rows)}
            keyOf={({ id }) => id}
            empty={<p>{words === '' ? 'Nothing was changed in the last year.' : `No event has “${words}” in it.`}</p>}
          />
        )}
        {hasNextPage && (
          <div>
            <Button variant="default" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
              Show older ones
            </Button>
          </div>
        )}
      </Section>
    </Page>
  )
}

function Subject({ event: { kind, subject, subjectName } }: { event: AuditEvent }) {
  if (subjectName === null) return <code title={subject}>{subject.length > 12 ? `${subject.slice(0, 8)}…` : subject}</code>
  const isVideo = /^(video|tags|mp4):/.test(kind)
  return isVideo ? (
    <Link to="/videos/$videoId" params={{ videoId: subject }} title={subject}>
      {subjectName}
    </Link>
  ) : (
    <span title={subject}>{subjectName}</span>
  )
}

const COLUMNS: Column<AuditEvent>[] = [
  { name: 'What', kind: 'title', cell: ({ what }) => what },
  { name: 'By', cell: ({ actor }) => describeActor(actor) },
  { name: 'Of', cell: (event) => <Subject event={event} /> },
  { name: 'Changes', cell: ({ changes }) => changes },
  { name: 'When', cell: ({ at }) => <Ago at={at} /> },
]
