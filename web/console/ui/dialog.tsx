import { Button, Modal } from '@mantine/core'
import { type FormEvent, type ReactNode, useEffect, useState } from 'react'
import styles from './dialog.module.css'
import { FailureNotice } from './failure.tsx'
import { focusPage } from './focus.ts'
import type { Sending } from './form.tsx'

const NOTHING_SENT: Sending = { isPending: false, error: null }

export type DialogProps = {
  title: string
  onClose(): void
  /** What the button does, such as "Move". */
  action: string
  /** What closing it means, where that is more than nothing. */
  cancel?: string
  color?: 'lamp' | 'stop'
  /** What its answer sends. */
  change?: Sending
  isDisabled?: boolean
  onSubmit(): void
  children: ReactNode
}

/**
 * A question with one answer to give, open as long as it is in the page: Enter gives the answer, Escape closes. What failed is said above
 * the buttons, and the input is kept.
 */
export function Dialog({
  title,
  onClose,
  action,
  cancel = 'Cancel',
  color = 'lamp',
  change: { isPending, error } = NOTHING_SENT,
  isDisabled,
  onSubmit,
  children,
}: DialogProps) {
  useFocusReturn()
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onSubmit()
  }
  return (
    <Modal title={title} opened returnFocus={false} onClose={onClose} closeButtonProps={{ 'aria-label': 'Close' }}>
      <form className={styles.form} onSubmit={submit}>
        {children}
        {Boolean(error) && <FailureNotice error={error} />}
        <div className={styles.buttons}>
          <Button variant="default" onClick={onClose} data-autofocus={color === 'stop' || undefined}>
            {cancel}
          </Button>
          <Button type="submit" color={color} loading={isPending} disabled={isDisabled}>
            {action}
          </Button>
        </div>
      </form>
    </Modal>
  )
}

/** Afterwards the focus is where it was before, or at the start of the page when that is gone. */
function useFocusReturn() {
  const [before] = useState(() => document.activeElement)
  useEffect(
    () => () => {
      if (before instanceof HTMLElement && before.isConnected && before !== document.body) before.focus({ preventScroll: true })
      else focusPage()
    },
    [before],
  )
}
