import { queryOptions, useMutation, useSuspenseQuery } from '@tanstack/react-query'
import { callApi } from '../api.ts'
import { consolePath } from '../app/place.ts'

/** Who looks at the console, as `GET /sign-in` answers. */
export type SignInState =
  | { signedIn: false; methods: readonly string[] }
  | {
      signedIn: true
      name: string
      role: 'owner' | 'viewer'
      permissions: readonly string[]
      account: { id: string; name: string }
      version: string
    }
export type SignedIn = Extract<SignInState, { signedIn: true }>

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

/** Signs out and forgets everything that was read, with a load of the page: nothing of the account stays in memory. */
export function useSignOut() {
  return useMutation({
    mutationFn: () => callApi<unknown>('DELETE', 'sign-in'),
    onSuccess: () => location.assign(`${consolePath}/sign-in`),
  })
}
