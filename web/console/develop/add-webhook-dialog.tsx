import { Select, TextInput } from '@mantine/core'
import { useForm } from 'react-hook-form'
import type { CreatedWebhookBody } from '../../../src/http/api/webhooks.ts'
import { callApi } from '../api.ts'
import { Dialog } from '../ui/dialog.tsx'
import { FILLED, useField } from '../ui/form.tsx'
import { useChange } from '../ui/use-change.ts'
import { ALL_EVENTS, EVENTS } from './webhook-events.ts'

type NewWebhook = { value: string; event: string }
type AddWebhookDialogProps = { onClose(): void; onAdded(webhook: CreatedWebhookBody): void }

const CHOICES = [
  { value: ALL_EVENTS, label: 'All but alerts' },
  ...Object.entries(EVENTS).map(([name, label]) => ({ value: name, label: `${label} (${name})` })),
]

export function AddWebhookDialog({ onClose, onAdded }: AddWebhookDialogProps) {
  const { control, register, handleSubmit, formState } = useForm<NewWebhook>({ defaultValues: { value: '', event: ALL_EVENTS } })
  const event = useField({ control, name: 'event' })
  const add = useChange({
    call: (webhook: NewWebhook) => callApi<CreatedWebhookBody>('POST', 'hooks', { body: { type: 'http', ...webhook } }),
    onDone: onAdded,
    refreshes: [['webhooks']],
  })
  return (
    <Dialog
      title="Add a webhook"
      onClose={onClose}
      action="Add"
      change={add}
      isDisabled={!formState.isValid}
      onSubmit={handleSubmit((webhook) => add.mutate(webhook))}
    >
      <TextInput
        label="Address"
        type="url"
        placeholder="https://example.org/hooks"
        description="On the public internet; it answers with a status of 200 to 299."
        data-autofocus
        {...register('value', FILLED)}
      />
      <Select label="Events" data={CHOICES} allowDeselect={false} {...event} />
    </Dialog>
  )
}
