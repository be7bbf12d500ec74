import { Title } from '@mantine/core'
import type { ReactNode } from 'react'
import { useEffect } from 'react'
import styles from './page.module.css'

type PageProps = { title: string; actions?: ReactNode; children: ReactNode }

/** The frame of a page: its title, in the browser's tab too, what can be done on it, and its content. */
export function Page({ title, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Reelgate`
  }, [title])
  return (
    <div className={styles.page}>
      <div className={styles.head}>
        <Title order={1}>{title}</Title>
        {actions && <div className={styles.actions}>{actions}</div>}
      </div>
      {children}
    </div>
  )
}
