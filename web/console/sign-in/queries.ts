import { queryOptions, useMutation, useQueryClient, useSuspenseQuery } from '@tanstack/react-query'
import type { PasskeyListBody } from '../../../src/http/console/passkeys.ts'
import type { SignInReply } from '../../../src/http/console/sign-in.ts'
import { callApi } from '../api.ts'
import { rowsQuery } from '../rows-query.ts'
import { consolePath } from '../urls.ts'

export type Passkey = PasskeyListBody['rows'][number]
export type SignedIn = Extract<SignInReply, { signedIn: true }>

/** Whether the browser is signed in, and as whom. */
export const signInQuery = queryOptions({
  queryKey: ['sign-in'],
  queryFn: ({ signal }) => callApi<SignInReply>('GET', 'sign-in', { signal }),
  staleTime: 60_000,
})

/** The passkeys of the person who is signed in. */
export const passkeysQuery = rowsQuery<Passkey>('passkeys')

/** For pages below the sign-in: who looks at them. */
export function useSignedIn(): SignedIn {
  const { data } = useSuspenseQuery(signInQuery)
  if (!data.signedIn) throw new Error('This page is shown to a signed-in person only.')
  return data
}

export type AccountPermission = 'viewer' | 'editor' | 'uploader' | 'otpCreator'

/** Whether the person may do what needs this permission of the account: what they may not is not offered. */
export function useMay(permission: AccountPermission): boolean {
  return useSignedIn().permissions.includes(permission)
}

/** A call that signs a person in, such as by password: its answer is who that is. */
export function useSignIn<Input>(sign: (input: Input) => Promise<SignInReply>, onSignedIn: (signedIn: SignedIn) => void) {
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
