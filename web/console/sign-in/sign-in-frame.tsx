import { Title } from '@mantine/core'
import { type ReactNode, useEffect } from 'react'
import { Logo } from '../ui/logo.tsx'
import styles from './sign-in.module.css'

/** Around what is shown before a person is signed in. */
export function SignInFrame({ title, children }: { title: string; children: ReactNode }) {
  useEffect(() => {
    document.title = `${title} · Reelgate`
  }, [title])
  return (
    <main className={styles.frame}>
      <div className={styles.card}>
        <Logo size={40} />
        <Title order={1} className={styles.title}>
          {title}
        </Title>
        {children}
      </div>
    </main>
  )
}
