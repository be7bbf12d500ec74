import { Button, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { callApi } from '../api.ts'
import { queueQuery } from '../system/queries.ts'
import { Dialog } from '../ui/dialog.tsx'
import { useChange } from '../ui/use-change.ts'
import { parseStart } from './chapter-lines.ts'

/** Has all renditions of a video that plays made again, or what plays at one position. */
export function EncodeAgain({ video: { id, title, length } }: { video: VideoBody }) {
  const [isAsking, setAsking] = useState(false)
  const [positionText, setPositionText] = useState('')
  const positionS = parseStart(positionText)
  const isPart = positionText.trim() !== ''
  const problem =
    isPart && (positionS === undefined || positionS >= length) ? 'Write a time of the video, such as 12:30.' : undefined
  const encode = useChange({
    call: () => callApi<unknown>('POST', `videos/${id}/encode${isPart ? `?positionS=${positionS}` : ''}`),
    announced: isPart ? `A part of ${title} is encoded again and compared.` : `${title} is encoded again, and plays meanwhile.`,
    onDone: () => setAsking(false),
    refreshes: [['videos'], queueQuery.queryKey],
  })
  return (
    <>
      <Button variant="default" onClick={() => setAsking(true)}>
        Encode again
      </Button>
      {isAsking && (
        <Dialog
          title={`Encode ${title} again?`}
          onClose={() => setAsking(false)}
          action="Encode again"
          change={encode}
          onSubmit={() => problem === undefined && encode.mutate()}
        >
          {isPart ? (
            <p>
              The parts that play there, about 20 seconds of video and a minute of sound, are encoded again and compared with what
              is stored. Where they come out the same, nothing changes, and the video’s history says so. Otherwise all of the
              video is encoded again; it plays meanwhile.
            </p>
          ) : (
            <p>
              All renditions are made again from the uploaded file, with a new key. The video plays as it is until they are
              complete. Viewers who watch it then have to start it again.
            </p>
          )}
          <TextInput
            label="Only what plays at"
            description="For a place that looks or sounds wrong. Empty: all of the video."
            placeholder="12:30"
            autoComplete="off"
            value={positionText}
            error={problem}
            onChange={({ target }) => setPositionText(target.value)}
          />
        </Dialog>
      )}
    </>
  )
}
