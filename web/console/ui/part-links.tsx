import { Link, type LinkProps } from '@tanstack/react-router'
import styles from './part-links.module.css'

type Part = { label: string; to: NonNullable<LinkProps['to']>; params?: LinkProps['params']; count?: number }

/** The parts of a section, each at an address of its own. */
export function PartLinks({ label, parts }: { label: string; parts: readonly Part[] }) {
  return (
    <nav aria-label={label} className={styles.parts}>
      {parts.map(({ label, to, params, count }) => (
        <Link key={label} to={to} params={params} resetScroll={false} className={styles.part} activeOptions={EXACTLY}>
          {label} {count !== undefined && <span className={styles.count}>{count}</span>}
        </Link>
      ))}
    </nav>
  )
}

const EXACTLY = { exact: true, includeSearch: false } as const
