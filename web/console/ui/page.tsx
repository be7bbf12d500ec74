import { Title } from '@mantine/core'
import type { ReactNode } from 'react'
import { useEffect } from 'react'
import styles from './page.module.css'

type PageProps = {
  title: string
  /** The way to what this page is part of, such as a link to all videos. */
  above?: ReactNode
  actions?: ReactNode
  children: ReactNode
}

/** The frame of a page: its title, in the browser's tab too, what can be done on it, and its content. */
export function Page({ title, above, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Reelgate`
  }, [title])
  return (
    <div className={styles.page}>
      {above && <div className={styles.above}>{above}</div>}
      <div className={styles.head}>
        <Title order={1}>{title}</Title>
        {actions && <div className={styles.actions}>{actions}</div>}
      </div>
      {children}
    </div>
  )
}
