import { Checkbox, Stack } from '@mantine/core'
import { useMutation, useQueryClient, useSuspenseQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { callApi } from '../api.ts'
import { passkeysQuery } from '../sign-in/queries.ts'
import { useAnnounce } from '../ui/announcements.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { formatDay } from '../units.ts'
import { signInsQuery } from './queries.ts'

/** Signs out all other browsers. Passkeys would sign them in again, so they are listed, to be removed with it. */
export function SignOutDialog({ onClose }: { onClose(): void }) {
  const queries = useQueryClient()
  const announce = useAnnounce()
  const { data: signIns } = useSuspenseQuery(signInsQuery)
  const { data: passkeys } = useSuspenseQuery(passkeysQuery)
  const [removed, setRemoved] = useState<readonly string[]>([])
  const signOut = useMutation({
    async mutationFn() {
      for (const id of removed) await callApi<unknown>('DELETE', `passkeys/${id}`)
      await callApi<unknown>('DELETE', 'sign-ins')
    },
    async onSuccess() {
      onClose()
      announce('Signed out everywhere else.')
    },
    onSettled: () =>
      Promise.all([signInsQuery, passkeysQuery].map(({ queryKey }) => queries.invalidateQueries({ queryKey: [...queryKey] }))),
  })
  const others = signIns.length - 1
  return (
    <Dialog
      title="Sign out everywhere else?"
      onClose={onClose}
      action="Sign out"
      color="stop"
      change={signOut}
      onSubmit={() => signOut.mutate()}
    >
      <p>
        {others === 1 ? 'One other browser is signed out.' : `${others} other browsers are signed out.`} This one stays signed in.
      </p>
      {passkeys.length > 0 && (
        <>
          <p>Your passkeys can sign in again. Remove those that are not yours, or that you lost:</p>
          <Checkbox.Group label="Passkeys to remove" value={[...removed]} onChange={setRemoved}>
            <Stack gap={8} mt={8}>
              {passkeys.map(({ id, name, createdAt }) => (
                <Checkbox key={id} value={id} label={name} description={`Added ${formatDay(Date.parse(createdAt) / 1000)}`} />
              ))}
            </Stack>
          </Checkbox.Group>
        </>
      )}
    </Dialog>
  )
}
