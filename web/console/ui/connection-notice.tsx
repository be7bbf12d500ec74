import { Button } from '@mantine/core'
import { useEffect, useState, useSyncExternalStore } from 'react'
import { connection } from '../connection.ts'
import styles from './connection-notice.module.css'
import { Countdown } from './countdown.tsx'
import { WarningIcon } from './icons.tsx'

/** Above every page, and over what is scrolled, while the server does not answer. */
export function ConnectionNotice() {
  const { isAway, nextTryAtMs } = useSyncExternalStore(connection.subscribe, connection.get)
  const [wasAway, setWasAway] = useState(false)
  if (isAway && !wasAway) setWasAway(true)
  useEffect(() => {
    const checkIfAway = () => {
      if (connection.get().isAway && document.visibilityState === 'visible') void connection.check()
    }
    window.addEventListener('online', checkIfAway)
    document.addEventListener('visibilitychange', checkIfAway)
    return () => {
      window.removeEventListener('online', checkIfAway)
      document.removeEventListener('visibilitychange', checkIfAway)
    }
  }, [])
  if (!isAway) return wasAway && <output className="visually-hidden">Reelgate answers again.</output>
  return (
    <section aria-label="Connection" className={styles.notice}>
      <WarningIcon size={18} />
      <p role="alert">
        <strong>Reelgate does not answer.</strong> It may be restarting, or this device is offline. What you see may be out of
        date.
      </p>
      <span className={styles.next}>{nextTryAtMs === undefined ? 'Trying …' : <Countdown toMs={nextTryAtMs} />}</span>
      <Button variant="default" size="xs" disabled={nextTryAtMs === undefined} onClick={connection.check}>
        Try now
      </Button>
    </section>
  )
}
