import { Button, Code, Divider, PasswordInput, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useRouter } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import type { SignInReply } from '../../../src/http/console/sign-in.ts'
import { callApi } from '../api.ts'
import { FailureNotice } from '../ui/failure.tsx'
import { KeyIcon } from '../ui/icons.tsx'
import { consolePath } from '../urls.ts'
import { canUsePasskeys, PasskeyCancelled, signInWithPasskey } from './passkey.ts'
import { signInQuery, useSignIn } from './queries.ts'
import styles from './sign-in.module.css'
import { SignInFrame } from './sign-in-frame.tsx'

const route = getRouteApi('/sign-in')

export function SignInPage() {
  const { next } = route.useSearch()
  const router = useRouter()
  const { data: state } = useQuery(signInQuery)
  const goOn = () => router.history.replace(`${consolePath}${next ?? '/videos'}`)
  const byPassword = useSignIn(
    (body: { name: string; password: string }) => callApi<SignInReply>('POST', 'sign-in', { body }),
    goOn,
  )
  const byPasskey = useSignIn(signInWithPasskey, goOn)
  const hasPasskeys = state?.signedIn === false && state.methods.includes('passkey') && canUsePasskeys()
  const error = byPasskey.error instanceof PasskeyCancelled ? byPassword.error : (byPasskey.error ?? byPassword.error)
  return (
    <SignInFrame title="Sign in to Reelgate">
      <PasswordForm
        isBusy={byPassword.isPending}
        onSubmit={(credentials) => {
          byPasskey.reset()
          byPassword.mutate(credentials)
        }}
      >
        {error && <FailureNotice error={error} />}
      </PasswordForm>
      {hasPasskeys && (
        <>
          <Divider label="or" />
          <Button
            variant="default"
            leftSection={<KeyIcon size={18} />}
            loading={byPasskey.isPending}
            onClick={() => byPasskey.mutate()}
          >
            Use a passkey
          </Button>
        </>
      )}
      <p className={styles.hint}>
        Lost your password? Ask another administrator for a link, or print one on the server: <Code>reelgate console link</Code>
      </p>
    </SignInFrame>
  )
}

type PasswordFormProps = {
  isBusy: boolean
  onSubmit(credentials: { name: string; password: string }): void
  children: React.ReactNode
}

function PasswordForm({ isBusy, onSubmit, children }: PasswordFormProps) {
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onSubmit({ name, password })
  }
  return (
    <form onSubmit={submit}>
      <TextInput
        label="Name"
        autoComplete="username"
        autoFocus
        required
        value={name}
        onChange={({ target }) => setName(target.value)}
      />
      <PasswordInput
        label="Password"
        autoComplete="current-password"
        required
        value={password}
        visibilityToggleButtonProps={{ 'aria-label': 'Show the password' }}
        onChange={({ target }) => setPassword(target.value)}
      />
      {children}
      <Button type="submit" loading={isBusy}>
        Sign in
      </Button>
    </form>
  )
}
