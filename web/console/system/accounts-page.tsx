import { Button, TextInput } from '@mantine/core'
import { useMutation, useSuspenseQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useForm } from 'react-hook-form'
import type { SignInReply } from '../../../src/http/console/sign-in.ts'
import { callApi, csvUrl } from '../api.ts'
import { useSignedIn } from '../sign-in/queries.ts'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { FailureNotice } from '../ui/failure.tsx'
import { FILLED } from '../ui/form.tsx'
import { PlusIcon } from '../ui/icons.tsx'
import { Page } from '../ui/page.tsx'
import { RowButton } from '../ui/row-button.tsx'
import { Section } from '../ui/section.tsx'
import { StateWord } from '../ui/state-word.tsx'
import { useChange } from '../ui/use-change.ts'
import { formatCount, formatDay } from '../units.ts'
import { consolePath } from '../urls.ts'
import { AccountLimitsDialog } from './account-limits-dialog.tsx'
import { type Account, accountsQuery } from './queries.ts'
import styles from './system.module.css'
import { SystemParts } from './system-parts.tsx'

/** The accounts of the installation, for administrators. */
export function AccountsPage() {
  const { account: current } = useSignedIn()
  const { data: accounts } = useSuspenseQuery(accountsQuery)
  const [isCreating, setCreating] = useState(false)
  const [disabling, setDisabling] = useState<Account>()
  const [limiting, setLimiting] = useState<Account>()
  const look = useMutation({
    mutationFn: ({ id }: Account) => callApi<SignInReply>('PUT', 'sign-in/account', { body: { account: id } }),
    onSuccess: () => location.assign(`${consolePath}/videos`), // nothing that was read of the other account stays in memory
  })
  const setDisabled = useChange({
    call: ({ id, disabled }: Account) => callApi<unknown>('PUT', `accounts/${id}`, { body: { disabled: disabled ? 0 : 1 } }),
    announced: 'The account has been changed.',
    onDone: () => setDisabling(undefined),
    refreshes: [accountsQuery.queryKey],
  })
  const actions: Column<Account> = {
    name: 'Actions',
    kind: 'actions',
    cell: (account) => (
      <span className={styles.row}>
        <RowButton aria-label={`Change the limits of ${account.name}`} onClick={() => setLimiting(account)}>
          Limits
        </RowButton>
        {account.id !== current.id && (
          <>
            <RowButton aria-label={`Look into ${account.name}`} onClick={() => look.mutate(account)}>
              Look into
            </RowButton>
            <RowButton
              aria-label={`${account.disabled ? 'Enable' : 'Disable'} ${account.name}`}
              onClick={() => (account.disabled ? setDisabled.mutate(account) : setDisabling(account))}
            >
              {account.disabled ? 'Enable' : 'Disable'}
            </RowButton>
          </>
        )}
      </span>
    ),
  }
  return (
    <Page title="System">
      <SystemParts />
      <Section
        title="Accounts"
        lead="Each sees only its own videos, keys and viewers. Looking into an account is recorded in its audit log."
        actions={
          <Button leftSection={<PlusIcon size={16} />} onClick={() => setCreating(true)}>
            Create an account
          </Button>
        }
      >
        {(look.error ?? setDisabled.error) && <FailureNotice error={look.error ?? setDisabled.error} />}
        <DataTable
          label="Accounts"
          csv={csvUrl('accounts')}
          columns={[
            {
              name: 'Name',
              kind: 'title',
              cell: ({ id, name }) => (id === current.id ? `${name} (you look at it)` : name),
            },
            ...COLUMNS,
            actions,
          ]}
          rows={accounts}
          keyOf={({ id }) => id}
        />
      </Section>
      {isCreating && <CreateAccountDialog onClose={() => setCreating(false)} />}
      {limiting && <AccountLimitsDialog account={limiting} onClose={() => setLimiting(undefined)} />}
      {disabling && (
        <Dialog
          title={`Disable ${disabling.name}?`}
          onClose={() => setDisabling(undefined)}
          action="Disable"
          color="stop"
          change={setDisabled}
          onSubmit={() => setDisabled.mutate(disabling)}
        >
          <p>Its keys and people are refused, and its videos stop playing, until you enable it again. Nothing is deleted.</p>
        </Dialog>
      )}
    </Page>
  )
}

const COLUMNS: Column<Account>[] = [
  { name: 'Videos', kind: 'number', cell: ({ videosCount }) => formatCount(videosCount) },
  {
    name: 'State',
    cell: ({ disabled }) => <StateWord color={disabled ? 'stop' : 'ok'}>{disabled ? 'Disabled' : 'In use'}</StateWord>,
  },
  { name: 'Created', cell: ({ createdAt }) => formatDay(Date.parse(createdAt) / 1000) },
]

function CreateAccountDialog({ onClose }: { onClose(): void }) {
  const { register, handleSubmit, formState } = useForm({ defaultValues: { name: '' } })
  const create = useChange({
    call: (account: { name: string }) => callApi<unknown>('POST', 'accounts', { body: account }),
    announced: (_reply, { name }) => `The account ${name} has been created. Look into it to invite its people.`,
    onDone: onClose,
    refreshes: [accountsQuery.queryKey],
  })
  return (
    <Dialog
      title="Create an account"
      onClose={onClose}
      action="Create"
      change={create}
      isDisabled={!formState.isValid}
      onSubmit={handleSubmit((account) => create.mutate(account))}
    >
      <TextInput label="Name" maxLength={100} data-autofocus {...register('name', FILLED)} />
    </Dialog>
  )
}
