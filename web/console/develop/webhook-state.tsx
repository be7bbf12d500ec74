import { Ago } from '../ui/ago.tsx'
import { StateWord } from '../ui/state-word.tsx'
import type { Webhook } from './queries.ts'

/** Whether events arrive. */
export function WebhookState({ webhook: { status, statusReason, failingSince } }: { webhook: Webhook }) {
  if (status === 0) return <StateWord color="stop">Off{statusReason === undefined ? '' : `: ${statusReason}`}</StateWord>
  if (failingSince !== null)
    return (
      <StateWord color="warn">
        Failing since <Ago at={failingSince} />
      </StateWord>
    )
  return <StateWord color="ok">On</StateWord>
}
