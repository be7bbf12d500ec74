import { Button } from '@mantine/core'
import { useSuspenseQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useMay } from '../sign-in/queries.ts'
import { Ago } from '../ui/ago.tsx'
import { FailureNotice } from '../ui/failure.tsx'
import { CheckIcon, WarningIcon } from '../ui/icons.tsx'
import { Page } from '../ui/page.tsx'
import styles from './alerts-page.module.css'
import { type Alert, alertsQuery } from './queries.ts'
import { explain } from './sentence.ts'
import { useMarkSeen } from './use-mark-seen.ts'

/** What the owner should look at: suspicious playback, and the state of the installation. */
export function AlertsPage() {
  const { data: alerts } = useSuspenseQuery(alertsQuery)
  const markSeen = useMarkSeen()
  const mayEdit = useMay('editor')
  const unseen = alerts.filter(({ seen }) => !seen)
  return (
    <Page
      title="Alerts"
      above={<Link to="/viewers">← Viewers</Link>}
      actions={
        mayEdit &&
        unseen.length > 0 && (
          <Button
            variant="default"
            leftSection={<CheckIcon size={16} />}
            loading={markSeen.isPending}
            onClick={() => markSeen.mutate(unseen)}
          >
            Mark all as seen
          </Button>
        )
      }
    >
      {markSeen.error && <FailureNotice error={markSeen.error} />}
      <p className={styles.lead}>
        {alerts.length === 0
          ? 'No alerts. Suspicious playback, failing webhooks, a full disk and old backups are listed here, and on every page until you have seen them.'
          : 'The newest first. Nothing is stopped by itself: look at the numbers, then decide.'}
      </p>
      <ul className={styles.list} aria-label="Alerts">
        {alerts.map((alert) => (
          <AlertItem key={alert.id} alert={alert} />
        ))}
      </ul>
    </Page>
  )
}

function AlertItem({ alert }: { alert: Alert }) {
  const { title, advice } = explain(alert)
  return (
    <li className={styles.item} data-new={!alert.seen || undefined}>
      <WarningIcon size={18} />
      <div className={styles.text}>
        <h2>
          {title} {!alert.seen && <span className={styles.new}>New</span>}
        </h2>
        <p>{advice}</p>
        <p className={styles.links}>
          <Ago at={alert.at} />
          {alert.count > 1 && <span>{alert.count} times that day</span>}
          {alert.videos.map(
            ({ id, title }) =>
              title !== null && (
                <Link key={id} to="/videos/$videoId" params={{ videoId: id }}>
                  {title}
                </Link>
              ),
          )}
          {alert.userId !== null && (
            <Link to="/viewers/$userId" params={{ userId: alert.userId }}>
              What {alert.userId} watched
            </Link>
          )}
          {alert.cause.startsWith('webhook-') && <Link to="/develop/webhooks">Webhooks</Link>}
          {alert.cause === 'api-key-ends' && <Link to="/develop/keys">API keys</Link>}
        </p>
      </div>
    </li>
  )
}
