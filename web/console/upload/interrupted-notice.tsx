import { ActionIcon } from '@mantine/core'
import { useEffect, useState } from 'react'
import { CloseIcon, WarningIcon } from '../app/icons.tsx'
import { listNames } from '../units.ts'
import { takeInterrupted } from './interrupted.ts'
import styles from './interrupted-notice.module.css'

/** Which uploads ended with their tab, on the next visit: until it is closed by hand. */
export function InterruptedNotice() {
  const [titles, setTitles] = useState<string[]>([])
  useEffect(() => {
    void takeInterrupted().then((taken) => taken.length > 0 && setTitles(taken))
  }, [])
  if (titles.length === 0) return null
  return (
    <div role="alert" className={styles.notice}>
      <WarningIcon size={18} />
      <p>
        {titles.length === 1 ? 'An upload' : `${titles.length} uploads`} ended when the tab was closed: {listNames(titles)}. Add{' '}
        {titles.length === 1 ? 'this file' : 'these files'} again; the entries in the list that wait for a file can be deleted.
      </p>
      <ActionIcon variant="subtle" color="gray" aria-label="Close this notice" onClick={() => setTitles([])}>
        <CloseIcon size={16} />
      </ActionIcon>
    </div>
  )
}
