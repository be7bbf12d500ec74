import { createContext, type ReactNode, use, useCallback, useEffect, useState } from 'react'
import styles from './announcements.module.css'

const SHOWN_MS = 6_000

const Announce = createContext<(sentence: string) => void>(() => undefined)

/** Says what has been done, such as "3 videos moved to Courses.", to eyes and screen readers. What needs an answer is never said here. */
export function useAnnounce(): (sentence: string) => void {
  return use(Announce)
}

export function Announcements({ children }: { children: ReactNode }) {
  const [said, setSaid] = useState<{ sentence: string }>()
  const announce = useCallback((sentence: string) => setSaid({ sentence }), [])
  useEffect(() => {
    if (!said) return
    const over = setTimeout(() => setSaid(undefined), SHOWN_MS)
    return () => clearTimeout(over)
  }, [said])
  return (
    <Announce value={announce}>
      {children}
      <output className={styles.region}>{said && <span className={styles.said}>{said.sentence}</span>}</output>
    </Announce>
  )
}
