import { Button } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { callApi } from '../api.ts'
import { refreshLibrary } from '../catalogue/queries.ts'
import { useAnnounce } from '../ui/announcements.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Section } from '../ui/section.tsx'

/** Into the trash, from which the video can be restored for 7 days; one without a file is deleted for good. */
export function DeleteSection({ video: { id, title, status } }: { video: VideoBody }) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const announce = useAnnounce()
  const [isAsking, setAsking] = useState(false)
  const hasFile = status !== 'PRE-Upload'
  const remove = useMutation({
    mutationFn: () => callApi<unknown>('DELETE', 'videos', { query: { trash: 1, videos: id } }),
    async onSuccess() {
      announce(hasFile ? `${title} is in the trash.` : `${title} has been deleted.`)
      await navigate({ to: '/videos' })
      await refreshLibrary(queries)
    },
  })
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
        <Dialog
          title={`Delete ${title}?`}
          onClose={() => setAsking(false)}
          action="Delete"
          color="stop"
          isBusy={remove.isPending}
          error={remove.error}
          onSubmit={() => remove.mutate()}
        >
          <p>Viewers who watch it now are stopped.</p>
        </Dialog>
      )}
    </Section>
  )
}
