import type { ReactNode } from 'react'
import styles from './state-word.module.css'

/** A state as a word with a dot of its colour. */
export function StateWord({ color, children }: { color: 'ok' | 'warn' | 'stop' | 'gray'; children: ReactNode }) {
  return (
    <span className={styles.state} data-color={color}>
      {children}
    </span>
  )
}
