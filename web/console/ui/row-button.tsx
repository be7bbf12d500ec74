import { Button } from '@mantine/core'
import type { ComponentProps } from 'react'

type RowButtonProps = Pick<
  ComponentProps<typeof Button<'button'>>,
  'aria-label' | 'disabled' | 'loading' | 'onClick' | 'children'
>

/** What can be done with one row of a list. */
export function RowButton(props: RowButtonProps) {
  return <Button variant="default" size="xs" {...props} />
}
