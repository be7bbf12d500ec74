import { NumberInput, Select, Switch } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { callApi } from '../api.ts'
import { useAnnounce } from '../ui/announcements.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { NumberField } from '../ui/number-field.tsx'
import { type Account, accountQuery, accountsQuery } from './queries.ts'
import { WHEN_FULL } from './settings.ts'
import styles from './system.module.css'

const FLAGS = [
  ['mayUpload', 'May upload', 'Off: its keys and people add no videos by upload. What is there stays.'],
  ['mayImport', 'May import from addresses', 'Off: the server fetches no videos for it.'],
  ['deletesToTrash', 'The API deletes into the trash', 'Deleted videos can be restored for 7 days.'],
  [
    'otpDefaultsRemovable',
    'A link may remove watermark and site',
    'On: an OTP that asks for none plays without the defaults of the account and the video.',
  ],
] as const

const NUMBERS = [
  ['limitFactor', 'Rate limits, times the usual', 'For an account whose sites call more often than the limits allow.', 1, 1000],
  ['pageMax', 'Rows on a page of a list', 'The most that one call of the API returns.', 1, 100],
  ['streamLimit', 'Screens of one viewer at the same time', 'For links with a userId. 0: no limit.', 0, 100],
] as const

const GB = 1e9

type Limits = Pick<Account, (typeof FLAGS | typeof NUMBERS)[number][0] | 'whenFull' | 'storageLimitBytes'>

/** What an administrator allows an account: the same as `reelgate account set`. */
export function AccountLimitsDialog({ account, onClose }: { account: Account; onClose(): void }) {
  const queries = useQueryClient()
  const announce = useAnnounce()
  const [changes, setChanges] = useState<Partial<Limits>>({})
  const limits = { ...account, ...changes }
  const change = (change: Partial<Limits>) => setChanges({ ...changes, ...change })
  const save = useMutation({
    mutationFn() {
      const flags = FLAGS.flatMap(([name]) => (changes[name] === undefined ? [] : [[name, changes[name] ? 1 : 0]]))
      return callApi<unknown>('PUT', `accounts/${account.id}`, { body: { ...changes, ...Object.fromEntries(flags) } })
    },
    async onSuccess() {
      onClose()
      announce(`The limits of ${account.name} have been changed.`)
      await queries.invalidateQueries({ queryKey: accountsQuery.queryKey })
      await queries.invalidateQueries({ queryKey: accountQuery.queryKey })
    },
  })
  return (
    <Dialog
      title={`Limits of ${account.name}`}
      onClose={onClose}
      action="Save the limits"
      isBusy={save.isPending}
      isDisabled={Object.keys(changes).length === 0}
      error={save.error}
      onSubmit={() => save.mutate()}
    >
      <div className={styles.form}>
        {FLAGS.map(([name, label, description]) => (
          <Switch
            key={name}
            label={label}
            description={description}
            checked={limits[name]}
            onChange={({ target }) => change({ [name]: target.checked })}
          />
        ))}
        {NUMBERS.map(([name, label, description, min, max]) => (
          <NumberInput
            key={name}
            label={label}
            description={description}
            min={min}
            max={max}
            allowDecimal={false}
            value={limits[name]}
            onChange={(value) => change({ [name]: Math.max(min, Number(value) || 0) })}
          />
        ))}
        <Select
          label="When a viewer starts one more"
          data={WHEN_FULL}
          value={limits.whenFull}
          onChange={(value) => value !== null && change({ whenFull: value })}
          allowDeselect={false}
        />
        <NumberField
          label="Storage, in GB"
          description="What its videos may take on the disk, those in the trash included. Empty: no limit."
          min={0.001}
          max={9_000_000}
          decimalScale={3}
          value={limits.storageLimitBytes === null ? '' : limits.storageLimitBytes / GB}
          onChange={(gb) => change({ storageLimitBytes: gb === '' ? null : Math.max(1, Math.round(gb * GB)) })}
        />
      </div>
    </Dialog>
  )
}
