import { Button } from '@mantine/core'
import { useClipboard } from '@mantine/hooks'
import styles from './code-block.module.css'
import { CheckIcon, CopyIcon } from './icons.tsx'

type CodeBlockProps = {
  code: string
  name: string
  /** Newer code is about to take its place. */
  isOutdated?: boolean
}

/** Code to copy with one click. */
export function CodeBlock({ code, name, isOutdated = false }: CodeBlockProps) {
  const clipboard = useClipboard({ timeout: 2_000 })
  return (
    <div className={styles.block}>
      <div className={styles.head}>
        <span>{name}</span>
        <Button
          variant="subtle"
          color="gray"
          size="xs"
          leftSection={clipboard.copied ? <CheckIcon size={14} /> : <CopyIcon size={14} />}
          disabled={code === '' || isOutdated}
          onClick={() => clipboard.copy(code)}
        >
          {clipboard.copied ? 'Copied' : 'Copy'}
        </Button>
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for what is filled in */}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <div className={styles.scroll} role="group" aria-label={name} tabIndex={0}>
        <pre>
          <code>{code}</code>
        </pre>
      </div>
      {clipboard.error && <p role="alert">The browser did not allow to copy: select the text and copy it.</p>}
    </div>
  )
}
