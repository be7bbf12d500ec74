import { MultiSelect, Select } from '@mantine/core'
import { useMemo } from 'react'
import { listCountries, type Places } from './protection.ts'

/** In which countries a video may be watched. */
export function PlacesFields({ places, onChange }: { places: Places; onChange(places: Places): void }) {
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
          description={places.countries.length === 0 && 'Until you choose one, it may be watched everywhere.'}
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
