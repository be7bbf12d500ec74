import { Button, Modal } from '@mantine/core'
import type { FormEvent, ReactNode } from 'react'
import styles from './dialog.module.css'
import { FailureNotice } from './failure.tsx'

type DialogProps = {
  title: string
  isOpen: boolean
  onClose(): void
  /** What the button does, such as "Move". */
  action: string
  color?: 'lamp' | 'stop'
  isBusy: boolean
  isDisabled?: boolean
  error?: unknown
  onSubmit(): void
  children: ReactNode
}

/** A question with one answer to give: Enter gives it, Escape closes; what failed is said above the buttons, and the input is kept. */
export function Dialog({
  title,
  isOpen,
  onClose,
  action,
  color = 'lamp',
  isBusy,
  isDisabled,
  error,
  onSubmit,
  children,
}: DialogProps) {
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onSubmit()
  }
  return (
    <Modal title={title} opened={isOpen} onClose={onClose} closeButtonProps={{ 'aria-label': 'Close' }}>
      <form className={styles.form} onSubmit={submit}>
        {children}
        {Boolean(error) && <FailureNotice error={error} />}
        <div className={styles.buttons}>
          <Button variant="default" onClick={onClose} data-autofocus={color === 'stop' || undefined}>
            Cancel
          </Button>
          <Button type="submit" color={color} loading={isBusy} disabled={isDisabled}>
            {action}
          </Button>
        </div>
      </form>
    </Modal>
  )
}
