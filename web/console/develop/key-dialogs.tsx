import { Checkbox, Select, TextInput } from '@mantine/core'
import { useForm } from 'react-hook-form'
import type { CreatedKeyBody } from '../../../src/http/api/keys.ts'
import { callApi } from '../api.ts'
import { ConfirmDialog } from '../ui/confirm-dialog.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { FILLED, useField } from '../ui/form.tsx'
import { useChange } from '../ui/use-change.ts'
import styles from './keys-page.module.css'
import { PERMISSION_NAMES, PERMISSIONS } from './permissions.ts'
import { type Key, keysQuery } from './queries.ts'

const DAY_S = 86_400
const LIVES = [
  { value: '', label: 'Never' },
  { value: String(30 * DAY_S), label: 'In 30 days' },
  { value: String(90 * DAY_S), label: 'In 90 days' },
  { value: String(365 * DAY_S), label: 'In a year' },
]
const OVERLAPS = [
  { value: '0', label: 'Ends now' },
  { value: String(3600), label: 'Stays valid for an hour' },
  { value: String(DAY_S), label: 'Stays valid for a day' },
  { value: String(7 * DAY_S), label: 'Stays valid for a week' },
]

type DialogState = { onClose(): void }
type NewKey = { name: string; permissions: string[]; lifeS: string }
type CreatingState = DialogState & { onCreated(key: CreatedKeyBody): void }

export function CreateKeyDialog({ onClose, onCreated }: CreatingState) {
  const { control, register, handleSubmit, formState } = useForm<NewKey>({
    defaultValues: { name: '', permissions: ['otpCreator'], lifeS: '' },
  })
  const permissions = useField({ control, name: 'permissions', rules: { validate: (permissions) => permissions.length > 0 } })
  const lifeS = useField({ control, name: 'lifeS' })
  const create = useChange({
    call: ({ lifeS, ...key }: NewKey) =>
      callApi<CreatedKeyBody>('POST', 'keys', { body: { ...key, ...(lifeS !== '' && { ttl: Number(lifeS) }) } }),
    onDone: onCreated,
    refreshes: [keysQuery.queryKey],
  })
  return (
    <Dialog
      title="Create an API key"
      onClose={onClose}
      action="Create"
      change={create}
      isDisabled={!formState.isValid}
      onSubmit={handleSubmit((key) => create.mutate(key))}
    >
      <TextInput label="What it is for" placeholder="The site" maxLength={100} data-autofocus {...register('name', FILLED)} />
      <Checkbox.Group label="What it may do" {...permissions}>
        <div className={styles.checks}>
          {PERMISSION_NAMES.map((name) => (
            <Checkbox key={name} value={name} label={PERMISSIONS[name].label} description={PERMISSIONS[name].allows} />
          ))}
        </div>
      </Checkbox.Group>
      <Select label="Ends" data={LIVES} allowDeselect={false} {...lifeS} />
    </Dialog>
  )
}

export function RotateKeyDialog({ apiKey, onClose, onCreated }: CreatingState & { apiKey: Key }) {
  const { control, handleSubmit } = useForm({ defaultValues: { overlapS: String(DAY_S) } })
  const overlapS = useField({ control, name: 'overlapS' })
  const rotate = useChange({
    call: ({ overlapS }: { overlapS: string }) =>
      callApi<CreatedKeyBody>('POST', `keys/${apiKey.id}/rotate`, { body: { overlap: Number(overlapS) } }),
    onDone: onCreated,
    refreshes: [keysQuery.queryKey],
  })
  return (
    <Dialog
      title={`Rotate ${apiKey.name}?`}
      onClose={onClose}
      action="Rotate"
      change={rotate}
      onSubmit={handleSubmit((values) => rotate.mutate(values))}
    >
      <p>You get a new secret with the same permissions. Give it to your program before the old one ends.</p>
      <Select label="The old secret" data={OVERLAPS} allowDeselect={false} {...overlapS} />
    </Dialog>
  )
}

export function RevokeKeyDialog({ apiKey, onClose }: DialogState & { apiKey: Key }) {
  return (
    <ConfirmDialog
      title={`Revoke ${apiKey.name}?`}
      onClose={onClose}
      action="Revoke"
      color="stop"
      call={() => callApi<unknown>('DELETE', `keys/${apiKey.id}`)}
      announced={`The key ${apiKey.name} has been revoked.`}
      refreshes={[keysQuery.queryKey]}
    >
      <p>
        Programs that use it are refused from their next call on, and OTPs that it issued open nothing any more. This cannot be
        undone.
      </p>
    </ConfirmDialog>
  )
}
