import { Button, Loader } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { callApi } from '../api.ts'
import { refreshLibrary } from '../catalogue/queries.ts'
import { isUnderWay } from '../catalogue/status.ts'
import { queueQuery } from '../system/queries.ts'
import { FailureNotice } from '../ui/failure.tsx'
import { ReloadIcon, WarningIcon } from '../ui/icons.tsx'
import { useMayEdit } from './use-may-edit.ts'
import styles from './video-state.module.css'

const SENTENCES: Readonly<Record<string, string>> = {
  'PRE-Upload': 'This video waits for its file.',
  Queued: 'In the queue: encoding starts as soon as an encoder is free.',
  Processing: 'Encoding. It can be played in a moment, before all of it is encoded.',
}

/** In the place of the player, while there is nothing to play: what happens, and that the page need not stay open. */
export function VideoState({ video: { id, status, statusReason } }: { video: VideoBody }) {
  const mayEdit = useMayEdit(id)
  const isWorking = isUnderWay(status)
  return (
    <div className={styles.state} role="status">
      {isWorking ? <Loader size={28} /> : <WarningIcon size={28} />}
      <p>{statusReason ?? SENTENCES[status] ?? status}</p>
      {isWorking && <Progress videoId={id} />}
      {isWorking && <p className={styles.hint}>Encoding continues when you close the page.</p>}
      {(status === 'Encoding error' || status === 'Not a media file') && mayEdit && <Retry videoId={id} />}
    </div>
  )
}

/** How far the encoder is, as soon as it is known. */
function Progress({ videoId }: { videoId: string }) {
  const { data: rows = [] } = useQuery({ ...queueQuery, refetchInterval: PROGRESS_MS })
  const work = rows.find(({ video }) => video === videoId)
  if (!work || work.part === null) return null
  return (
    <p className={styles.hint}>
      {Math.floor(100 * work.part)} %{work.chunks && `, chunk ${work.chunks.done} of ${work.chunks.all}`}
    </p>
  )
}

const PROGRESS_MS = 2_000

function Retry({ videoId }: { videoId: string }) {
  const queries = useQueryClient()
  const retry = useMutation({
    mutationFn: () => callApi<unknown>('POST', `videos/${videoId}/retry`),
    onSuccess: () => refreshLibrary(queries),
  })
  return (
    <>
      <Button variant="default" leftSection={<ReloadIcon size={16} />} loading={retry.isPending} onClick={() => retry.mutate()}>
        Try again
      </Button>
      {retry.error && <FailureNotice error={retry.error} />}
    </>
  )
}
