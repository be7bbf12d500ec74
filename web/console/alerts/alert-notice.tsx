import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useMatchRoute } from '@tanstack/react-router'
import { useMay } from '../sign-in/queries.ts'
import { WarningIcon } from '../ui/icons.tsx'
import { formatCount } from '../units.ts'
import styles from './alert-notice.module.css'
import { alertsQuery } from './queries.ts'
import { explain } from './sentence.ts'
import { useMarkSeen } from './use-mark-seen.ts'

/** On top of every page until it was seen: what the owner should look at. */
export function AlertNotice() {
  const { data = [] } = useQuery(alertsQuery)
  const isOnItsPage = useMatchRoute()({ to: '/alerts' })
  const markSeen = useMarkSeen()
  const mayEdit = useMay('editor')
  const unseen = data.filter(({ seen }) => !seen)
  const [newest] = unseen
  if (!newest || isOnItsPage) return null
  return (
    <section aria-label="New alerts" className={styles.notice}>
      <WarningIcon size={18} />
      <p>
        {explain(newest).title}.{unseen.length > 1 && ` And ${formatCount(unseen.length - 1)} more.`}
      </p>
      <span className={styles.actions}>
        <Button component={Link} to="/alerts" variant="default" size="xs">
          {unseen.length > 1 ? 'Show alerts' : 'Show the alert'}
        </Button>
        {mayEdit && (
          <Button variant="subtle" color="gray" size="xs" loading={markSeen.isPending} onClick={() => markSeen.mutate(unseen)}>
            Seen
          </Button>
        )}
      </span>
    </section>
  )
}
