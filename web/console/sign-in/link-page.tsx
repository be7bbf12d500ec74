import { Button, Code, Divider, Loader, TextInput } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { useForm } from 'react-hook-form'
import type { SignInReply } from '../../../src/http/console/sign-in.ts'
import { ApiFailure, callApi } from '../api.ts'
import { FailureNotice } from '../ui/failure.tsx'
import { useField } from '../ui/form.tsx'
import { addPasskey, canUsePasskeys, PasskeyCancelled } from './passkey.ts'
import { PasskeyButton } from './passkey-button.tsx'
import { NewPasswordInput } from './password-inputs.tsx'
import { type SignedIn, useSignIn } from './queries.ts'
import { RemovePasskeys } from './remove-passkeys.tsx'
import { SignInFrame } from './sign-in-frame.tsx'

/** Where a one-time link leads: it signs the person in, who then chooses how to do so from now on. */
export function LinkPage() {
  const navigate = useNavigate()
  const [signedIn, setSignedIn] = useState<SignedIn>()
  const token = useRef(location.hash.slice(1))
  const open = useSignIn(async ({ replace }: { replace: boolean }) => {
    const before = await callApi<SignInReply>('GET', 'sign-in')
    if (before.signedIn && token.current === '') return before // the page was loaded again, and its link is spent
    const body = { token: token.current, ...(replace && { replace: 1 }) }
    return callApi<SignInReply>('POST', 'sign-in/link', { body }).catch((error: unknown) => {
      const isSpent = error instanceof ApiFailure && error.status === 401
      if (isSpent && before.signedIn && before.method === 'link') return before // the link was opened again where it has worked
      throw error
    })
  }, setSignedIn)
  const { mutate, isIdle } = open
  useEffect(() => {
    if (!isIdle) return
    history.replaceState(history.state, '', location.pathname) // the link works once: it has no place in the browser's history
    mutate({ replace: false })
  }, [isIdle, mutate])
  if (signedIn) return <ChooseSignIn signedIn={signedIn} hasPasskeys={canUsePasskeys()} />
  if (open.error instanceof ApiFailure && open.error.status === 409)
    return (
      <SignInFrame title="Sign in with this link?">
        <p>{open.error.message}</p>
        <Button onClick={() => mutate({ replace: true })}>Sign in with the link</Button>
        <Button variant="default" onClick={() => void navigate({ to: '/videos', replace: true })}>
          Stay signed in
        </Button>
      </SignInFrame>
    )
  return (
    <SignInFrame title={open.error ? 'This link does not work' : 'Opening the link'}>
      {open.error ? (
        <>
          <FailureNotice error={open.error} />
          <p>
            An administrator can make a new link; on the server, this command prints one: <Code>reelgate console link</Code>
          </p>
        </>
      ) : (
        <Loader aria-label="Opening the link" />
      )}
    </SignInFrame>
  )
}

type NewSignIn = { name: string; password: string; removesPasskeys: boolean }

function ChooseSignIn({ signedIn: { user }, hasPasskeys }: { signedIn: SignedIn; hasPasskeys: boolean }) {
  const navigate = useNavigate()
  const goOn = () => void navigate({ to: '/videos', replace: true })
  const { control, register, handleSubmit, watch } = useForm<NewSignIn>({
    defaultValues: { name: user.unnamed ? '' : user.name, password: '', removesPasskeys: false },
  })
  const removesPasskeys = useField({ control, name: 'removesPasskeys' })
  const saveName = async (name: string) => {
    if (name.trim() !== user.name) await callApi<unknown>('PUT', `users/${user.id}`, { body: { name } })
  }
  const name = watch('name')
  const save = useSignIn(async ({ name, password, removesPasskeys }: NewSignIn) => {
    await saveName(name)
    const body = { password, ...(removesPasskeys && { removePasskeys: 1 }) }
    return callApi<SignInReply>('PUT', 'sign-in/password', { body })
  }, goOn)
  const passkey = useSignIn(async () => {
    await saveName(name)
    await addPasskey()
    return callApi<SignInReply>('GET', 'sign-in')
  }, goOn)
  const submit = handleSubmit((values) => {
    passkey.reset()
    save.mutate(values)
  })
  const error = passkey.error instanceof PasskeyCancelled ? save.error : (passkey.error ?? save.error)
  return (
    <SignInFrame title="Welcome to Reelgate">
      {user.unnamed ? (
        <p>You are the first person here. The link works once: choose within 10 minutes how you sign in from now on.</p>
      ) : (
        <p>
          You are signed in as <strong>{user.name}</strong>. The link works once: choose within 10 minutes how you sign in from
          now on.
        </p>
      )}
      <form onSubmit={submit}>
        {user.unnamed ? (
          <TextInput
            label="Your name"
            description="You sign in with it, and others see it: an e-mail address, for example."
            autoComplete="username"
            autoFocus
            required
            maxLength={100}
            {...register('name')}
          />
        ) : (
          <input type="text" autoComplete="username" value={name} readOnly hidden />
        )}
        <NewPasswordInput
          label={user.hasPassword ? 'New password' : 'Password'}
          autoFocus={!user.unnamed}
          {...register('password')}
        />
        <RemovePasskeys checked={removesPasskeys.value} onChange={removesPasskeys.onChange} />
        {error && <FailureNotice error={error} />}
        <Button type="submit" loading={save.isPending}>
          Set the password
        </Button>
      </form>
      {hasPasskeys && (
        <>
          <Divider label="or" />
          <PasskeyButton passkey={passkey} isDisabled={name.trim() === ''} />
        </>
      )}
    </SignInFrame>
  )
}
