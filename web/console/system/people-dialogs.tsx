import { Checkbox, Radio, Stack, TextInput } from '@mantine/core'
import { type UseFormRegisterReturn, useForm } from 'react-hook-form'
import type { InvitationBody } from '../../../src/http/console/users.ts'
import { callApi } from '../api.ts'
import { useSignedIn } from '../sign-in/queries.ts'
import { ConfirmDialog } from '../ui/confirm-dialog.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { FILLED, useField, useSwitch } from '../ui/form.tsx'
import { useChange } from '../ui/use-change.ts'
import { type User, usersQuery } from './queries.ts'
import { ROLES } from './roles.ts'

type Invited = { name: string; email: string; role: string; isAdministrator: boolean }

export function InviteDialog({ onClose, onInvited }: { onClose(): void; onInvited(invitation: InvitationBody): void }) {
  const { user } = useSignedIn()
  const { control, register, handleSubmit, formState } = useForm<Invited>({
    defaultValues: { name: '', email: '', role: 'viewer', isAdministrator: false },
  })
  const role = useField({ control, name: 'role' })
  const isAdministrator = useSwitch({ control, name: 'isAdministrator' })
  const invite = useChange({
    call: ({ isAdministrator, email, ...person }: Invited) => {
      const body = { ...person, email: email || null, ...(isAdministrator && { administrator: 1 }) }
      return callApi<InvitationBody>('POST', 'users', { body })
    },
    onDone: onInvited,
    refreshes: [usersQuery.queryKey],
  })
  return (
    <Dialog
      title="Invite a person"
      onClose={onClose}
      action="Make a link"
      change={invite}
      isDisabled={!formState.isValid}
      onSubmit={handleSubmit((person) => invite.mutate(person))}
    >
      <TextInput
        label="Name"
        description="With which the person signs in, such as an e-mail address."
        maxLength={100}
        data-autofocus
        autoComplete="off"
        {...register('name', FILLED)}
      />
      <EmailInput field={register('email')} />
      <Radio.Group label="Role" {...role}>
        <Stack gap={8} mt={8}>
          {ROLES.map(({ role, ...words }) => (
            <Radio key={role} value={role} {...words} />
          ))}
        </Stack>
      </Radio.Group>
      {user.administrator && (
        <Checkbox label="Administrator" description="Runs the server: all accounts, checks and backups." {...isAdministrator} />
      )}
    </Dialog>
  )
}

/** Where a person is notified. */
function EmailInput({ field }: { field: UseFormRegisterReturn }) {
  return (
    <TextInput
      type="email"
      label="E-mail address (optional)"
      description="Where the person is notified of a new passkey, a new password, and when they are signed out everywhere."
      maxLength={254}
      autoComplete="off"
      {...field}
    />
  )
}

export function ChangeEmailDialog({ user, onClose }: { user: User; onClose(): void }) {
  const { register, handleSubmit } = useForm({ defaultValues: { email: user.email ?? '' } })
  const change = useChange({
    call: ({ email }: { email: string }) => callApi<unknown>('PUT', `users/${user.id}`, { body: { email: email || null } }),
    announced: `The e-mail address of ${user.name} has been changed.`,
    onDone: onClose,
    refreshes: [usersQuery.queryKey],
  })
  return (
    <Dialog
      title={`E-mail address of ${user.name}`}
      onClose={onClose}
      action="Change"
      change={change}
      onSubmit={handleSubmit((values) => change.mutate(values))}
    >
      <EmailInput field={register('email')} />
      <p>The change is notified to the old address.</p>
    </Dialog>
  )
}

export function DeletePersonDialog({ user, onClose }: { user: User; onClose(): void }) {
  return (
    <ConfirmDialog
      title={`Delete ${user.name}?`}
      onClose={onClose}
      action="Delete"
      color="stop"
      call={() => callApi<unknown>('DELETE', `users/${user.id}`)}
      announced={`${user.name} has been deleted.`}
      refreshes={[usersQuery.queryKey]}
    >
      <p>The person is signed out everywhere, and cannot sign in again. Videos and settings stay.</p>
    </ConfirmDialog>
  )
}
