import { Button, FileButton, NumberInput } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { callApi, sendForm } from '../api.ts'
import { refreshLibrary } from '../catalogue/queries.ts'
import { posterUrl } from '../posters.ts'
import { useAnnounce } from '../ui/announcements.tsx'
import { FailureNotice } from '../ui/failure.tsx'
import { Section } from '../ui/section.tsx'
import styles from './poster-section.module.css'

/** The picture that is shown before the video plays. */
export function PosterSection({ video }: { video: VideoBody }) {
  const queries = useQueryClient()
  const announce = useAnnounce()
  const [timeS, setTimeS] = useState<number | ''>('')
  const onSuccess = async () => {
    announce('The poster has been changed.')
    await refreshLibrary(queries)
  }
  const upload = useMutation({ mutationFn: (file: File) => sendForm<unknown>(`videos/${video.id}/files`, file), onSuccess })
  const choose = useMutation({
    mutationFn: (time: number) => callApi<unknown>('POST', `videos/${video.id}/files`, { body: { type: 'poster', time } }),
    onSuccess,
  })
  const error = choose.error ?? upload.error
  const url = posterUrl(video, 320)
  return (
    <Section title="Poster" lead="Shown before the video plays, and in lists.">
      <div className={styles.poster}>
        {url && <img src={url} alt="The poster now" width={240} height={135} />}
        <NumberInput
          label="Frame at second"
          min={0}
          max={Math.floor(video.length)}
          value={timeS}
          onChange={(value) => setTimeS(typeof value === 'number' ? value : '')}
        />
        <Button
          variant="default"
          disabled={timeS === ''}
          loading={choose.isPending}
          onClick={() => timeS !== '' && choose.mutate(timeS)}
        >
          Use this frame
        </Button>
        <FileButton accept="image/png,image/jpeg,image/webp" onChange={(file) => file && upload.mutate(file)}>
          {(props) => (
            <Button {...props} variant="default" loading={upload.isPending}>
              Upload an image
            </Button>
          )}
        </FileButton>
      </div>
      {error && <FailureNotice error={error} />}
    </Section>
  )
}
