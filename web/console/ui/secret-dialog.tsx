import { Button, Modal } from '@mantine/core'
import type { ReactNode } from 'react'
import { CodeBlock } from './code-block.tsx'
import styles from './dialog.module.css'

type SecretDialogProps = { title: string; name: string; secret: string; onClose(): void; children: ReactNode }

/** Something that is shown only once: neither Escape nor a click outside closes it before it was copied. */
export function SecretDialog({ title, name, secret, onClose, children }: SecretDialogProps) {
  return (
    <Modal title={title} opened onClose={onClose} withCloseButton={false} closeOnEscape={false} closeOnClickOutside={false}>
      <div className={styles.form}>
        {children}
        <CodeBlock code={secret} name={name} />
        <div className={styles.buttons}>
          <Button onClick={onClose}>Close</Button>
        </div>
      </div>
    </Modal>
  )
}
