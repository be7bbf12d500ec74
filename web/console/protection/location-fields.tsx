import { MultiSelect, Select } from '@mantine/core'
import { useMemo } from 'react'
import { type Locations, listCountries } from './protection.ts'

/** In which countries a video may be watched. */
export function LocationFields({ locations, onChange }: { locations: Locations; onChange(locations: Locations): void }) {
  const countries = useMemo(listCountries, [])
  const modes = [
    { value: 'anywhere', label: 'Everywhere' },
    { value: 'only', label: 'Only in some countries' },
    { value: 'except', label: 'Everywhere but in some countries' },
  ] as const
  const select = (value: string | null) => {
    const mode = modes.find((known) => known.value === value)?.value ?? 'anywhere'
    onChange({ mode, countries: mode === 'anywhere' ? [] : locations.countries })
  }
  return (
    <>
      <Select label="Where it may be watched" data={modes} value={locations.mode} onChange={select} allowDeselect={false} />
      {locations.mode !== 'anywhere' && (
        <MultiSelect
          label="Countries"
          description={locations.countries.length === 0 && 'Until you choose one, it may be watched everywhere.'}
          required={locations.mode === 'only'}
          data={countries}
          value={locations.countries}
          onChange={(next) => onChange({ ...locations, countries: next })}
          searchable
          hidePickedOptions
          limit={50}
          nothingFoundMessage="There is no such country."
        />
      )}
    </>
  )
}
