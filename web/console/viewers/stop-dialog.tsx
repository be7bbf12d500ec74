import { Radio, Stack } from '@mantine/core'
import { useForm } from 'react-hook-form'
import { callApi } from '../api.ts'
import { Dialog } from '../ui/dialog.tsx'
import { useField } from '../ui/form.tsx'
import { useChange } from '../ui/use-change.ts'
import type { Session } from './queries.ts'

type Target = { target: 'session' | 'viewer' }
type StopDialogProps = { session: Session; sessions: readonly Session[]; onClose(): void }

/** Stops a session, or all of its viewer. */
export function StopDialog({ session: { session, userId, viewer, title }, sessions, onClose }: StopDialogProps) {
  const name = viewer?.name ?? userId ?? 'this viewer'
  const ofViewer = userId === null ? [] : sessions.filter((other) => other.userId === userId)
  const { control, handleSubmit } = useForm<Target>({ defaultValues: { target: 'session' } })
  const target = useField({ control, name: 'target' })
  const stop = useChange({
    call: ({ target }: Target) =>
      callApi<{ count: number }>('DELETE', 'sessions', { query: target === 'viewer' ? { userId: userId ?? '' } : { session } }),
    announced: ({ count }) => (count === 1 ? 'Stopped. The player says so within 8 seconds.' : `${count} sessions stopped.`),
    onDone: onClose,
    refreshes: [['sessions']],
  })
  return (
    <Dialog
      title={`Stop ${name}?`}
      onClose={onClose}
      action="Stop"
      color="stop"
      change={stop}
      onSubmit={handleSubmit((values) => stop.mutate(values))}
    >
      {userId !== null && (
        <Radio.Group label="What to stop" {...target}>
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
