import { Dialog, type DialogProps } from './dialog.tsx'
import { type Change, useChange } from './use-change.ts'

type ConfirmDialogProps<Reply> = Omit<DialogProps, 'change' | 'isDisabled' | 'onSubmit'> & Change<Reply, void>

/** A question whose answer is one call, after which it is closed, unless `onDone` leaves the page. */
export function ConfirmDialog<Reply>(props: ConfirmDialogProps<Reply>) {
  const change = useChange<Reply>({ onDone: props.onClose, ...props })
  return <Dialog {...props} change={change} onSubmit={() => change.mutate()} />
}
