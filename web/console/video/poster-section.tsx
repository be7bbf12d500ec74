import { Button, FileButton, NumberInput } from '@mantine/core'
import { useState } from 'react'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { callApi, sendForm } from '../api.ts'
import { LIBRARY } from '../catalogue/queries.ts'
import { posterUrl } from '../posters.ts'
import { FailureNotice } from '../ui/failure.tsx'
import { Section } from '../ui/section.tsx'
import { useChange } from '../ui/use-change.ts'
import styles from './poster-section.module.css'

/** The picture that is shown before the video plays. */
export function PosterSection({ video }: { video: VideoBody }) {
  const [timeS, setTimeS] = useState<number | ''>('')
  const done = { announced: 'The poster has been changed.', refreshes: LIBRARY }
  const upload = useChange({ call: (file: File) => sendForm<unknown>(`videos/${video.id}/files`, file), ...done })
  const choose = useChange({
    call: (time: number) => callApi<unknown>('POST', `videos/${video.id}/files`, { body: { type: 'poster', time } }),
    ...done,
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
