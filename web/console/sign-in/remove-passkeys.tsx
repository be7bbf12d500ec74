import { Checkbox } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { passkeysQuery } from './queries.ts'

/** Offered with a change of the password: passkeys sign in without it. Nothing for a person who has none. */
export function RemovePasskeys({ checked, onChange }: { checked: boolean; onChange(checked: boolean): void }) {
  const { data: passkeys = [] } = useQuery(passkeysQuery)
  if (passkeys.length === 0) return null
  return (
    <Checkbox
      label={passkeys.length === 1 ? 'Remove my passkey, too' : `Remove my ${passkeys.length} passkeys, too`}
      description={`${passkeys.map(({ name }) => name).join(', ')}. A passkey signs in without the password: remove those that are not yours.`}
      checked={checked}
      onChange={({ target }) => onChange(target.checked)}
    />
  )
}
