import { Button } from '@mantine/core'
import { useSuspenseQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { CreatedKeyBody } from '../../../src/http/api/keys.ts'
import { csvUrl } from '../api.ts'
import { Ago } from '../ui/ago.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { PlusIcon } from '../ui/icons.tsx'
import { Page } from '../ui/page.tsx'
import { RowButton } from '../ui/row-button.tsx'
import { SecretDialog } from '../ui/secret-dialog.tsx'
import { Section } from '../ui/section.tsx'
import { StateWord } from '../ui/state-word.tsx'
import { formatDay, formatIn } from '../units.ts'
import { DevelopParts } from './develop-parts.tsx'
import { CreateKeyDialog, RevokeKeyDialog, RotateKeyDialog } from './key-dialogs.tsx'
import styles from './keys-page.module.css'
import { PERMISSIONS } from './permissions.ts'
import { type Key, keysQuery } from './queries.ts'
import { UploadTokens } from './upload-tokens.tsx'

type Open = { what: 'create' } | { what: 'rotate' | 'revoke'; key: Key } | { what: 'secret'; secret: string }

/** The keys with which programs call the API. */
export function KeysPage() {
  const { data: keys } = useSuspenseQuery(keysQuery)
  const [open, setOpen] = useState<Open>()
  const close = () => setOpen(undefined)
  const show = ({ secret }: CreatedKeyBody) => setOpen({ what: 'secret', secret })
  const valid = keys.filter(isValid)
  const ended = keys.filter((key) => !isValid(key))
  const actions: Column<Key> = {
    name: 'Actions',
    kind: 'actions',
    cell: (key) => (
      <span className={styles.actions}>
        <RowButton aria-label={`Rotate ${key.name}`} onClick={() => setOpen({ what: 'rotate', key })}>
          Rotate
        </RowButton>
        <RowButton aria-label={`Revoke ${key.name}`} onClick={() => setOpen({ what: 'revoke', key })}>
          Revoke
        </RowButton>
      </span>
    ),
  }
  return (
    <Page title="Develop">
      <DevelopParts />
      <Section
        title="API keys"
        lead="One for each program, with only what it needs. A secret belongs in the environment of your server, never in a page."
        actions={
          <Button leftSection={<PlusIcon size={16} />} onClick={() => setOpen({ what: 'create' })}>
            Create a key
          </Button>
        }
      >
        <DataTable
          label="API keys"
          csv={csvUrl('keys')}
          columns={[...COLUMNS, actions]}
          rows={valid}
          keyOf={({ id }) => id}
          empty={<p>No key is valid: no program can call the API.</p>}
        />
      </Section>
      <UploadTokens />
      {ended.length > 0 && (
        <Section title="No longer valid">
          <DataTable
            label="Keys that are no longer valid"
            csv={csvUrl('keys')}
            columns={COLUMNS}
            rows={ended}
            keyOf={({ id }) => id}
          />
        </Section>
      )}
      {open?.what === 'create' && <CreateKeyDialog onClose={close} onCreated={show} />}
      {open?.what === 'rotate' && <RotateKeyDialog apiKey={open.key} onClose={close} onCreated={show} />}
      {open?.what === 'revoke' && <RevokeKeyDialog apiKey={open.key} onClose={close} />}
      {open?.what === 'secret' && (
        <SecretDialog title="The secret of the key" name="API secret" secret={open.secret} onClose={close}>
          <p>Copy it now: it is shown only this once. Give it to your program as REELGATE_SECRET.</p>
        </SecretDialog>
      )}
    </Page>
  )
}

function isValid({ revokedAt, expiresAt }: Key): boolean {
  return revokedAt === null && (expiresAt === null || Date.parse(expiresAt) > Date.now())
}

const COLUMNS: Column<Key>[] = [
  { name: 'Name', kind: 'title', cell: ({ name }) => name },
  { name: 'Secret', cell: ({ prefix }) => <code>{prefix}…</code> },
  { name: 'May', cell: ({ permissions }) => permissions.map((name) => PERMISSIONS[name].label).join(', ') },
  { name: 'Last use', cell: ({ lastUsedAt }) => (lastUsedAt === null ? 'Never' : <Ago at={lastUsedAt} />) },
  { name: 'Ends', cell: (key) => <End apiKey={key} /> },
]

function End({ apiKey: { revokedAt, expiresAt } }: { apiKey: Key }) {
  if (revokedAt !== null)
    return (
      <StateWord color="gray">
        Revoked <Ago at={revokedAt} />
      </StateWord>
    )
  if (expiresAt === null) return 'Never'
  const endsAtS = Date.parse(expiresAt) / 1000
  const leftS = endsAtS - Date.now() / 1000
  if (leftS <= 0) return <StateWord color="gray">Ended {formatDay(endsAtS)}</StateWord>
  if (leftS > 14 * 86_400) return formatDay(endsAtS)
  return <StateWord color="warn">Ends {formatIn(endsAtS)}</StateWord>
}
