import { Button, FileButton, NumberInput, Slider } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { callApi, sendForm } from '../api.ts'
import { LIBRARY } from '../catalogue/queries.ts'
import { posterUrl } from '../posters.ts'
import { FailureNotice } from '../ui/failure.tsx'
import { Section } from '../ui/section.tsx'
import { useChange } from '../ui/use-change.ts'
import { formatStart } from './chapter-lines.ts'
import { FramePicture } from './frame-picture.tsx'
import styles from './poster-section.module.css'
import { posterCandidatesQuery } from './queries.ts'

/** The picture that is shown before the video plays. */
export function PosterSection({ video }: { video: VideoBody }) {
  const { data: candidates = [] } = useQuery(posterCandidatesQuery(video.id))
  const [timeS, setTimeS] = useState<number | ''>('')
  const done = { announced: 'The poster has been changed.', refreshes: LIBRARY }
  const upload = useChange({ call: (file: File) => sendForm<unknown>(`videos/${video.id}/files`, file), ...done })
  const choose = useChange({
    call: (time: number) => callApi<unknown>('POST', `videos/${video.id}/files`, { body: { type: 'poster', time } }),
    ...done,
  })
  const error = choose.error ?? upload.error
  const url = posterUrl(video, 320)
  const lastS = Math.floor(video.length)
  return (
    <Section title="Poster" lead="Shown before the video plays, and in lists.">
      <div className={styles.poster}>
        {url && <img src={url} alt="The poster now" width={240} height={135} />}
        <FileButton accept="image/png,image/jpeg,image/webp" onChange={(file) => file && upload.mutate(file)}>
          {(props) => (
            <Button {...props} variant="default" loading={upload.isPending}>
              Upload an image
            </Button>
          )}
        </FileButton>
      </div>
      {candidates.length > 0 && (
        <fieldset className={styles.candidates}>
          <legend>Sharp and well lit</legend>
          {candidates.map(({ time, url }) => (
            <button key={time} type="button" disabled={choose.isPending} onClick={() => choose.mutate(time)}>
              <img src={url} alt="" width={200} height={113} />
              <span>Use the frame at {formatStart(Math.round(10 * time) / 10)}</span>
            </button>
          ))}
        </fieldset>
      )}
      <div className={styles.frame}>
        <FramePicture videoId={video.id} timeS={timeS === '' ? 0 : timeS} />
        <Slider
          className={styles.slider}
          thumbLabel="Frame"
          min={0}
          max={lastS}
          value={timeS === '' ? 0 : timeS}
          onChange={setTimeS}
          label={formatStart}
        />
        <NumberInput
          label="Frame at second"
          min={0}
          max={lastS}
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
      </div>
      {error && <FailureNotice error={error} />}
    </Section>
  )
}
