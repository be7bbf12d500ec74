import { queryOptions, useMutation, useQueryClient, useSuspenseQuery } from '@tanstack/react-query'
import { callApi } from '../api.ts'
import { consolePath } from '../app/place.ts'

/** Whether the browser is signed in, and as whom: the answer of `GET /sign-in`. */
export type SignInState = SignedIn | { signedIn: false; methods: readonly string[] }
export type SignedIn = {
  signedIn: true
  user: { id: string; name: string; role: 'owner' | 'viewer'; administrator: boolean; hasPassword: boolean }
  method: 'password' | 'passkey' | 'link'
  permissions: readonly string[]
  account: { id: string; name: string; own: boolean }
  version: string
}

export const signInQuery = queryOptions({
  queryKey: ['sign-in'],
  queryFn: ({ signal }) => callApi<SignInState>('GET', 'sign-in', { signal }),
  staleTime: 60_000,
})

/** For pages below the sign-in: who looks at them. */
export function useSignedIn(): SignedIn {
  const { data } = useSuspenseQuery(signInQuery)
  if (!data.signedIn) throw new Error('This page is shown to a signed-in person only.')
  return data
}

/** Whether the person may do what needs this permission of the account: what they may not is not offered. */
export function useMay(permission: 'viewer' | 'editor' | 'uploader' | 'otpCreator'): boolean {
  return useSignedIn().permissions.includes(permission)
}

/** A call that signs a person in, such as by password: its answer is who that is. */
export function useSignIn<Input>(sign: (input: Input) => Promise<SignInState>, onSignedIn: (signedIn: SignedIn) => void) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: sign,
    onSuccess(state) {
      queries.setQueryData(signInQuery.queryKey, state)
      if (state.signedIn) onSignedIn(state)
    },
  })
}

/** Signs out, and loads the page again: nothing that was read of the account stays in memory. */
export function useSignOut() {
  return useMutation({
    mutationFn: () => callApi<unknown>('DELETE', 'sign-in'),
    onSuccess: () => location.assign(`${consolePath}/sign-in`),
  })
}
