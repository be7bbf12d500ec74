import { Loader } from '@mantine/core'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { WarningIcon } from '../app/icons.tsx'
import { isUnderWay } from '../library/status.ts'
import styles from './video-state.module.css'

const SENTENCES: Readonly<Record<string, string>> = {
  'PRE-Upload': 'This video waits for its file.',
  Queued: 'In the queue: encoding starts as soon as an encoder is free.',
  Processing: 'Encoding. It can be played in a moment, before all of it is encoded.',
}

/** In the place of the player, while there is nothing to play: what happens, and that the page need not stay open. */
export function VideoState({ video: { status, statusReason } }: { video: VideoBody }) {
  const isWorking = isUnderWay(status)
  return (
    <div className={styles.state} role="status">
      {isWorking ? <Loader size={28} /> : <WarningIcon size={28} />}
      <p>{statusReason ?? SENTENCES[status] ?? status}</p>
      {isWorking && <p className={styles.hint}>Encoding continues when you close the page.</p>}
    </div>
  )
}
