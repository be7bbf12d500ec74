import { Textarea, TextInput } from '@mantine/core'
import { RowButton } from '../ui/row-button.tsx'
import styles from './metadata-fields.module.css'

export type Pair = { name: string; value: string }

export const toPairs = (metadata: Readonly<Record<string, string>> = {}): Pair[] =>
  Object.entries(metadata).map(([name, value]) => ({ name, value }))

/** Null: none. A pair without a name is none, either. */
export function toMetadata(pairs: readonly Pair[]): Record<string, string> | null {
  const named = pairs.filter(({ name }) => name !== '')
  return named.length === 0 ? null : Object.fromEntries(named.map(({ name, value }) => [name, value]))
}

/** The pairs that an owner's programs give a video. */
export function MetadataFields({ value: pairs, onChange }: { value: readonly Pair[]; onChange(pairs: Pair[]): void }) {
  const change = (at: number, changes: Partial<Pair>) =>
    onChange(pairs.map((pair, index) => (index === at ? { ...pair, ...changes } : pair)))
  return (
    <fieldset className={styles.fields}>
      <legend>Metadata</legend>
      {pairs.map(({ name, value }, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: names change while they are typed, and may be equal
        <div key={at} className={styles.pair}>
          <TextInput
            aria-label={`Name ${at + 1}`}
            placeholder="Name"
            maxLength={64}
            value={name}
            onChange={({ target }) => change(at, { name: target.value })}
          />
          <Textarea
            aria-label={`Value ${at + 1}`}
            placeholder="Value"
            autosize
            minRows={1}
            maxRows={6}
            value={value}
            onChange={({ target }) => change(at, { value: target.value })}
          />
          <RowButton aria-label={`Remove pair ${at + 1}`} onClick={() => onChange(pairs.filter((_, index) => index !== at))}>
            Remove
          </RowButton>
        </div>
      ))}
      <div>
        <RowButton onClick={() => onChange([...pairs, { name: '', value: '' }])}>Add a pair</RowButton>
      </div>
    </fieldset>
  )
}
