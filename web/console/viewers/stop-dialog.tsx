import { Radio, Stack } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { callApi } from '../api.ts'
import { useAnnounce } from '../ui/announcements.tsx'
import { Dialog } from '../ui/dialog.tsx'
import type { Session } from './queries.ts'

type StopDialogProps = { session: Session; sessions: readonly Session[]; onClose(): void }

/** Stops a session, or all of its viewer. */
export function StopDialog({ session: { session, userId, viewer, title }, sessions, onClose }: StopDialogProps) {
  const queries = useQueryClient()
  const announce = useAnnounce()
  const name = viewer?.name ?? userId ?? 'this viewer'
  const ofViewer = userId === null ? [] : sessions.filter((other) => other.userId === userId)
  const [target, setTarget] = useState<'session' | 'viewer'>('session')
  const stop = useMutation({
    mutationFn: () =>
      callApi<{ count: number }>('DELETE', 'sessions', { query: target === 'viewer' ? { userId: userId ?? '' } : { session } }),
    async onSuccess({ count }) {
      onClose()
      announce(count === 1 ? 'Stopped. The player says so within 8 seconds.' : `${count} sessions stopped.`)
      await queries.invalidateQueries({ queryKey: ['sessions'] })
    },
  })
  return (
    <Dialog
      title={`Stop ${name}?`}
      onClose={onClose}
      action="Stop"
      color="stop"
      isBusy={stop.isPending}
      error={stop.error}
      onSubmit={() => stop.mutate()}
    >
      {userId !== null && (
        <Radio.Group
          label="What to stop"
          value={target}
          onChange={(value) => setTarget(value === 'viewer' ? 'viewer' : 'session')}
        >
          <Stack gap={8} mt={8}>
            <Radio value="session" label={`This session, of ${title ?? 'a deleted video'}`} />
            <Radio
              value="viewer"
              label={ofViewer.length > 1 ? `All ${ofViewer.length} sessions of ${name}` : `All sessions of ${name}`}
            />
          </Stack>
        </Radio.Group>
      )}
      <p>
        No key is given from now on, and the player stops within 8 seconds. A new link from your site plays again: to keep the
        viewer out, issue none.
      </p>
    </Dialog>
  )
}
