import { Button } from '@mantine/core'
import { useSuspenseQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { csvUrl } from '../api.ts'
import { useMay } from '../sign-in/queries.ts'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { PlusIcon } from '../ui/icons.tsx'
import { Page } from '../ui/page.tsx'
import { SecretDialog } from '../ui/secret-dialog.tsx'
import { Section } from '../ui/section.tsx'
import { formatDay } from '../units.ts'
import { AddWebhookDialog } from './add-webhook-dialog.tsx'
import { DevelopParts } from './develop-parts.tsx'
import { type Webhook, webhooksQuery } from './queries.ts'
import { describeEvent } from './webhook-events.ts'
import { WebhookState } from './webhook-state.tsx'

/** The endpoints that are notified of what happens. */
export function WebhooksPage() {
  const { data: webhooks } = useSuspenseQuery(webhooksQuery)
  const mayEdit = useMay('editor')
  const [isAdding, setAdding] = useState(false)
  const [secret, setSecret] = useState<string>()
  return (
    <Page title="Develop">
      <DevelopParts />
      <Section
        title="Webhooks"
        lead="Your server is called when a video is ready, a viewer has finished one, or something needs a look."
        actions={
          mayEdit && (
            <Button leftSection={<PlusIcon size={16} />} onClick={() => setAdding(true)}>
              Add a webhook
            </Button>
          )
        }
      >
        <DataTable
          label="Webhooks"
          csv={csvUrl('hooks')}
          columns={COLUMNS}
          rows={webhooks}
          keyOf={({ uuid }) => uuid}
          empty={<p>No webhooks. Add the address of your server that is to be called.</p>}
        />
      </Section>
      {isAdding && (
        <AddWebhookDialog
          onClose={() => setAdding(false)}
          onAdded={(created) => {
            setAdding(false)
            setSecret(created.secret)
          }}
        />
      )}
      {secret !== undefined && (
        <SecretDialog
          title="The secret of the webhook"
          name="Signing secret"
          secret={secret}
          onClose={() => setSecret(undefined)}
        >
          <p>Copy it now: it is shown only this once. Your server verifies with it that events come from here.</p>
        </SecretDialog>
      )}
    </Page>
  )
}

const COLUMNS: Column<Webhook>[] = [
  {
    name: 'Address',
    kind: 'title',
    cell: ({ uuid, value }) => (
      <Link to="/develop/webhooks/$webhookId" params={{ webhookId: uuid }}>
        {value}
      </Link>
    ),
  },
  { name: 'Events', cell: ({ event }) => describeEvent(event) },
  { name: 'State', cell: (webhook) => <WebhookState webhook={webhook} /> },
  { name: 'Added', cell: ({ createdAt }) => formatDay(Date.parse(createdAt) / 1000) },
]
