import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { alertsQuery } from '../alerts/queries.ts'
import { csvUrl } from '../api.ts'
import { VideoLink } from '../catalogue/video-link.tsx'
import { useMay } from '../sign-in/queries.ts'
import { Ago } from '../ui/ago.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { WarningIcon } from '../ui/icons.tsx'
import { RowButton } from '../ui/row-button.tsx'
import { formatDuration } from '../units.ts'
import { countryName, describeDevice } from './device.ts'
import type { Session, SessionFilter } from './queries.ts'
import styles from './session-table.module.css'
import { StopDialog } from './stop-dialog.tsx'
import { ViewerLink } from './viewer-link.tsx'

type SessionTableProps = {
  sessions: readonly Session[]
  /** Which sessions these are. */
  filter?: SessionFilter
  /** On the page of a viewer or a video their own column says nothing. */
  without?: 'viewer' | 'video'
  empty: string
}

/** Who watches now, and a way to stop each of them. */
export function SessionTable({ sessions, filter = {}, without, empty }: SessionTableProps) {
  const [stopping, setStopping] = useState<Session>()
  const mayStop = useMay('editor')
  const { data: alerts = [] } = useQuery(alertsQuery)
  const suspicious = new Set(alerts.filter(({ cause }) => cause === 'keys-drawn').map(({ session }) => session))
  const columns: Column<Session>[] = [
    ...(without === 'viewer' ? [] : [{ name: 'Viewer', kind: 'title' as const, cell: viewerCell }]),
    ...(without === 'video' ? [] : [{ name: 'Video', cell: videoCell }]),
    { name: 'Location', cell: ({ country, address }) => (country === null ? address : `${countryName(country)}, ${address}`) },
    { name: 'Device', cell: ({ userAgent }) => userAgent && <span title={userAgent}>{describeDevice(userAgent)}</span> },
    { name: 'Since', cell: ({ startedAt }) => <Ago at={startedAt} /> },
    { name: 'Played', cell: (session) => <Played session={session} isSuspicious={suspicious.has(session.session)} /> },
    ...(mayStop
      ? [
          {
            name: 'Stop',
            kind: 'actions' as const,
            cell: (session: Session) => (
              <RowButton
                aria-label={`Stop ${session.viewer?.name ?? session.userId ?? 'this viewer'}, ${session.title ?? session.video}`}
                onClick={() => setStopping(session)}
              >
                Stop
              </RowButton>
            ),
          },
        ]
      : []),
  ]
  return (
    <>
      <DataTable
        label="Who watches now"
        csv={csvUrl('sessions', filter)}
        columns={columns}
        rows={sessions}
        keyOf={({ session }) => session}
        empty={<p>{empty}</p>}
      />
      {stopping && <StopDialog session={stopping} sessions={sessions} onClose={() => setStopping(undefined)} />}
    </>
  )
}

function viewerCell({ userId, viewer }: Session) {
  return <ViewerLink userId={userId} viewer={viewer} />
}

function videoCell({ video, title }: Session) {
  return <VideoLink id={video} title={title} />
}

function Played({ session: { playedS, drawnS }, isSuspicious }: { session: Session; isSuspicious: boolean }) {
  if (playedS === null || drawnS === null) return null
  return (
    <span className={styles.played} title={`It got keys for ${formatDuration(drawnS)} of video.`}>
      {formatDuration(playedS)}
      {isSuspicious && (
        <span className={styles.suspicious}>
          <WarningIcon size={14} /> keys for {formatDuration(drawnS)}
        </span>
      )}
    </span>
  )
}
