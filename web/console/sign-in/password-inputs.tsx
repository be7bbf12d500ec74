import { PasswordInput } from '@mantine/core'
import type { ComponentProps } from 'react'

type PasswordInputProps = ComponentProps<typeof PasswordInput>

export function CurrentPasswordInput(props: PasswordInputProps) {
  return (
    <PasswordInput
      autoComplete="current-password"
      required
      visibilityToggleButtonProps={{ 'aria-label': 'Show the password' }}
      {...props}
    />
  )
}

export function NewPasswordInput(props: PasswordInputProps) {
  return (
    <PasswordInput
      label="New password"
      description="10 characters or more. Several words are easy to remember."
      autoComplete="new-password"
      required
      minLength={10}
      visibilityToggleButtonProps={{ 'aria-label': 'Show the new password' }}
      {...props}
    />
  )
}
