import { Button, Switch, type SwitchProps } from '@mantine/core'
import type { FormEvent, ReactNode } from 'react'
import { type FieldPath, type FieldValues, type UseControllerProps, useController } from 'react-hook-form'
import { FailureNotice } from './failure.tsx'
import styles from './form.module.css'

/** A call on its way, or that has failed: a mutation is one. */
export type Sending = { isPending: boolean; error: unknown }

type FormProps = {
  className?: string | undefined
  /** What the button does, such as "Save". */
  action: string
  variant?: 'default'
  /** What it sends. */
  change: Sending
  isDisabled?: boolean
  onSubmit(event: FormEvent): void
  /** Further buttons. */
  more?: ReactNode
  children: ReactNode
}

/** A form in a page: fields, what failed, and the button that saves. A `Dialog` has its own. */
export function Form({
  className = styles.form,
  action,
  variant,
  change: { isPending, error },
  isDisabled,
  onSubmit,
  more,
  children,
}: FormProps) {
  return (
    <form className={className} onSubmit={onSubmit}>
      {children}
      {Boolean(error) && <FailureNotice error={error} />}
      <div className={styles.buttons}>
        <Button type="submit" variant={variant} loading={isPending} disabled={isDisabled}>
          {action}
        </Button>
        {more}
      </div>
    </form>
  )
}

/** The values that differ from those that the form began with. */
export function changesIn<Values extends object>(
  values: Values,
  dirtyFields: { readonly [Name in keyof Values]?: unknown },
): Partial<Values> {
  const changes: Partial<Values> = {}
  for (const name in values) if (dirtyFields[name]) changes[name] = values[name]
  return changes
}

/** An input that has `value` and `onChange`, by the name of its value. A plain text is a `register` instead. */
export function useField<Values extends FieldValues, Name extends FieldPath<Values>>(props: UseControllerProps<Values, Name>) {
  return useController(props).field
}

/** A switch or a checkbox, by the name of its value. */
export function useSwitch<Values extends FieldValues, Name extends FieldPath<Values>>(props: UseControllerProps<Values, Name>) {
  const { value, ...field } = useController(props).field
  return { ...field, checked: Boolean(value) }
}

type SwitchFieldProps<Values extends FieldValues, Name extends FieldPath<Values>> = UseControllerProps<Values, Name> &
  Pick<SwitchProps, 'label' | 'description'>

/** Mantine keeps the state of a switch that is not controlled itself, so that a `register` would not be shown. */
export function SwitchField<Values extends FieldValues, Name extends FieldPath<Values>>({
  label,
  description,
  ...props
}: SwitchFieldProps<Values, Name>) {
  return <Switch label={label} description={description} {...useSwitch(props)} />
}

/** The rule of a text that must not be empty. */
export const FILLED = { validate: (text: string) => text.trim() !== '' }
