import { Button } from '@mantine/core'
import { useSuspenseQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState } from 'react'
import { callApi, csvUrl } from '../api.ts'
import { VideoLink } from '../catalogue/video-link.tsx'
import { useMay } from '../sign-in/queries.ts'
import { Ago } from '../ui/ago.tsx'
import { ConfirmDialog } from '../ui/confirm-dialog.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { Page } from '../ui/page.tsx'
import { Section } from '../ui/section.tsx'
import { formatDuration } from '../units.ts'
import { sessionsQuery, type Viewing, viewingsOfViewerQuery } from './queries.ts'
import { SessionTable } from './session-table.tsx'
import { namesOf } from './viewer-link.tsx'
import styles from './viewer-page.module.css'
import { WatchedBar } from './watched-bar.tsx'

const route = getRouteApi('/signed-in/viewers/$userId')

/** What one viewer watches and has watched. */
export function ViewerPage() {
  const { userId } = route.useParams()
  const { data: sessions } = useSuspenseQuery(sessionsQuery({ userId }))
  const { data: viewings } = useSuspenseQuery(viewingsOfViewerQuery(userId))
  const mayErase = useMay('editor')
  const [name = userId, ...others] = namesOf(userId, viewings[0]?.viewer ?? sessions[0]?.viewer ?? null)
  return (
    <Page title={name} above={<Link to="/viewers">← Viewers</Link>}>
      {others.length > 0 && <p className={styles.others}>{others.join(' · ')}</p>}
      <Section title="Watching now">
        <SessionTable sessions={sessions} filter={{ userId }} without="viewer" empty={`${name} is not watching right now.`} />
      </Section>
      <Section title="Watched" lead="The filled part of each bar was watched, from the beginning of the video to its end.">
        <DataTable
          label="Watched videos"
          csv={csvUrl(`viewers/${encodeURIComponent(userId)}`)}
          columns={COLUMNS}
          rows={viewings}
          keyOf={({ video }) => video}
          empty={<p>Nothing is stored about what {name} watched.</p>}
        />
      </Section>
      {mayErase && <EraseSection userId={userId} />}
    </Page>
  )
}

const COLUMNS: Column<Viewing>[] = [
  { name: 'Video', kind: 'title', cell: ({ video, title }) => <VideoLink id={video} title={title} /> },
  { name: 'Parts', cell: (viewing) => <WatchedBar viewing={viewing} /> },
  {
    name: 'Watched',
    kind: 'number',
    cell: ({ watchedS, lengthS }) =>
      lengthS ? `${formatDuration(watchedS)} of ${formatDuration(lengthS)}` : formatDuration(watchedS),
  },
  { name: 'Finished', cell: ({ completedAt }) => completedAt !== null && <Ago at={completedAt} /> },
  { name: 'Last', cell: ({ lastAt }) => <Ago at={lastAt} /> },
]

function EraseSection({ userId }: { userId: string }) {
  const navigate = route.useNavigate()
  const [isAsking, setAsking] = useState(false)
  return (
    <Section
      title="Erase this viewer"
      lead="Removes everything that names the viewer: what was watched, alerts, sessions, and the name in usage counters. The counters stay."
    >
      <div>
        <Button variant="default" onClick={() => setAsking(true)}>
          Erase the viewer
        </Button>
      </div>
      {isAsking && (
        <ConfirmDialog
          title={`Erase ${userId}?`}
          onClose={() => setAsking(false)}
          action="Erase"
          color="stop"
          call={() => callApi<unknown>('DELETE', `viewers/${encodeURIComponent(userId)}`)}
          announced={`${userId} has been erased.`}
          onDone={() => navigate({ to: '/viewers/watched' })}
          refreshes={[[]]}
        >
          <p>
            Sessions of the viewer stop now. This cannot be undone; webhook deliveries and backups that name the viewer go by
            themselves.
          </p>
        </ConfirmDialog>
      )}
    </Section>
  )
}
