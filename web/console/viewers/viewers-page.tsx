import { useSuspenseQuery } from '@tanstack/react-query'
import { Page } from '../ui/page.tsx'
import { sessionsQuery } from './queries.ts'
import { SessionTable } from './session-table.tsx'
import { ViewerParts } from './viewer-parts.tsx'

/** Who watches now. */
export function ViewersPage() {
  const { data: sessions } = useSuspenseQuery(sessionsQuery())
  return (
    <Page title="Viewers">
      <ViewerParts />
      <SessionTable
        sessions={sessions}
        empty="No one is watching right now. Viewers are listed here from the moment their player starts, with a way to stop them."
      />
    </Page>
  )
}
