import { Button, TextInput } from '@mantine/core'
import { useQueryClient, useSuspenseQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useForm } from 'react-hook-form'
import type { SignInReply } from '../../../src/http/console/sign-in.ts'
import { callApi, csvUrl } from '../api.ts'
import { addPasskey, canUsePasskeys, PasskeyCancelled } from '../sign-in/passkey.ts'
import { CurrentPasswordInput, NewPasswordInput } from '../sign-in/password-inputs.tsx'
import { type Passkey, passkeysQuery, useSignedIn, useSignIn } from '../sign-in/queries.ts'
import { RemovePasskeys } from '../sign-in/remove-passkeys.tsx'
import { Ago } from '../ui/ago.tsx'
import { useAnnounce } from '../ui/announcements.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { FailureNotice } from '../ui/failure.tsx'
import { Form, useField } from '../ui/form.tsx'
import { KeyIcon } from '../ui/icons.tsx'
import { Page } from '../ui/page.tsx'
import { RowButton } from '../ui/row-button.tsx'
import { Section } from '../ui/section.tsx'
import { StateWord } from '../ui/state-word.tsx'
import { useChange } from '../ui/use-change.ts'
import { formatDay } from '../units.ts'
import { describeDevice } from '../viewers/device.ts'
import { type SignIn, signInsQuery } from './queries.ts'
import { SignOutDialog } from './sign-out-dialog.tsx'
import styles from './system.module.css'
import { SystemParts } from './system-parts.tsx'

/** How the person signs in, and where they are signed in. */
export function YouPage() {
  return (
    <Page title="System">
      <SystemParts />
      <SignIns />
      <Passkeys />
      <Section title="Password" lead="Setting one signs out all your other browsers.">
        <PasswordForm />
      </Section>
      <Section
        title="E-mail"
        lead="Where the server sends e-mail, you are notified here of a new passkey, a new password, and when all other browsers are signed out. A change of the address is notified to the old one."
      >
        <EmailForm />
      </Section>
    </Page>
  )
}

function SignIns() {
  const { data: signIns } = useSuspenseQuery(signInsQuery)
  const end = useChange({
    call: (id: string) => callApi<unknown>('DELETE', `sign-ins/${id}`),
    announced: 'Signed out there.',
    refreshes: [signInsQuery.queryKey],
  })
  const [isOpen, setOpen] = useState(false)
  const columns: Column<SignIn>[] = [
    { name: 'Browser', kind: 'title', cell: ({ userAgent }) => describeDevice(userAgent) },
    { name: 'Address', cell: ({ address }) => address },
    { name: 'By', cell: ({ method }) => METHODS[method] },
    { name: 'Signed in', cell: ({ createdAt }) => <Ago at={createdAt} /> },
    {
      name: 'Last seen',
      cell: ({ lastSeenAt, current }) => (current ? <StateWord color="ok">This browser</StateWord> : <Ago at={lastSeenAt} />),
    },
    {
      name: 'Actions',
      kind: 'actions',
      cell: ({ id, current, userAgent }) =>
        !current && (
          <RowButton aria-label={`Sign out ${describeDevice(userAgent)}`} onClick={() => end.mutate(id)}>
            Sign out
          </RowButton>
        ),
    },
  ]
  return (
    <Section
      title="Where you are signed in"
      actions={
        signIns.length > 1 && (
          <Button variant="default" onClick={() => setOpen(true)}>
            Sign out everywhere else
          </Button>
        )
      }
    >
      {end.error && <FailureNotice error={end.error} />}
      <DataTable
        label="Where you are signed in"
        csv={csvUrl('sign-ins')}
        columns={columns}
        rows={signIns}
        keyOf={({ id }) => id}
      />
      {isOpen && <SignOutDialog onClose={() => setOpen(false)} />}
    </Section>
  )
}

const METHODS = { password: 'Password', passkey: 'Passkey', link: 'Link' } as const

function Passkeys() {
  const { data: passkeys } = useSuspenseQuery(passkeysQuery)
  const add = useChange({
    call: addPasskey,
    announced: 'The passkey has been added.',
    refreshes: [passkeysQuery.queryKey],
  })
  const remove = useChange({
    call: ({ id }: Passkey) => callApi<unknown>('DELETE', `passkeys/${id}`),
    announced: 'The passkey has been removed.',
    refreshes: [passkeysQuery.queryKey],
  })
  const columns: Column<Passkey>[] = [
    { name: 'Passkey', kind: 'title', cell: ({ name }) => name },
    { name: 'Added', cell: ({ createdAt }) => formatDay(Date.parse(createdAt) / 1000) },
    { name: 'Last use', cell: ({ lastUsedAt }) => (lastUsedAt === null ? 'Never' : <Ago at={lastUsedAt} />) },
    {
      name: 'Actions',
      kind: 'actions',
      cell: (passkey) => (
        <RowButton aria-label={`Remove ${passkey.name}`} onClick={() => remove.mutate(passkey)}>
          Remove
        </RowButton>
      ),
    },
  ]
  const error = add.error instanceof PasskeyCancelled ? remove.error : (add.error ?? remove.error)
  return (
    <Section
      title="Passkeys"
      lead="A passkey signs you in with a finger, a face or a PIN, and cannot be given away by mistake."
      actions={
        canUsePasskeys() && (
          <Button variant="default" leftSection={<KeyIcon size={16} />} loading={add.isPending} onClick={() => add.mutate()}>
            Add a passkey
          </Button>
        )
      }
    >
      {error && <FailureNotice error={error} />}
      <DataTable
        label="Passkeys"
        csv={csvUrl('passkeys')}
        columns={columns}
        rows={passkeys}
        keyOf={({ id }) => id}
        empty={<p>No passkeys yet.</p>}
      />
    </Section>
  )
}

function EmailForm() {
  const { user } = useSignedIn()
  const announce = useAnnounce()
  const { register, handleSubmit } = useForm({ defaultValues: { email: user.email ?? '' } })
  const save = useSignIn(
    ({ email }: { email: string }) => callApi<SignInReply>('PUT', 'sign-in/email', { body: { email: email || null } }),
    ({ user: { email } }) => announce(email ? 'The e-mail address has been saved.' : 'The e-mail address has been removed.'),
  )
  return (
    <Form
      className={styles.form}
      action="Save the address"
      change={save}
      onSubmit={handleSubmit((values) => save.mutate(values))}
    >
      <TextInput
        type="email"
        label="E-mail address"
        description="Only owners of the account see it. Empty: no notices."
        autoComplete="email"
        maxLength={254}
        {...register('email')}
      />
    </Form>
  )
}

type NewPassword = { current: string; password: string; removesPasskeys: boolean }

function PasswordForm() {
  const { user, method } = useSignedIn()
  const announce = useAnnounce()
  const queries = useQueryClient()
  const { control, register, handleSubmit, reset } = useForm<NewPassword>({
    defaultValues: { current: '', password: '', removesPasskeys: false },
  })
  const removesPasskeys = useField({ control, name: 'removesPasskeys' })
  const needsCurrent = user.hasPassword && method !== 'link'
  const save = useSignIn(
    ({ current, password, removesPasskeys }: NewPassword) => {
      const body = { password, ...(needsCurrent && { current }), ...(removesPasskeys && { removePasskeys: 1 }) }
      return callApi<SignInReply>('PUT', 'sign-in/password', { body })
    },
    () => {
      announce('The password has been set.')
      reset()
      void queries.invalidateQueries({ queryKey: signInsQuery.queryKey })
      void queries.invalidateQueries({ queryKey: passkeysQuery.queryKey })
    },
  )
  return (
    <Form
      className={styles.form}
      action="Set the password"
      change={save}
      onSubmit={handleSubmit((values) => save.mutate(values))}
    >
      <input type="text" autoComplete="username" value={user.name} readOnly hidden />
      {needsCurrent && (
        <CurrentPasswordInput
          label="Current password"
          visibilityToggleButtonProps={{ 'aria-label': 'Show the current password' }}
          {...register('current')}
        />
      )}
      <NewPasswordInput {...register('password')} />
      <RemovePasskeys checked={removesPasskeys.value} onChange={removesPasskeys.onChange} />
    </Form>
  )
}
