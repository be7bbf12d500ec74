import { Button } from '@mantine/core'
import { useSuspenseInfiniteQuery } from '@tanstack/react-query'
import { csvUrl } from '../api.ts'
import { Ago } from '../app/ago.tsx'
import { type Column, DataTable } from '../app/data-table.tsx'
import { Page } from '../app/page.tsx'
import { Section } from '../app/section.tsx'
import { type AuditEvent, describeActor, describeDetails, describeEventKind } from './audit-words.ts'
import { auditLogQuery } from './queries.ts'
import { SystemParts } from './system-parts.tsx'

/** Who changed what in the account. */
export function AuditLogPage() {
  const { data, hasNextPage, isFetchingNextPage, fetchNextPage } = useSuspenseInfiniteQuery(auditLogQuery)
  return (
    <Page title="System">
      <SystemParts />
      <Section title="Audit log" lead="Who changed what, the newest first, kept for a year.">
        <DataTable
          label="Audit log"
          csv={csvUrl('audit-log')}
          columns={COLUMNS}
          rows={data.pages.flatMap(({ rows }) => rows)}
          keyOf={({ id }) => id}
          empty={<p>Nothing was changed in the last year.</p>}
        />
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

const COLUMNS: Column<AuditEvent>[] = [
  { name: 'What', kind: 'title', cell: ({ kind }) => describeEventKind(kind) },
  { name: 'By', cell: ({ actor }) => describeActor(actor) },
  { name: 'Of', cell: ({ subject }) => <code title={subject}>{subject.length > 12 ? `${subject.slice(0, 8)}…` : subject}</code> },
  { name: 'Details', cell: ({ details }) => describeDetails(details) },
  { name: 'When', cell: ({ at }) => <Ago at={at} /> },
]
