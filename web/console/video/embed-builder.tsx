import { SegmentedControl, Select, TextInput } from '@mantine/core'
import { useState } from 'react'
import { type UseFormReturn, useForm } from 'react-hook-form'
import { AccessFields } from '../protection/access-fields.tsx'
import { ColorField } from '../ui/color-field.tsx'
import { SwitchField, useField } from '../ui/form.tsx'
import { NumberField } from '../ui/number-field.tsx'
import styles from './embed-builder.module.css'
import type { EmbedWay } from './embed-html.ts'
import { OptionsPreview } from './options-preview.tsx'
import { type EmbedChoices, USUAL_CHOICES } from './site-code.ts'
import { SiteCodeTabs } from './site-code-tabs.tsx'

const WAYS = [
  { value: 'iframe', label: 'Frame', hint: 'A plain <iframe>: works everywhere, without a script of ours in your page.' },
  {
    value: 'element',
    label: 'Element',
    hint: '<reelgate-player>: as high as the video needs, takes the colors of your style sheet, and has events and methods.',
  },
  { value: 'script', label: 'Script', hint: 'vdo.add(): for pages that have the embed script already.' },
] as const satisfies readonly { value: EmbedWay; label: string; hint: string }[]

type FieldsProps = { form: UseFormReturn<EmbedChoices> }

/** The code for the owner's site, with how it is embedded, how the player looks and starts, and what the server asks for. */
export function EmbedBuilder({ videoId }: { videoId: string }) {
  const form = useForm({ defaultValues: USUAL_CHOICES })
  const way = useField({ control: form.control, name: 'way' })
  const [previews, setPreviews] = useState(false) // a session begins only when there is something to look at
  const choices = form.watch()
  return (
    <div className={styles.builder}>
      <div className={styles.way}>
        <SegmentedControl aria-label="Way of embedding" data={WAYS.map(({ value, label }) => ({ value, label }))} {...way} />
        <p className={styles.hint}>{WAYS.find(({ value }) => value === choices.way)?.hint}</p>
      </div>
      <details className={styles.group} onToggle={({ currentTarget }) => setPreviews(currentTarget.open)}>
        <summary>How the player looks and starts</summary>
        <div className={styles.look}>
          <div className={styles.preview}>{previews && <OptionsPreview videoId={videoId} player={choices.player} />}</div>
          <PlayerFields form={form} />
        </div>
      </details>
      <details className={styles.group}>
        <summary>What your server asks for with each link</summary>
        <OtpFields form={form} />
      </details>
      <SiteCodeTabs videoId={videoId} choices={choices} />
    </div>
  )
}

const CONTROLS = [
  { value: 'on', label: 'The player’s own' },
  { value: 'native', label: 'The browser’s' },
  { value: 'off', label: 'None' },
] as const

const OWN = 'The player’s own'

function PlayerFields({ form: { control, register } }: FieldsProps) {
  const controls = useField({ control, name: 'player.controls' })
  const startAtS = useField({ control, name: 'player.startAtS' })
  const primaryColor = useField({ control, name: 'player.primaryColor' })
  const surfaceColor = useField({ control, name: 'player.surfaceColor' })
  const borderRadiusPx = useField({ control, name: 'player.borderRadiusPx' })
  return (
    <div className={styles.fields}>
      <div className={styles.switches}>
        <SwitchField label="Starts by itself, muted" control={control} name="player.autoplay" />
        <SwitchField label="Repeats" control={control} name="player.loop" />
        <SwitchField label="Shows the title" control={control} name="player.showsTitle" />
        <SwitchField label="Loads when it is played" control={control} name="player.litemode" />
      </div>
      <Select label="Controls" data={CONTROLS} allowDeselect={false} {...controls} />
      <NumberField label="Start at second" placeholder="Where the viewer was" min={0} max={999_999} {...startAtS} />
      <TextInput
        label="Language of captions"
        placeholder="None, such as en"
        maxLength={35}
        {...register('player.captionLanguage')}
      />
      <ColorField label="Primary color" placeholder={OWN} {...primaryColor} />
      <ColorField label="Surface color" placeholder={OWN} {...surfaceColor} />
      <NumberField label="Border radius, in pixels" placeholder={OWN} min={0} max={24} {...borderRadiusPx} />
      <TextInput label="Font" placeholder={OWN} maxLength={200} {...register('player.fontFamily')} />
    </div>
  )
}

function OtpFields({ form: { control, register } }: FieldsProps) {
  const locations = useField({ control, name: 'otp.locations' })
  const streamLimit = useField({ control, name: 'otp.streamLimit' })
  const ttlS = useField({ control, name: 'otp.ttlS' })
  return (
    <div className={styles.fields}>
      <div className={styles.switches}>
        <SwitchField
          label="Says who the viewer is"
          description="They continue where they were, in every browser, and you see what they watched."
          control={control}
          name="otp.identifies"
        />
      </div>
      <TextInput
        label="Watermark"
        description="{id}, {name} and {email} are of the viewer, {ip} is the address."
        placeholder="None, such as {email}"
        maxLength={200}
        {...register('otp.watermark')}
      />
      <AccessFields
        site={register('otp.site')}
        locations={locations.value}
        onLocations={locations.onChange}
        streamLimit={{
          ...streamLimit,
          description: 'Over all videos; the code then says who the viewer is, too. Empty: the limit of the account.',
        }}
        ttlS={{ ...ttlS, description: 'Short is safe: until then anyone who has the link can open it.' }}
      />
    </div>
  )
}
