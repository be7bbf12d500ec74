import { NumberInput, type NumberInputProps } from '@mantine/core'

type NumberFieldProps = Omit<NumberInputProps, 'value' | 'onChange'> & { value: number | ''; onChange(value: number | ''): void }

/** A number that may be left empty. */
export function NumberField({ onChange, ...props }: NumberFieldProps) {
  return <NumberInput {...props} onChange={(value) => onChange(typeof value === 'number' ? value : '')} />
}
