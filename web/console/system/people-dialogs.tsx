import { Checkbox, Radio, Stack, TextInput } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { InvitationBody } from '../../../src/http/console/users.ts'
import { callApi } from '../api.ts'
import { useAnnounce } from '../app/announcements.tsx'
import { Dialog } from '../app/dialog.tsx'
import { useSignedIn } from '../sign-in/queries.ts'
import { type User, usersQuery } from './queries.ts'
import { ROLES } from './roles.ts'

export function InviteDialog({ onClose, onInvited }: { onClose(): void; onInvited(invitation: InvitationBody): void }) {
  const queries = useQueryClient()
  const { user } = useSignedIn()
  const [name, setName] = useState('')
  const [role, setRole] = useState('viewer')
  const [isAdministrator, setAdministrator] = useState(false)
  const invite = useMutation({
    mutationFn: () =>
      callApi<InvitationBody>('POST', 'users', { body: { name, role, ...(isAdministrator && { administrator: 1 }) } }),
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
