import { Button, Code, MultiSelect, NumberInput, Select, TextInput } from '@mantine/core'
import { useMutation, useQueryClient, useSuspenseQuery } from '@tanstack/react-query'
import { type FormEvent, useMemo, useState } from 'react'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { callApi } from '../api.ts'
import { useAnnounce } from '../app/announcements.tsx'
import { FailureNotice } from '../app/failure.tsx'
import { Section } from '../app/section.tsx'
import { useMay } from '../sign-in/queries.ts'
import { listCountries, type Places, type Protection, readProtection, toOptions } from './protection.ts'
import { type OtpDefaults, otpDefaultsQuery, previewQuery } from './queries.ts'
import styles from './video-page.module.css'
import { WatermarkFields } from './watermark-fields.tsx'

/** Who may watch the video, and what is shown over it: the defaults of its OTPs. */
export function ProtectionTab({ video }: { video: VideoBody }) {
  const { data: options } = useSuspenseQuery(otpDefaultsQuery(video.id))
  const mayEdit = useMay('editor')
  const protection = readProtection(options)
  return (
    <Section
      title="Protection"
      lead="For every link to this video that is issued from now on. Your site can add to it for one viewer, and the account has defaults of its own."
    >
      {protection && mayEdit ? (
        <ProtectionForm key={JSON.stringify(options)} video={video} options={options} stored={protection} />
      ) : (
        <>
          <p className={styles.soft}>
            {mayEdit ? 'These options were set over the API, and say more than this form can:' : 'The options of this video:'}
          </p>
          <Code block>{JSON.stringify(options, undefined, 2)}</Code>
        </>
      )}
    </Section>
  )
}

function ProtectionForm({ video, options, stored }: { video: VideoBody; options: OtpDefaults; stored: Protection }) {
  const queries = useQueryClient()
  const announce = useAnnounce()
  const [protection, setProtection] = useState(stored)
  const change = (changes: Partial<Protection>) => setProtection({ ...protection, ...changes })
  const save = useMutation({
    mutationFn: () => callApi<unknown>('PUT', `videos/${video.id}/otp-defaults`, { body: toOptions(protection, options) }),
    async onSuccess() {
      announce('The protection has been saved. The player above shows it.')
      await queries.invalidateQueries({ queryKey: ['videos'] })
      await queries.resetQueries({ queryKey: previewQuery(video.id).queryKey })
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    save.mutate()
  }
  const isChanged = JSON.stringify(protection) !== JSON.stringify(stored)
  return (
    <form className={styles.form} onSubmit={submit}>
      <TextInput
        label="Site"
        description="The host that may embed the video, with its subdomains. Empty: every site."
        placeholder="school.example"
        value={protection.site}
        onChange={({ target }) => change({ site: target.value })}
      />
      <PlacesFields places={protection.places} onChange={(places) => change({ places })} />
      <NumberInput
        label="Screens of one viewer at the same time"
        description="For links with a userId. Empty: the limit of the account."
        min={1}
        max={100}
        allowDecimal={false}
        value={protection.streamLimit}
        onChange={(value) => change({ streamLimit: typeof value === 'number' ? value : '' })}
      />
      <WatermarkFields video={video} watermark={protection.watermark} onChange={(watermark) => change({ watermark })} />
      {save.error && <FailureNotice error={save.error} />}
      <div className={styles.buttons}>
        <Button type="submit" loading={save.isPending} disabled={!isChanged}>
          Save the protection
        </Button>
      </div>
    </form>
  )
}

function PlacesFields({ places, onChange }: { places: Places; onChange(places: Places): void }) {
  const countries = useMemo(listCountries, [])
  const modes = [
    { value: 'anywhere', label: 'Everywhere' },
    { value: 'only', label: 'Only in some countries' },
    { value: 'except', label: 'Everywhere but in some countries' },
  ] as const
  const select = (value: string | null) => {
    const mode = modes.find((known) => known.value === value)?.value ?? 'anywhere'
    onChange({ mode, countries: mode === 'anywhere' ? [] : places.countries })
  }
  return (
    <>
      <Select label="Where it may be watched" data={modes} value={places.mode} onChange={select} allowDeselect={false} />
      {places.mode !== 'anywhere' && (
        <MultiSelect
          label="Countries"
          required={places.mode === 'only'}
          data={countries}
          value={places.countries}
          onChange={(next) => onChange({ ...places, countries: next })}
          searchable
          hidePickedOptions
          limit={50}
          nothingFoundMessage="There is no such country."
        />
      )}
    </>
  )
}
