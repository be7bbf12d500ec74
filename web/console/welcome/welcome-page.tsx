import { Button, Progress } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { type ReactNode, useEffect } from 'react'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { FailureNotice } from '../ui/failure.tsx'
import { CheckIcon } from '../ui/icons.tsx'
import { Page } from '../ui/page.tsx'
import { formatBytes } from '../units.ts'
import { DropZone } from '../upload/drop-zone.tsx'
import { useUploadList, useUploads } from '../upload/upload-provider.tsx'
import type { Upload } from '../upload/uploads.ts'
import { PlayerFrame } from '../video/player-frame.tsx'
import { videoQuery } from '../video/queries.ts'
import { SiteCodeTabs } from '../video/site-code-tabs.tsx'
import { VideoState } from '../video/video-state.tsx'
import styles from './welcome-page.module.css'

const route = getRouteApi('/signed-in/welcome')

/** From the first file to the video on the owner's site, in three steps on one page. */
export function WelcomePage() {
  const { video: videoId } = route.useSearch()
  const navigate = route.useNavigate()
  const uploads = useUploadList()
  const upload = uploads.find((one) => videoId === undefined || one.videoId === videoId)
  const uploadedId = upload?.videoId
  useEffect(() => {
    if (videoId === undefined && uploadedId !== undefined) void navigate({ search: { video: uploadedId }, replace: true })
  }, [videoId, uploadedId, navigate])
  const { data: video, error, refetch } = useQuery({ ...videoQuery(videoId ?? ''), enabled: videoId !== undefined })

  const hasFile = video !== undefined && video.status !== 'PRE-Upload'
  const plays = video?.status === 'ready'
  return (
    <Page title="Your first video">
      {error && <FailureNotice error={error} onRetry={() => refetch()} />}
      <ol className={styles.steps}>
        <Step title="Add a video" state={hasFile ? 'done' : 'now'}>
          {hasFile ? <p>{video.title} is on the server.</p> : <AddStep upload={upload} />}
        </Step>
        <Step title="Play it" state={plays ? 'done' : hasFile ? 'now' : 'later'}>
          {hasFile ? (
            <PlayStep video={video} />
          ) : (
            <p>It can be played a moment after its last byte, while the rest is still encoded.</p>
          )}
        </Step>
        <Step title="Put it on your site" state={plays ? 'now' : 'later'}>
          {plays ? <SiteCodeTabs videoId={video.id} /> : <p>A few lines of code, in the language of your site.</p>}
        </Step>
      </ol>
      {plays && (
        <Button component={Link} to="/videos" className={styles.end} variant="default">
          Open your library
        </Button>
      )}
    </Page>
  )
}

type StepProps = { title: string; state: 'done' | 'now' | 'later'; children: ReactNode }

function Step({ title, state, children }: StepProps) {
  return (
    <li className={styles.step} data-state={state} aria-current={state === 'now' ? 'step' : undefined}>
      <h2>
        <span className={styles.number}>{state === 'done' && <CheckIcon size={16} />}</span>
        {title}
      </h2>
      <div className={styles.content}>{children}</div>
    </li>
  )
}

function AddStep({ upload }: { upload: Upload | undefined }) {
  const uploads = useUploads()
  if (!upload) return <DropZone />
  if (upload.state === 'failed')
    return (
      <div role="alert" className={styles.failed}>
        <p>
          {upload.title} was not uploaded. {upload.problem}
        </p>
        <Button onClick={() => uploads.retry(upload.id)}>Try again</Button>
      </div>
    )
  const percent = Math.floor((100 * upload.sentBytes) / Math.max(1, upload.sizeBytes))
  const isWaiting = upload.isStalled || upload.state === 'pausing'
  const speed = isWaiting ? 0 : uploads.bytesPerS()
  return (
    <div className={styles.sending}>
      <p>Uploading {upload.title}</p>
      <Progress value={percent} size={10} aria-label={`Upload of ${upload.title}`} />
      <p>
        {isWaiting ? 'Waiting for the connection' : `${percent} % of ${formatBytes(upload.sizeBytes)}`}
        {speed > 0 && ` · ${formatBytes(speed)}/s`}. Keep this tab open until it is uploaded.
      </p>
    </div>
  )
}

function PlayStep({ video }: { video: VideoBody }) {
  if (video.status !== 'ready') return <VideoState video={video} />
  return <PlayerFrame videoId={video.id} title={`Player: ${video.title}`} />
}
