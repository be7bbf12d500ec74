import { Button } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { callApi } from '../api.ts'
import { LIBRARY } from '../catalogue/queries.ts'
import { ConfirmDialog } from '../ui/confirm-dialog.tsx'
import { Section } from '../ui/section.tsx'

/** Into the trash, from which the video can be restored for 7 days; one without a file is deleted for good. */
export function DeleteSection({ video: { id, title, status } }: { video: VideoBody }) {
  const navigate = useNavigate()
  const [isAsking, setAsking] = useState(false)
  const hasFile = status !== 'PRE-Upload'
  return (
    <Section
      title="Delete the video"
      lead={
        hasFile
          ? 'It stops playing everywhere. For 7 days you can restore it from the trash.'
          : 'It has no file yet, and is deleted for good.'
      }
    >
      <div>
        <Button variant="default" onClick={() => setAsking(true)}>
          Delete
        </Button>
      </div>
      {isAsking && (
        <ConfirmDialog
          title={`Delete ${title}?`}
          onClose={() => setAsking(false)}
          action="Delete"
          color="stop"
          call={() => callApi<unknown>('DELETE', 'videos', { query: { trash: 1, videos: id } })}
          announced={hasFile ? `${title} is in the trash.` : `${title} has been deleted.`}
          onDone={() => navigate({ to: '/videos' })}
          refreshes={LIBRARY}
        >
          <p>Viewers who watch it now are stopped.</p>
        </ConfirmDialog>
      )}
    </Section>
  )
}
