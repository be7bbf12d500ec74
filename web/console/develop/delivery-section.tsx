import { Button, Modal } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { callApi, csvUrl } from '../api.ts'
import { useMay } from '../sign-in/queries.ts'
import { Ago } from '../ui/ago.tsx'
import { CodeBlock } from '../ui/code-block.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { FailureNotice } from '../ui/failure.tsx'
import { RowButton } from '../ui/row-button.tsx'
import { Section } from '../ui/section.tsx'
import { StateWord } from '../ui/state-word.tsx'
import { useChange } from '../ui/use-change.ts'
import { formatCount, formatIn } from '../units.ts'
import { DELIVERIES_ON_PAGE, type Delivery, deliveriesQuery } from './queries.ts'
import styles from './webhook-page.module.css'

/** What was sent to a webhook, newest first, and sending it again. */
export function DeliverySection({ webhookId }: { webhookId: string }) {
  const mayEdit = useMay('editor')
  const [page, setPage] = useState(1)
  const [shown, setShown] = useState<Delivery>()
  const { data, error, refetch } = useQuery(deliveriesQuery(webhookId, page))
  const replay = useChange({
    call: (which: string) => callApi<{ count: number }>('POST', `hooks/${webhookId}/deliveries/${which}`),
    announced: ({ count }) => (count === 1 ? 'It is sent again.' : `${formatCount(count)} events are sent again.`),
    refreshes: [['webhooks', 'deliveries', webhookId]],
  })
  const actions: Column<Delivery> = {
    name: 'Actions',
    kind: 'actions',
    cell: (delivery) => (
      <span className={styles.row}>
        <RowButton aria-label={`Show delivery ${delivery.id}`} onClick={() => setShown(delivery)}>
          Show
        </RowButton>
        {mayEdit && delivery.state !== 'sending' && (
          <RowButton aria-label={`Send again: delivery ${delivery.id}`} onClick={() => replay.mutate(`${delivery.id}/replay`)}>
            Send again
          </RowButton>
        )}
      </span>
    ),
  }
  const pages = Math.max(1, Math.ceil((data?.count ?? 0) / DELIVERIES_ON_PAGE))
  return (
    <Section
      title="Deliveries"
      lead="Kept for 30 days. A delivery is tried ten times within about three days, less and less often."
      actions={
        mayEdit &&
        data &&
        data.count > 0 && (
          <Button variant="default" loading={replay.isPending} onClick={() => replay.mutate('replay')}>
            Send all failed ones again
          </Button>
        )
      }
    >
      {(error ?? replay.error) && <FailureNotice error={error ?? replay.error} onRetry={error ? () => refetch() : undefined} />}
      {data && (
        <DataTable
          label="Deliveries"
          csv={csvUrl(`hooks/${encodeURIComponent(webhookId)}/deliveries`)}
          columns={[...COLUMNS, actions]}
          rows={data.rows}
          keyOf={({ id }) => id}
          empty={<p>Nothing has been sent yet. Send a test event to see that your server is reached; it is not listed here.</p>}
        />
      )}
      {pages > 1 && (
        <div className={styles.pages}>
          <RowButton disabled={page === 1} onClick={() => setPage(page - 1)}>
            Newer
          </RowButton>
          Page {page} of {formatCount(pages)}
          <RowButton disabled={page >= pages} onClick={() => setPage(page + 1)}>
            Older
          </RowButton>
        </div>
      )}
      {shown && (
        <Modal
          title={`Delivery ${shown.id}, ${shown.event}`}
          opened
          size="lg"
          onClose={() => setShown(undefined)}
          closeButtonProps={{ 'aria-label': 'Close' }}
        >
          {shown.problem !== null && <p>{shown.problem}</p>}
          <CodeBlock name="Body" code={formatJson(shown.body)} />
        </Modal>
      )}
    </Section>
  )
}

const COLORS = { delivered: 'ok', failed: 'stop', waiting: 'warn', sending: 'gray' } as const
const WORDS = { delivered: 'Delivered', failed: 'Failed', waiting: 'Waiting', sending: 'Being sent' } as const

const COLUMNS: Column<Delivery>[] = [
  { name: 'Event', kind: 'title', cell: ({ event }) => event },
  {
    name: 'State',
    cell: ({ state }) => <StateWord color={lookUp(COLORS, state) ?? 'gray'}>{lookUp(WORDS, state) ?? state}</StateWord>,
  },
  { name: 'Happened', cell: ({ time }) => <Ago at={new Date(time).toISOString()} /> },
  { name: 'Answer', cell: ({ responseStatus, problem }) => responseStatus ?? problem },
  {
    name: 'Attempts',
    kind: 'number',
    cell: ({ attempts, dueAt }) => (dueAt === null ? attempts : `${attempts}, next ${formatIn(Date.parse(dueAt) / 1000)}`),
  },
]

function lookUp<Value>(values: Readonly<Record<string, Value>>, name: string): Value | undefined {
  return values[name]
}

function formatJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2)
  } catch {
    return text
  }
}
