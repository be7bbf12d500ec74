import { NumberInput, Select } from '@mantine/core'
import { Controller, useForm } from 'react-hook-form'
import { callApi } from '../api.ts'
import { Dialog } from '../ui/dialog.tsx'
import { changesIn, SwitchField, useField } from '../ui/form.tsx'
import { NumberField } from '../ui/number-field.tsx'
import { useChange } from '../ui/use-change.ts'
import { type Account, accountQuery, accountsQuery } from './queries.ts'
import { WHEN_FULL } from './settings.ts'
import styles from './system.module.css'

const FLAGS = [
  ['mayUpload', 'May upload', 'Off: its keys and people add no videos by upload. What is there stays.'],
  ['mayImport', 'May import from addresses', 'Off: the server fetches no videos for it.'],
  ['deletesToTrash', 'The API deletes into the trash', 'Deleted videos can be restored for 7 days.'],
  ['normalizesLoudness', 'All videos equally loud', 'Speech of new videos plays at −16 LUFS, however it was recorded.'],
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
  const { control, handleSubmit, formState } = useForm<Limits>({ defaultValues: account })
  const whenFull = useField({ control, name: 'whenFull' })
  const storage = useField({ control, name: 'storageLimitBytes' })
  const { isDirty, dirtyFields } = formState
  const save = useChange({
    call(limits: Limits) {
      const changes = changesIn(limits, dirtyFields)
      const flags = FLAGS.flatMap(([name]) => (changes[name] === undefined ? [] : [[name, changes[name] ? 1 : 0]]))
      return callApi<unknown>('PUT', `accounts/${account.id}`, { body: { ...changes, ...Object.fromEntries(flags) } })
    },
    announced: `The limits of ${account.name} have been changed.`,
    onDone: onClose,
    refreshes: [accountsQuery.queryKey, accountQuery.queryKey],
  })
  return (
    <Dialog
      title={`Limits of ${account.name}`}
      onClose={onClose}
      action="Save the limits"
      change={save}
      isDisabled={!isDirty}
      onSubmit={handleSubmit((limits) => save.mutate(limits))}
    >
      <div className={styles.form}>
        {FLAGS.map(([name, label, description]) => (
          <SwitchField key={name} label={label} description={description} control={control} name={name} />
        ))}
        {NUMBERS.map(([name, label, description, min, max]) => (
          <Controller
            key={name}
            control={control}
            name={name}
            render={({ field: { onChange, ...field } }) => (
              <NumberInput
                label={label}
                description={description}
                min={min}
                max={max}
                allowDecimal={false}
                onChange={(value) => onChange(Math.max(min, Number(value) || 0))}
                {...field}
              />
            )}
          />
        ))}
        <Select label="When a viewer starts one more" data={WHEN_FULL} allowDeselect={false} {...whenFull} />
        <NumberField
          label="Storage, in GB"
          description="What its videos may take on the disk, those in the trash included. Empty: no limit."
          min={0.001}
          max={9_000_000}
          decimalScale={3}
          {...storage}
          value={storage.value === null ? '' : storage.value / GB}
          onChange={(gb) => storage.onChange(gb === '' ? null : Math.max(1, Math.round(gb * GB)))}
        />
      </div>
    </Dialog>
  )
}
