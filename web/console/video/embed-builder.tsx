import { SegmentedControl, Select, Switch, TextInput } from '@mantine/core'
import { useState } from 'react'
import { LocationFields } from '../protection/location-fields.tsx'
import { ColorField } from '../ui/color-field.tsx'
import { NumberField } from '../ui/number-field.tsx'
import styles from './embed-builder.module.css'
import type { EmbedWay, PlayerOptions } from './embed-html.ts'
import { OptionsPreview } from './options-preview.tsx'
import type { OtpChoices } from './otp-choices.ts'
import { USUAL_CHOICES } from './site-code.ts'
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

/** The code for the owner's site, with how it is embedded, how the player looks and starts, and what the server asks for. */
export function EmbedBuilder({ videoId }: { videoId: string }) {
  const [choices, setChoices] = useState(USUAL_CHOICES)
  const [previews, setPreviews] = useState(false) // a session begins only when there is something to look at
  const { way, player, otp } = choices
  const current = WAYS.find(({ value }) => value === way) ?? WAYS[0]
  return (
    <div className={styles.builder}>
      <div className={styles.way}>
        <SegmentedControl
          aria-label="Way of embedding"
          value={way}
          onChange={(value) => setChoices({ ...choices, way: WAYS.find((known) => known.value === value)?.value ?? 'iframe' })}
          data={WAYS.map(({ value, label }) => ({ value, label }))}
        />
        <p className={styles.hint}>{current.hint}</p>
      </div>
      <details className={styles.group} onToggle={({ currentTarget }) => setPreviews(currentTarget.open)}>
        <summary>How the player looks and starts</summary>
        <div className={styles.look}>
          <div className={styles.preview}>{previews && <OptionsPreview videoId={videoId} player={player} />}</div>
          <PlayerFields player={player} onChange={(changes) => setChoices({ ...choices, player: { ...player, ...changes } })} />
        </div>
      </details>
      <details className={styles.group}>
        <summary>What your server asks for with each link</summary>
        <OtpFields otp={otp} onChange={(changes) => setChoices({ ...choices, otp: { ...otp, ...changes } })} />
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

type PlayerFieldsProps = { player: PlayerOptions; onChange(changes: Partial<PlayerOptions>): void }

function PlayerFields({ player, onChange }: PlayerFieldsProps) {
  return (
    <div className={styles.fields}>
      <div className={styles.switches}>
        <Switch
          label="Starts by itself, muted"
          checked={player.autoplay}
          onChange={({ target }) => onChange({ autoplay: target.checked })}
        />
        <Switch label="Repeats" checked={player.loop} onChange={({ target }) => onChange({ loop: target.checked })} />
        <Switch
          label="Shows the title"
          checked={player.showsTitle}
          onChange={({ target }) => onChange({ showsTitle: target.checked })}
        />
        <Switch
          label="Loads when it is played"
          checked={player.litemode}
          onChange={({ target }) => onChange({ litemode: target.checked })}
        />
      </div>
      <Select
        label="Controls"
        data={CONTROLS}
        value={player.controls}
        onChange={(value) => onChange({ controls: CONTROLS.find((known) => known.value === value)?.value ?? 'on' })}
        allowDeselect={false}
      />
      <NumberField
        label="Start at second"
        placeholder="Where the viewer was"
        min={0}
        max={999_999}
        value={player.startAtS}
        onChange={(startAtS) => onChange({ startAtS })}
      />
      <TextInput
        label="Language of captions"
        placeholder="None, such as en"
        maxLength={35}
        value={player.captionLanguage}
        onChange={({ target }) => onChange({ captionLanguage: target.value })}
      />
      <ColorField
        label="Primary color"
        placeholder="The player’s own"
        value={player.primaryColor}
        onChange={(primaryColor) => onChange({ primaryColor })}
      />
      <ColorField
        label="Surface color"
        placeholder="The player’s own"
        value={player.surfaceColor}
        onChange={(surfaceColor) => onChange({ surfaceColor })}
      />
      <NumberField
        label="Border radius, in pixels"
        placeholder="The player’s own"
        min={0}
        max={24}
        value={player.borderRadiusPx}
        onChange={(borderRadiusPx) => onChange({ borderRadiusPx })}
      />
      <TextInput
        label="Font"
        placeholder="The player’s own"
        maxLength={200}
        value={player.fontFamily}
        onChange={({ target }) => onChange({ fontFamily: target.value })}
      />
    </div>
  )
}

function OtpFields({ otp, onChange }: { otp: OtpChoices; onChange(changes: Partial<OtpChoices>): void }) {
  return (
    <div className={styles.fields}>
      <div className={styles.switches}>
        <Switch
          label="Says who the viewer is"
          description="They continue where they were, in every browser, and you see what they watched."
          checked={otp.identifies}
          onChange={({ target }) => onChange({ identifies: target.checked })}
        />
      </div>
      <TextInput
        label="Watermark"
        description="{id}, {name} and {email} are of the viewer, {ip} is the address."
        placeholder="None, such as {email}"
        maxLength={200}
        value={otp.watermark}
        onChange={({ target }) => onChange({ watermark: target.value })}
      />
      <TextInput
        label="Site"
        description="The host that may embed the video, with its subdomains."
        placeholder="Every site"
        value={otp.site}
        onChange={({ target }) => onChange({ site: target.value })}
      />
      <LocationFields locations={otp.locations} onChange={(locations) => onChange({ locations })} />
      <NumberField
        label="Screens of one viewer at the same time"
        description="Over all videos. The code then says who the viewer is, too."
        placeholder="The limit of the account"
        min={1}
        max={100}
        allowDecimal={false}
        value={otp.streamLimit}
        onChange={(streamLimit) => onChange({ streamLimit })}
      />
      <NumberField
        label="Seconds to open the link"
        description="Short is safe: until then anyone who has the link can open it."
        min={1}
        max={31_536_000}
        allowDecimal={false}
        value={otp.ttlS}
        onChange={(ttlS) => onChange({ ttlS })}
      />
    </div>
  )
}
