import { Button } from '@mantine/core'
import { useState } from 'react'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { callApi } from '../api.ts'
import { queueQuery } from '../system/queries.ts'
import { Dialog } from '../ui/dialog.tsx'
import { useChange } from '../ui/use-change.ts'

/** Has all renditions of a video that plays made again. */
export function EncodeAgain({ video: { id, title } }: { video: VideoBody }) {
  const [isAsking, setAsking] = useState(false)
  const encode = useChange({
    call: () => callApi<unknown>('POST', `videos/${id}/encode`),
    announced: `${title} is encoded again, and plays meanwhile.`,
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
          onSubmit={() => encode.mutate()}
        >
          <p>
            All renditions are made again from the uploaded file, with a new key. The video plays as it is until they are
            complete. Viewers who watch it then have to start it again.
          </p>
        </Dialog>
      )}
    </>
  )
}
