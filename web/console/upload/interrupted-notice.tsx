import { ActionIcon } from '@mantine/core'
import { useEffect, useState } from 'react'
import { Notice } from '../ui/failure.tsx'
import { CloseIcon } from '../ui/icons.tsx'
import { listNames } from '../units.ts'
import { type Interrupted, takeInterrupted } from './interrupted.ts'
import styles from './interrupted-notice.module.css'

const REASONS = {
  closed: 'when the tab was closed',
  reloaded: 'when the page was loaded again',
  stopped: 'when the browser or the computer stopped',
} as const satisfies Record<Interrupted['why'], string>

/** Which uploads ended with their page, on the next visit: until it is closed by hand. */
export function InterruptedNotice() {
  const [interrupted, setInterrupted] = useState<Interrupted[]>([])
  useEffect(() => {
    void takeInterrupted().then((taken) => taken.length > 0 && setInterrupted(taken))
  }, [])
  return interrupted.map(({ titles, why }) => (
    <div key={why + titles.join()} className={styles.around}>
      <Notice isWarning text={sentenceOf(titles, why)}>
        <ActionIcon variant="subtle" color="gray" aria-label="Close this notice" onClick={() => setInterrupted([])}>
          <CloseIcon size={16} />
        </ActionIcon>
      </Notice>
    </div>
  ))
}

function sentenceOf(titles: readonly string[], why: Interrupted['why']): string {
  const [uploads, files] = titles.length === 1 ? ['An upload', 'this file'] : [`${titles.length} uploads`, 'these files']
  return `${uploads} ended ${REASONS[why]}: ${listNames(titles)}. Choose ${files} again in the same place: uploads continue where they stopped, within 24 hours unless the server is set otherwise.`
}
