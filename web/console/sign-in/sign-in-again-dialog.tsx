import { Code } from '@mantine/core'
import { useForm } from 'react-hook-form'
import type { SignInReply } from '../../../src/http/console/sign-in.ts'
import { callApi } from '../api.ts'
import { Dialog } from '../ui/dialog.tsx'
import { consolePath } from '../urls.ts'
import { canUsePasskeys, PasskeyCancelled, signInWithPasskey } from './passkey.ts'
import { PasskeyButton } from './passkey-button.tsx'
import { CurrentPasswordInput } from './password-inputs.tsx'
import { type SignedIn, useSignedIn, useSignIn } from './queries.ts'

/** Signs in the person who is signed in already. @param onEnd called with false when the person does not want to */
export function SignInAgainDialog({ onEnd }: { onEnd(isSignedIn: boolean): void }) {
  const { user } = useSignedIn()
  const { register, handleSubmit } = useForm({ defaultValues: { password: '' } })
  const end = (signedIn: SignedIn) => {
    // A passkey of another person was used: nothing that was read for the first one stays.
    if (signedIn.user.id !== user.id) location.assign(`${consolePath}/videos`)
    else onEnd(true)
  }
  const byPassword = useSignIn(
    ({ password }: { password: string }) => callApi<SignInReply>('POST', 'sign-in', { body: { name: user.name, password } }),
    end,
  )
  const byPasskey = useSignIn(signInWithPasskey, end)
  const error = byPasskey.error instanceof PasskeyCancelled ? byPassword.error : (byPasskey.error ?? byPassword.error)
  const passkey = canUsePasskeys() && <PasskeyButton passkey={byPasskey} />
  return (
    <Dialog
      title="Sign in again"
      onClose={() => onEnd(false)}
      action="Sign in"
      change={{ isPending: byPassword.isPending, error }}
      isDisabled={!user.hasPassword}
      onSubmit={handleSubmit((values) => {
        byPasskey.reset()
        byPassword.mutate(values)
      })}
    >
      <p>Your sign-in is older than 10 minutes. What you are about to do lasts longer than it, so show that it is you.</p>
      {user.hasPassword ? (
        <>
          <input type="text" autoComplete="username" value={user.name} readOnly hidden />
          <CurrentPasswordInput label={`Password of ${user.name}`} data-autofocus {...register('password')} />
        </>
      ) : (
        <p>
          You have no password. Use a passkey, or open a new sign-in link; on the server, this command prints one:{' '}
          <Code>reelgate console link</Code>
        </p>
      )}
      {passkey}
    </Dialog>
  )
}
