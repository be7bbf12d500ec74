import { Select, TextInput } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { CreatedWebhookBody } from '../../../src/http/api/webhooks.ts'
import { callApi } from '../api.ts'
import { Dialog } from '../ui/dialog.tsx'
import { ALL_EVENTS, EVENTS } from './webhook-events.ts'

type AddWebhookDialogProps = { onClose(): void; onAdded(webhook: CreatedWebhookBody): void }

export function AddWebhookDialog({ onClose, onAdded }: AddWebhookDialogProps) {
  const queries = useQueryClient()
  const [value, setValue] = useState('')
  const [event, setEvent] = useState<string>(ALL_EVENTS)
  const add = useMutation({
    mutationFn: () => callApi<CreatedWebhookBody>('POST', 'hooks', { body: { type: 'http', value, event } }),
    async onSuccess(created) {
      onAdded(created)
      await queries.invalidateQueries({ queryKey: ['webhooks'] })
    },
  })
  return (
    <Dialog
      title="Add a webhook"
      onClose={onClose}
      action="Add"
      isBusy={add.isPending}
      isDisabled={value.trim() === ''}
      error={add.error}
      onSubmit={() => add.mutate()}
    >
      <TextInput
        label="Address"
        type="url"
        placeholder="https://example.org/hooks"
        description="On the public internet; it answers with a status of 200 to 299."
        data-autofocus
        value={value}
        onChange={({ target }) => setValue(target.value)}
      />
      <Select
        label="Events"
        data={[
          { value: ALL_EVENTS, label: 'All but alerts' },
          ...Object.entries(EVENTS).map(([name, label]) => ({ value: name, label: `${label} (${name})` })),
        ]}
        value={event}
        onChange={(next) => setEvent(next ?? ALL_EVENTS)}
        allowDeselect={false}
      />
    </Dialog>
  )
}
