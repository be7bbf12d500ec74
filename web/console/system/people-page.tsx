import { Button, Menu } from '@mantine/core'
import { useMutation, useSuspenseQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { NewLinkBody } from '../../../src/http/console/users.ts'
import { callApi, csvUrl } from '../api.ts'
import { useSignedIn } from '../sign-in/queries.ts'
import { Ago } from '../ui/ago.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { FailureNotice } from '../ui/failure.tsx'
import { ChevronDownIcon, PlusIcon } from '../ui/icons.tsx'
import { Page } from '../ui/page.tsx'
import { SecretDialog } from '../ui/secret-dialog.tsx'
import { Section } from '../ui/section.tsx'
import { StateWord } from '../ui/state-word.tsx'
import { useChange } from '../ui/use-change.ts'
import { ChangeEmailDialog, DeletePersonDialog, InviteDialog } from './people-dialogs.tsx'
import { type User, usersQuery } from './queries.ts'
import { ROLES } from './roles.ts'
import { SystemParts } from './system-parts.tsx'

type Open = { what: 'invite' } | { what: 'delete' | 'email'; user: User } | { what: 'link'; link: NewLinkBody['link'] }

/** Who may sign in to the account, and what they may do. */
export function PeoplePage() {
  const you = useSignedIn()
  const { data: users } = useSuspenseQuery(usersQuery)
  const [open, setOpen] = useState<Open>()
  const close = () => setOpen(undefined)
  const change = useChange({
    call: ({ user, body }: { user: User; body: Readonly<Record<string, unknown>> }) =>
      callApi<unknown>('PUT', `users/${user.id}`, { body }),
    announced: 'The person has been changed.',
    refreshes: [usersQuery.queryKey],
  })
  const makeLink = useMutation({
    mutationFn: ({ id }: User) => callApi<NewLinkBody>('POST', `users/${id}/link`),
    onSuccess: ({ link }) => setOpen({ what: 'link', link }),
  })
  const actions: Column<User> = {
    name: 'Actions',
    kind: 'actions',
    cell: (user) =>
      user.id !== you.user.id && (
        <Menu>
          <Menu.Target>
            <Button variant="default" size="xs" rightSection={<ChevronDownIcon size={14} />} aria-label={`Change ${user.name}`}>
              Change
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            {ROLES.filter(({ role }) => role !== user.role).map(({ role, label }) => (
              <Menu.Item key={role} onClick={() => change.mutate({ user, body: { role } })}>
                Make {label === 'Viewer' ? 'a' : 'an'} {label.toLowerCase()}
              </Menu.Item>
            ))}
            {you.user.administrator && (
              <Menu.Item onClick={() => change.mutate({ user, body: { administrator: user.administrator ? 0 : 1 } })}>
                {user.administrator ? 'No longer an administrator' : 'Make an administrator'}
              </Menu.Item>
            )}
            <Menu.Item onClick={() => setOpen({ what: 'email', user })}>Change the e-mail address</Menu.Item>
            <Menu.Item onClick={() => makeLink.mutate(user)}>New sign-in link</Menu.Item>
            <Menu.Item onClick={() => change.mutate({ user, body: { disabled: user.disabled ? 0 : 1 } })}>
              {user.disabled ? 'Allow to sign in' : 'Do not allow to sign in'}
            </Menu.Item>
            <Menu.Divider />
            <Menu.Item color="stop" onClick={() => setOpen({ what: 'delete', user })}>
              Delete
            </Menu.Item>
          </Menu.Dropdown>
        </Menu>
      ),
  }
  return (
    <Page title="System">
      <SystemParts />
      <Section
        title="People"
        lead="Owners may do everything in the account, uploaders add videos and edit those, viewers only look. An administrator also runs the server and its accounts."
        actions={
          <Button leftSection={<PlusIcon size={16} />} onClick={() => setOpen({ what: 'invite' })}>
            Invite a person
          </Button>
        }
      >
        {(change.error ?? makeLink.error) && <FailureNotice error={change.error ?? makeLink.error} />}
        <DataTable
          label="People"
          csv={csvUrl('users')}
          columns={[...COLUMNS, actions]}
          rows={users}
          keyOf={({ id }) => id}
          empty={<p>No people yet.</p>}
        />
      </Section>
      {open?.what === 'invite' && <InviteDialog onClose={close} onInvited={({ link }) => setOpen({ what: 'link', link })} />}
      {open?.what === 'email' && <ChangeEmailDialog user={open.user} onClose={close} />}
      {open?.what === 'delete' && <DeletePersonDialog user={open.user} onClose={close} />}
      {open?.what === 'link' && (
        <SecretDialog title="A link for one person" name="Sign-in link" secret={open.link.url} onClose={close}>
          <p>Send it to that person alone: it signs in once, and is shown only now.</p>
        </SecretDialog>
      )}
    </Page>
  )
}

const COLUMNS: Column<User>[] = [
  { name: 'Name', kind: 'title', cell: ({ name }) => name },
  {
    name: 'Role',
    cell: ({ role, administrator }) =>
      `${ROLES.find((known) => known.role === role)?.label}${administrator ? ', administrator' : ''}`,
  },
  { name: 'E-mail', cell: ({ email }) => email ?? 'None' },
  { name: 'State', cell: (user) => <PersonState user={user} /> },
  { name: 'Last seen', cell: ({ lastSeenAt }) => (lastSeenAt === null ? 'Not lately' : <Ago at={lastSeenAt} />) },
]

function PersonState({ user: { disabled, hasPassword, passkeys, lastSeenAt } }: { user: User }) {
  if (disabled) return <StateWord color="stop">May not sign in</StateWord>
  if (!hasPassword && passkeys === 0)
    return <StateWord color="warn">{lastSeenAt === null ? 'Invited' : 'No password or passkey yet'}</StateWord>
  const ways = [...(hasPassword ? ['password'] : []), ...(passkeys > 0 ? ['passkey'] : [])]
  return <StateWord color="ok">Has a {ways.join(' and a ')}</StateWord>
}
