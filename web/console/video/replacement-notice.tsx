import { Button, Progress } from '@mantine/core'
import type { OneVideoBody } from '../../../src/http/api/video-body.ts'
import { callApi } from '../api.ts'
import { LIBRARY } from '../catalogue/queries.ts'
import { FailureNotice, Notice } from '../ui/failure.tsx'
import { useChange } from '../ui/use-change.ts'
import styles from './replacement-notice.module.css'
import { useMayEdit } from './use-may-edit.ts'

const SENTENCES = {
  replace: {
    importing: 'The new file is being fetched.',
    waiting: 'The new file has arrived, and waits to be examined.',
    encoding: 'The new file is being encoded.',
    failed: 'The new file could not be used, and nothing has changed.',
  },
  trim: {
    importing: 'The trim waits.',
    waiting: 'The trim waits for an encoder.',
    encoding: 'The trim is being encoded.',
    failed: 'The video could not be trimmed, and nothing has changed.',
  },
} as const

/** How far what replaces a video is, or why it failed. */
export function ReplacementNotice({ video: { id, replacement } }: { video: OneVideoBody }) {
  const mayEdit = useMayEdit(id)
  const cancel = useChange({
    call: () => callApi<unknown>('DELETE', `videos/${id}/replacement`),
    refreshes: LIBRARY,
  })
  if (!replacement) return null
  const { kind, state, part, reason } = replacement
  const isFailed = state === 'failed'
  const sentence = SENTENCES[kind][state]
  const button = mayEdit && (
    <Button variant="default" size="xs" loading={cancel.isPending} onClick={() => cancel.mutate()}>
      {isFailed ? 'Dismiss' : 'Cancel'}
    </Button>
  )
  return (
    <>
      {isFailed ? (
        <Notice text={`${sentence} ${reason ?? ''}`}>{button}</Notice>
      ) : (
        <div role="status" className={styles.notice}>
          <div className={styles.text}>
            <p>
              {sentence} {state === 'encoding' && part !== undefined && <strong>{Math.floor(100 * part)} %</strong>}
            </p>
            <p className={styles.hint}>Until it is complete, viewers see the video as before. You may close this page.</p>
          </div>
          {button}
          <Progress
            className={styles.bar}
            value={100 * (part ?? 0)}
            size={6}
            aria-label={kind === 'trim' ? 'Trimming' : 'Replacing the file'}
          />
        </div>
      )}
      {cancel.error && <FailureNotice error={cancel.error} />}
    </>
  )
}
