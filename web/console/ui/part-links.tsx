import { Link, type LinkProps, useLocation } from '@tanstack/react-router'
import { type ReactNode, useEffect, useRef } from 'react'
import styles from './part-links.module.css'

type Part = { label: string; to: NonNullable<LinkProps['to']>; params?: LinkProps['params']; count?: number }

/** The parts of a section, each at an address of its own. */
export function PartLinks({ label, parts }: { label: string; parts: readonly Part[] }) {
  return (
    <PartRow label={label}>
      {parts.map(({ label, to, params, count }) => (
        <Link key={label} to={to} params={params} resetScroll={false} className={styles.part} activeOptions={EXACTLY}>
          {label} {count !== undefined && <span className={styles.count}>{count}</span>}
        </Link>
      ))}
    </PartRow>
  )
}

/** A row of links. On a phone it is wider than the screen, and shows the part that is open. */
export function PartRow({ label, children }: { label: string; children: ReactNode }) {
  const row = useRef<HTMLElement>(null)
  /** Once for each address: what the reader scrolls then stays. */
  const shownHref = useRef('')
  const href = useLocation({ select: (location) => location.href })
  useEffect(() => {
    const open = row.current?.querySelector<HTMLElement>('[aria-current]')
    if (!row.current || !open || shownHref.current === href) return
    shownHref.current = href
    row.current.scrollLeft += middleOf(open) - middleOf(row.current)
  })
  return (
    <nav ref={row} aria-label={label} className={styles.parts}>
      {children}
    </nav>
  )
}

function middleOf(element: HTMLElement): number {
  const { left, width } = element.getBoundingClientRect()
  return left + width / 2
}

const EXACTLY = { exact: true, includeSearch: false } as const
