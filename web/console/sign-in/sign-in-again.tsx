import { lazy, Suspense, useEffect, useState } from 'react'
import { onSignInAgain } from '../api.ts'

// Rarely needed, so it is not in what each page loads first.
const SignInAgainDialog = lazy(async () => ({ default: (await import('./sign-in-again-dialog.tsx')).SignInAgainDialog }))

type Waiting = { resolve(isSignedIn: boolean): void }

/** Asks the person to sign in again, in place, when a call needs a recent sign-in; the call is repeated afterwards. */
export function SignInAgain() {
  const [waiting, setWaiting] = useState<Waiting>()
  useEffect(() => onSignInAgain(() => new Promise((resolve) => setWaiting({ resolve }))), [])
  if (!waiting) return null
  return (
    <Suspense>
      <SignInAgainDialog
        onEnd={(isSignedIn) => {
          setWaiting(undefined)
          waiting.resolve(isSignedIn)
        }}
      />
    </Suspense>
  )
}
