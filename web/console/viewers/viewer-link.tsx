import { Link } from '@tanstack/react-router'
import type { ViewerName } from './queries.ts'
import styles from './viewer-link.module.css'

type ViewerLinkProps = { userId: string | null; viewer: ViewerName }

/** A viewer by name, with what else is known of them below it. */
export function ViewerLink({ userId, viewer }: ViewerLinkProps) {
  if (userId === null) return <span className={styles.soft}>Without an id</span>
  const [shown, ...others] = namesOf(userId, viewer)
  return (
    <span className={styles.viewer}>
      <Link to="/viewers/$userId" params={{ userId }}>
        {shown}
      </Link>
      {others.length > 0 && <span className={styles.others}>{others.join(' · ')}</span>}
    </span>
  )
}

/** Name, e-mail address and id, as far as they are known. */
export function namesOf(userId: string, viewer: ViewerName): string[] {
  return [viewer?.name, viewer?.email, userId].filter((name) => name !== null && name !== undefined)
}
