import { TextInput } from '@mantine/core'
import type { ComponentProps } from 'react'
import type { UseFormRegisterReturn } from 'react-hook-form'
import { NumberField } from '../ui/number-field.tsx'
import { LocationFields } from './location-fields.tsx'

type NumberFieldProps = Pick<ComponentProps<typeof NumberField>, 'description' | 'value' | 'onChange'>
type AccessFieldsProps = {
  site: UseFormRegisterReturn
  locations: ComponentProps<typeof LocationFields>['locations']
  onLocations: ComponentProps<typeof LocationFields>['onChange']
  /** Absent: not asked. */
  streamLimit?: NumberFieldProps | undefined
  ttlS: NumberFieldProps
}

/** Where a video may be watched, on how many screens, and how long its link can be opened. */
export function AccessFields({ site, locations, onLocations, streamLimit, ttlS }: AccessFieldsProps) {
  return (
    <>
      <TextInput
        label="Site"
        description="The host that may embed the video, with its subdomains. Empty: every site."
        placeholder="school.example"
        {...site}
      />
      <LocationFields locations={locations} onChange={onLocations} />
      {streamLimit && (
        <NumberField label="Screens of one viewer at the same time" min={1} max={100} allowDecimal={false} {...streamLimit} />
      )}
      <NumberField label="Seconds to open a link" min={1} max={31_536_000} allowDecimal={false} {...ttlS} />
    </>
  )
}
