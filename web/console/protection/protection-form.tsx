import { Code } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type UseFormReturn, useForm } from 'react-hook-form'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { callApi } from '../api.ts'
import { useMay } from '../sign-in/queries.ts'
import { Notice } from '../ui/failure.tsx'
import { Form, useField } from '../ui/form.tsx'
import { AccessFields } from './access-fields.tsx'
import { needsSentence } from './annotation.ts'
import { OptionsJson, type SavedOptions } from './options-json.tsx'
import { namesBesidesForm, type OtpDefaults, type Protection, readProtection, toOptions } from './protection.ts'
import styles from './protection-form.module.css'
import { WatermarkFields } from './watermark-fields.tsx'

type DefaultsProps = {
  /** Where the defaults are saved, such as `otp-defaults`. */
  path: string
  options: OtpDefaults
  /** Whose defaults they are; undefined: the account's. */
  video?: VideoBody
  /** @param needs what the owner's site has to send from now on, in a sentence */
  onSaved(needs: string): Promise<void>
}

/** The defaults of OTPs, of the account or a video: as a form, and as JSON for what the form does not know. */
export function OtpDefaultsForm({ options: { eachOtpRefused, ...options }, ...props }: DefaultsProps) {
  return (
    <>
      {typeof eachOtpRefused === 'string' && (
        <Notice text={`These options refuse every OTP, and no link plays: ${eachOtpRefused}`} />
      )}
      <StoredOptions options={options} {...props} />
    </>
  )
}

function StoredOptions(props: DefaultsProps) {
  const { options, path } = props
  const mayEdit = useMay('editor')
  const stored = readProtection(options)
  const unknown = namesBesidesForm(options)
  const onSaved = ({ eachOtpNeeds = [] }: SavedOptions) => props.onSaved(needsSentence(eachOtpNeeds))
  if (!mayEdit)
    return (
      <>
        <p className={styles.soft}>The options that are set:</p>
        <Code block>{JSON.stringify(options, undefined, 2)}</Code>
      </>
    )
  const json = <OptionsJson path={path} options={options} onSaved={onSaved} />
  if (!stored)
    return (
      <>
        <p className={styles.soft}>These options were set over the API, and say more than a form can.</p>
        {json}
      </>
    )
  return (
    <>
      <ProtectionForm stored={stored} {...props} />
      <details className={styles.json}>
        <summary>All options as JSON{unknown.length > 0 && `, also ${unknown.join(', ')}, which the form does not have`}</summary>
        {json}
      </details>
    </>
  )
}

function ProtectionForm({ path, options, video, stored, onSaved }: DefaultsProps & { stored: Protection }) {
  const form = useForm({ values: stored })
  const save = useMutation({
    mutationFn: (protection: Protection) => callApi<SavedOptions>('PUT', path, { body: toOptions(protection, options) }),
    onSuccess: ({ eachOtpNeeds = [] }) => onSaved(needsSentence(eachOtpNeeds)),
  })
  return (
    <Form
      action={video ? 'Save the protection' : 'Save the defaults'}
      change={save}
      isDisabled={!form.formState.isDirty}
      onSubmit={form.handleSubmit((protection) => save.mutate(protection))}
    >
      <ProtectionFields form={form} isOfVideo={video !== undefined} video={video} />
    </Form>
  )
}

type ProtectionFieldsProps = {
  form: UseFormReturn<Protection>
  /** Or else of the account. */
  isOfVideo: boolean
  /** Whose poster is behind the watermark. */
  video?: VideoBody
}

export function ProtectionFields({ form: { control, register }, isOfVideo, video }: ProtectionFieldsProps) {
  const watermark = useField({ control, name: 'watermark' })
  const ttlS = useField({ control, name: 'ttlS' })
  const streamLimit = useField({ control, name: 'streamLimit' })
  const locations = useField({ control, name: 'locations' })
  const anyone = 'Until then anyone who has the link can open it.'
  return (
    <>
      <AccessFields
        site={register('site')}
        locations={locations.value}
        onLocations={locations.onChange}
        streamLimit={
          isOfVideo ? { ...streamLimit, description: 'For links with a userId. Empty: the limit of the account.' } : undefined
        }
        ttlS={{
          ...ttlS,
          description: `${anyone} Empty: ${isOfVideo ? 'the default of the account' : '21600, which is six hours'}.`,
        }}
      />
      <WatermarkFields video={video} watermark={watermark.value} onChange={watermark.onChange} />
    </>
  )
}
