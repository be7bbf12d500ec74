import { Button, Code, Divider, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useRouter } from '@tanstack/react-router'
import { useForm } from 'react-hook-form'
import type { SignInReply } from '../../../src/http/console/sign-in.ts'
import { callApi } from '../api.ts'
import { FailureNotice } from '../ui/failure.tsx'
import { consolePath } from '../urls.ts'
import { canUsePasskeys, PasskeyCancelled, signInWithPasskey } from './passkey.ts'
import { PasskeyButton } from './passkey-button.tsx'
import { CurrentPasswordInput } from './password-inputs.tsx'
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
  const { register, handleSubmit } = useForm({ defaultValues: { name: '', password: '' } })
  const submit = handleSubmit((credentials) => {
    byPasskey.reset()
    byPassword.mutate(credentials)
  })
  return (
    <SignInFrame title="Sign in to Reelgate">
      <form onSubmit={submit}>
        <TextInput label="Name" autoComplete="username" autoFocus required {...register('name')} />
        <CurrentPasswordInput label="Password" {...register('password')} />
        {error && <FailureNotice error={error} />}
        <Button type="submit" loading={byPassword.isPending}>
          Sign in
        </Button>
      </form>
      {hasPasskeys && (
        <>
          <Divider label="or" />
          <PasskeyButton passkey={byPasskey} />
        </>
      )}
      <p className={styles.hint}>
        Lost your password? Ask another administrator for a link, or print one on the server: <Code>reelgate console link</Code>
      </p>
    </SignInFrame>
  )
}
