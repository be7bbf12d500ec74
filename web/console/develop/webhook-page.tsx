import { Button } from '@mantine/core'
import { useMutation, useSuspenseQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { WebhookTestBody } from '../../../src/http/api/webhooks.ts'
import { ApiFailure, callApi } from '../api.ts'
import { useMay } from '../sign-in/queries.ts'
import { ConfirmDialog } from '../ui/confirm-dialog.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { FactList } from '../ui/fact-list.tsx'
import { FailureNotice } from '../ui/failure.tsx'
import { Page } from '../ui/page.tsx'
import { SecretDialog } from '../ui/secret-dialog.tsx'
import { StateWord } from '../ui/state-word.tsx'
import { useChange } from '../ui/use-change.ts'
import { formatDay } from '../units.ts'
import { DeliverySection } from './delivery-section.tsx'
import { type Webhook, webhooksQuery } from './queries.ts'
import { describeEvent } from './webhook-events.ts'
import styles from './webhook-page.module.css'
import { WebhookState } from './webhook-state.tsx'

const route = getRouteApi('/signed-in/develop/webhooks/$webhookId')

/** One webhook, and what was sent to it. */
export function WebhookPage() {
  const { webhookId } = route.useParams()
  const { data: webhooks } = useSuspenseQuery(webhooksQuery)
  const webhook = webhooks.find(({ uuid }) => uuid === webhookId)
  const mayEdit = useMay('editor')
  if (!webhook) throw new ApiFailure('There is no such webhook.', { status: 404, code: 'not-found' })
  return (
    <Page title="Webhook" above={<Link to="/develop/webhooks">← Webhooks</Link>}>
      <FactList
        facts={[
          ['Address', webhook.value],
          ['Events', describeEvent(webhook.event)],
          ['State', <WebhookState key="state" webhook={webhook} />],
          ['Added', formatDay(Date.parse(webhook.createdAt) / 1000)],
        ]}
      />
      {mayEdit && <WebhookActions webhook={webhook} />}
      <DeliverySection webhookId={webhookId} />
    </Page>
  )
}

function WebhookActions({ webhook: { uuid, value, status } }: { webhook: Webhook }) {
  const navigate = route.useNavigate()
  const [asking, setAsking] = useState<'rotate' | 'delete'>()
  const test = useMutation({ mutationFn: () => callApi<WebhookTestBody>('POST', `hooks/${uuid}/test`) })
  const toggle = useChange({
    call: () => callApi<unknown>('PUT', `hooks/${uuid}`, { body: { status: status === 1 ? 0 : 1 } }),
    announced: status === 1 ? 'The webhook is off: events are listed as failed.' : 'The webhook is on.',
    refreshes: [['webhooks']],
  })
  const rotate = useMutation({
    mutationFn: () => callApi<{ secret: string }>('POST', `hooks/${uuid}/secret`),
    onSuccess: () => setAsking(undefined),
  })
  return (
    <>
      <div className={styles.actions}>
        <Button loading={test.isPending} onClick={() => test.mutate()}>
          Send a test event
        </Button>
        <Button variant="default" loading={toggle.isPending} onClick={() => toggle.mutate()}>
          {status === 1 ? 'Switch off' : 'Switch on'}
        </Button>
        <Button variant="default" onClick={() => setAsking('rotate')}>
          New secret
        </Button>
        <Button variant="default" onClick={() => setAsking('delete')}>
          Delete
        </Button>
      </div>
      {test.data && <TestResult result={test.data} />}
      {(test.error ?? toggle.error) && <FailureNotice error={test.error ?? toggle.error} />}
      {asking === 'rotate' && (
        <Dialog
          title="Make a new secret?"
          onClose={() => setAsking(undefined)}
          action="Make a new secret"
          change={rotate}
          onSubmit={() => rotate.mutate()}
        >
          <p>For a day, events are signed with the old secret, too: give your server the new one meanwhile.</p>
        </Dialog>
      )}
      {rotate.data && (
        <SecretDialog title="The new secret" name="Signing secret" secret={rotate.data.secret} onClose={() => rotate.reset()}>
          <p>Copy it now: it is shown only this once.</p>
        </SecretDialog>
      )}
      {asking === 'delete' && (
        <ConfirmDialog
          title="Delete the webhook?"
          onClose={() => setAsking(undefined)}
          action="Delete"
          color="stop"
          call={() => callApi<unknown>('DELETE', 'hooks', { body: { uuid } })}
          announced="The webhook has been deleted."
          onDone={() => navigate({ to: '/develop/webhooks' })}
          refreshes={[['webhooks']]}
        >
          <p>{value} is called no more, and its deliveries are removed. This cannot be undone.</p>
        </ConfirmDialog>
      )}
    </>
  )
}

function TestResult({ result: { status, problem } }: { result: WebhookTestBody }) {
  return (
    <output className={styles.result}>
      <StateWord color={problem === null ? 'ok' : 'stop'}>
        {problem === null
          ? `Your server accepted the test event, with status ${status}.`
          : `The test event was not accepted: ${problem}`}
      </StateWord>
    </output>
  )
}
