import { useSuspenseQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { callApi, csvUrl } from '../api.ts'
import { Ago } from '../ui/ago.tsx'
import { ConfirmDialog } from '../ui/confirm-dialog.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { RowButton } from '../ui/row-button.tsx'
import { Section } from '../ui/section.tsx'
import { formatIn } from '../units.ts'
import { type UploadToken, uploadTokensQuery } from './queries.ts'

/** The tokens with which pages upload at the moment; nothing where there is none. */
export function UploadTokens() {
  const { data: tokens } = useSuspenseQuery(uploadTokensQuery)
  const [revoked, setRevoked] = useState<UploadToken>()
  const valid = tokens.filter(({ revokedAt, expiresAt }) => revokedAt === null && Date.parse(expiresAt) > Date.now())
  if (valid.length === 0) return null
  const actions: Column<UploadToken> = {
    name: 'Actions',
    kind: 'actions',
    cell: (token) => (
      <RowButton aria-label={`Revoke the token for ${nameOf(token)}`} onClick={() => setRevoked(token)}>
        Revoke
      </RowButton>
    ),
  }
  return (
    <Section
      title="Upload tokens"
      lead="Pages of yours upload with them, without a key. Your server makes them; here are the newest that are valid."
    >
      <DataTable
        label="Upload tokens"
        csv={csvUrl('upload-tokens')}
        columns={[...COLUMNS, actions]}
        rows={valid}
        keyOf={({ id }) => id}
      />
      {revoked && <RevokeTokenDialog token={revoked} onClose={() => setRevoked(undefined)} />}
    </Section>
  )
}

function nameOf({ reference, title, titlePattern, origin }: UploadToken): string {
  return reference ?? title ?? titlePattern ?? origin
}

const COLUMNS: Column<UploadToken>[] = [
  { name: 'For', kind: 'title', cell: nameOf },
  { name: 'Title', cell: ({ title, titlePattern }) => title ?? titlePattern ?? 'Any' },
  { name: 'Pages of', cell: ({ origin }) => origin },
  { name: 'Files', kind: 'number', cell: ({ files, maxFiles }) => `${files} of ${maxFiles}` },
  { name: 'Made', cell: ({ createdAt }) => <Ago at={createdAt} /> },
  { name: 'Ends', cell: ({ expiresAt }) => formatIn(Date.parse(expiresAt) / 1000) },
]

function RevokeTokenDialog({ token, onClose }: { token: UploadToken; onClose(): void }) {
  return (
    <ConfirmDialog
      title={`Revoke the token for ${nameOf(token)}?`}
      onClose={onClose}
      action="Revoke"
      color="stop"
      call={() => callApi<unknown>('DELETE', `upload-tokens/${token.id}`)}
      announced={`The token for ${nameOf(token)} has been revoked.`}
      refreshes={[uploadTokensQuery.queryKey]}
    >
      <p>Pages that use it are refused, and what they are sending is deleted. Videos that have arrived stay.</p>
    </ConfirmDialog>
  )
}
