import { Checkbox, Radio, Stack, TextInput } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { InvitationBody } from '../../../src/http/console/users.ts'
import { callApi } from '../api.ts'
import { useSignedIn } from '../sign-in/queries.ts'
import { useAnnounce } from '../ui/announcements.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { type User, usersQuery } from './queries.ts'
import { ROLES } from './roles.ts'

export function InviteDialog({ onClose, onInvited }: { onClose(): void; onInvited(invitation: InvitationBody): void }) {
  const queries = useQueryClient()
  const { user } = useSignedIn()
  const [name, setName] = useState('')
  const [email, setEmail] = useState('')
  const [role, setRole] = useState('viewer')
  const [isAdministrator, setAdministrator] = useState(false)
  const invite = useMutation({
    mutationFn: () => {
      const body = { name, email: email || null, role, ...(isAdministrator && { administrator: 1 }) }
      return callApi<InvitationBody>('POST', 'users', { body })
    },
    async onSuccess(invitation) {
      onInvited(invitation)
      await queries.invalidateQueries({ queryKey: usersQuery.queryKey })
    },
  })
  return (
    <Dialog
      title="Invite a person"
      onClose={onClose}
      action="Make a link"
      isBusy={invite.isPending}
      isDisabled={name.trim() === ''}
      error={invite.error}
      onSubmit={() => invite.mutate()}
    >
      <TextInput
        label="Name"
        description="With which the person signs in, such as an e-mail address."
        maxLength={100}
        data-autofocus
        autoComplete="off"
        value={name}
        onChange={({ target }) => setName(target.value)}
      />
      <EmailInput value={email} onChange={setEmail} />
      <Radio.Group label="Role" value={role} onChange={setRole}>
        <Stack gap={8} mt={8}>
          {ROLES.map(({ role, ...words }) => (
            <Radio key={role} value={role} {...words} />
          ))}
        </Stack>
      </Radio.Group>
      {user.administrator && (
        <Checkbox
          label="Administrator"
          description="Runs the server: all accounts, checks and backups."
          checked={isAdministrator}
          onChange={({ target }) => setAdministrator(target.checked)}
        />
      )}
    </Dialog>
  )
}

/** Where a person is notified. */
function EmailInput({ value, onChange }: { value: string; onChange(value: string): void }) {
  return (
    <TextInput
      type="email"
      label="E-mail address (optional)"
      description="Where the person is notified of a new passkey, a new password, and when they are signed out everywhere."
      maxLength={254}
      autoComplete="off"
      value={value}
      onChange={({ target }) => onChange(target.value)}
    />
  )
}

export function ChangeEmailDialog({ user, onClose }: { user: User; onClose(): void }) {
  const queries = useQueryClient()
  const announce = useAnnounce()
  const [email, setEmail] = useState(user.email ?? '')
  const change = useMutation({
    mutationFn: () => callApi<unknown>('PUT', `users/${user.id}`, { body: { email: email || null } }),
    async onSuccess() {
      onClose()
      announce(`The e-mail address of ${user.name} has been changed.`)
      await queries.invalidateQueries({ queryKey: usersQuery.queryKey })
    },
  })
  return (
    <Dialog
      title={`E-mail address of ${user.name}`}
      onClose={onClose}
      action="Change"
      isBusy={change.isPending}
      error={change.error}
      onSubmit={() => change.mutate()}
    >
      <EmailInput value={email} onChange={setEmail} />
      <p>The change is notified to the old address.</p>
    </Dialog>
  )
}

export function DeletePersonDialog({ user, onClose }: { user: User; onClose(): void }) {
  const queries = useQueryClient()
  const announce = useAnnounce()
  const remove = useMutation({
    mutationFn: () => callApi<unknown>('DELETE', `users/${user.id}`),
    async onSuccess() {
      onClose()
      announce(`${user.name} has been deleted.`)
      await queries.invalidateQueries({ queryKey: usersQuery.queryKey })
    },
  })
  return (
    <Dialog
      title={`Delete ${user.name}?`}
      onClose={onClose}
      action="Delete"
      color="stop"
      isBusy={remove.isPending}
      error={remove.error}
      onSubmit={() => remove.mutate()}
    >
      <p>The person is signed out everywhere, and cannot sign in again. Videos and settings stay.</p>
    </Dialog>
  )
}
