import { useSuspenseQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { callApi, csvUrl } from '../api.ts'
import { Ago } from '../ui/ago.tsx'
import { CodeBlock } from '../ui/code-block.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { FailureNotice } from '../ui/failure.tsx'
import { RowButton } from '../ui/row-button.tsx'
import { Section } from '../ui/section.tsx'
import { StateWord } from '../ui/state-word.tsx'
import { useChange } from '../ui/use-change.ts'
import { type Worker, workersQuery } from './queries.ts'
import styles from './system.module.css'

/** Encoders on other machines, and what can be done with each. */
export function Workers() {
  const { data: workers } = useSuspenseQuery(workersQuery)
  const [removing, setRemoving] = useState<Worker>()
  const drain = useChange({
    call: ({ name, state }: Worker) => callApi<unknown>('PUT', pathOf(name), { body: { drained: isWithoutWork(state) ? 0 : 1 } }),
    announced: (_reply, { name, state }) =>
      isWithoutWork(state) ? `${name} gets chunks again.` : `${name} finishes its chunks and gets no more.`,
    refreshes: [workersQuery.queryKey],
  })
  const remove = useChange({
    call: ({ name }: Worker) => callApi<unknown>('DELETE', pathOf(name)),
    announced: (_reply, { name }) => `${name} has been removed.`,
    onDone: () => setRemoving(undefined),
    refreshes: [workersQuery.queryKey],
  })
  const actions: Column<Worker> = {
    name: 'Actions',
    kind: 'actions',
    cell: (worker) => (
      <span className={styles.row}>
        <RowButton
          aria-label={`${isWithoutWork(worker.state) ? 'Resume' : 'Drain'} ${worker.name}`}
          onClick={() => drain.mutate(worker)}
        >
          {isWithoutWork(worker.state) ? 'Resume' : 'Drain'}
        </RowButton>
        <RowButton aria-label={`Remove ${worker.name}`} onClick={() => setRemoving(worker)}>
          Remove
        </RowButton>
      </span>
    ),
  }
  return (
    <Section
      title="Encoders on other machines"
      lead="A worker sees the videos of which it encodes chunks, and nothing else. What it sends is compared with the source before it is published: all of it, or one segment in twenty of a trusted one."
    >
      {drain.error && <FailureNotice error={drain.error} />}
      <DataTable
        label="Workers"
        csv={csvUrl('system/workers')}
        columns={[...COLUMNS, actions]}
        rows={workers}
        keyOf={({ name }) => name}
        empty={<p>None. A computer with this version of Reelgate that reaches this server over HTTPS can be one.</p>}
      />
      <CodeBlock name="On the server" code="reelgate worker add NAME" />
      {removing && (
        <Dialog
          title={`Remove ${removing.name}?`}
          onClose={() => setRemoving(undefined)}
          action="Remove"
          color="stop"
          change={remove}
          onSubmit={() => remove.mutate(removing)}
        >
          <p>Its token is refused from then on, and other encoders take its chunks. What it encoded before stays.</p>
        </Dialog>
      )}
    </Section>
  )
}

function isWithoutWork(state: Worker['state']): boolean {
  return state === 'drained' || state === 'suspended'
}

function pathOf(name: string): string {
  return `system/workers/${encodeURIComponent(name)}`
}

const COLORS = { encodes: 'ok', waits: 'ok', silent: 'warn', drained: 'warn', suspended: 'stop' } as const
const WORDS = {
  encodes: 'Encodes',
  waits: 'Waits for chunks',
  silent: 'Silent',
  drained: 'Drained',
  suspended: 'Suspended',
} as const

const TAKES: Readonly<Record<string, string>> = { 'video,audio': 'Video and sound', video: 'Video', audio: 'Sound' }

const COLUMNS: Column<Worker>[] = [
  { name: 'Name', kind: 'title', cell: ({ name, trusted }) => (trusted ? `${name} (trusted)` : name) },
  {
    name: 'State',
    cell: ({ state, reason }) => (
      <StateWord color={COLORS[state]}>{reason === null ? WORDS[state] : `${WORDS[state]}: ${reason}`}</StateWord>
    ),
  },
  { name: 'Takes', cell: ({ kinds, lastSeenAt }) => lastSeenAt !== null && TAKES[kinds] },
  { name: 'Encodes', cell: ({ encodes }) => encodes.map(describeTask).join('; ') },
  { name: 'Speed', kind: 'number', cell: ({ speed }) => speed !== null && `${speed.toFixed(1)} × real time` },
  { name: 'Last seen', cell: ({ lastSeenAt }) => (lastSeenAt === null ? 'Never' : <Ago at={lastSeenAt} />) },
]

function describeTask({ kind, firstSegment, segmentCount }: Worker['encodes'][number]): string {
  const what = kind === 'audio' ? 'sound' : 'video'
  if (segmentCount === 1) return `${what}, segment ${firstSegment + 1}`
  return `${what}, segments ${firstSegment + 1}–${firstSegment + segmentCount}`
}
