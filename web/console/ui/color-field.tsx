import { ColorInput, type ColorInputProps } from '@mantine/core'

/** The picker opens for a pointer only and its sliders have no names: a screen reader reads the text field alone, which does the same. */
const POINTER_ONLY = { saturation: { 'aria-hidden': true }, body: { 'aria-hidden': true } }

type ColorFieldProps = Pick<ColorInputProps, 'placeholder' | 'onChange'> & { label: string; value: string }

/** A color as #rrggbb, typed or picked. */
export function ColorField({ label, ...props }: ColorFieldProps) {
  return (
    <ColorInput
      label={label}
      format="hex"
      attributes={POINTER_ONLY}
      eyeDropperButtonProps={{ 'aria-label': `Pick the ${label.toLowerCase()} from the screen` }}
      {...props}
    />
  )
}
