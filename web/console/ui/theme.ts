import {
  type CSSVariablesResolver,
  createTheme,
  defaultVariantColorsResolver,
  type MantineColorsTuple,
  type VariantColorsResolver,
} from '@mantine/core'

// Mantine's theme, made of tokens.css. A token has its value for light and for dark in itself, so both schemes get the same names.

const one = (token: string): MantineColorsTuple => {
  const color = `var(${token})`
  return [color, color, color, color, color, color, color, color, color, color]
}

/** Mantine's greys from light to dark, and its dark scheme's from text to page, as our few steps. */
const GRAY: MantineColorsTuple = [
  ...(['var(--raised)', 'var(--raised)', 'var(--line)', 'var(--line)', 'var(--edge)'] as const),
  ...(['var(--ink-soft)', 'var(--ink-soft)', 'var(--ink-soft)', 'var(--ink)', 'var(--ink)'] as const),
]
const DARK: MantineColorsTuple = [
  ...(['var(--ink)', 'var(--ink)', 'var(--ink-soft)', 'var(--ink-soft)', 'var(--line)'] as const),
  ...(['var(--raised)', 'var(--card)', 'var(--paper)', 'var(--paper)', 'var(--paper)'] as const),
]

/** Colours that a button can be filled with, and what is legible on them. */
const FILLS: Readonly<Record<string, { hover: string; ink: string }>> = {
  lamp: { hover: 'var(--lamp-strong)', ink: 'var(--lamp-ink)' },
  stop: { hover: 'var(--stop-strong)', ink: 'var(--stop-ink)' },
}

const variantColorResolver: VariantColorsResolver = (input) => {
  const colors = defaultVariantColorsResolver(input)
  const name = input.color ?? input.theme.primaryColor
  const fill = FILLS[name]
  if (input.variant === 'filled' && fill) return { ...colors, color: fill.ink, hoverColor: fill.ink, hover: fill.hover }
  if (name === 'gray' && input.variant === 'subtle')
    return { ...colors, background: 'transparent', hover: 'var(--raised)', color: 'var(--ink-soft)' }
  if (input.variant === 'light' || input.variant === 'subtle') {
    const tint = (percent: number) => `color-mix(in srgb, var(--${name}) ${percent}%, transparent)`
    return {
      ...colors,
      background: input.variant === 'light' ? tint(12) : 'transparent',
      hover: tint(input.variant === 'light' ? 20 : 10),
      color: `var(--${name})`,
    }
  }
  return colors
}

/** Nearly every field of the console is required: the others say that they are not. */
const FIELDS = ['TextInput', 'PasswordInput', 'Textarea', 'Select', 'MultiSelect', 'TagsInput', 'NumberInput']

export const theme = createTheme({
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace',
  fontSizes: { xs: '12px', sm: '13px', md: '15px', lg: '17px', xl: '20px' },
  lineHeights: { xs: '1.4', sm: '1.45', md: '1.5', lg: '1.5', xl: '1.4' },
  headings: {
    fontWeight: '600',
    sizes: { h1: { fontSize: '28px', lineHeight: '1.2' }, h2: { fontSize: '20px', lineHeight: '1.3' }, h3: { fontSize: '15px' } },
  },
  spacing: { xs: '8px', sm: '12px', md: '16px', lg: '24px', xl: '32px' },
  radius: { xs: '4px', sm: '6px', md: '8px', lg: '12px', xl: '16px' },
  defaultRadius: 'md',
  primaryColor: 'lamp',
  colors: {
    gray: GRAY,
    dark: DARK,
    lamp: one('--lamp'),
    ok: one('--ok'),
    warn: one('--warn'),
    stop: one('--stop'),
    red: one('--stop'),
  },
  variantColorResolver,
  cursorType: 'pointer',
  respectReducedMotion: true,
  components: {
    ...Object.fromEntries(FIELDS.map((field) => [field, { defaultProps: { withAsterisk: false } }])),
    Modal: {
      defaultProps: {
        centered: true,
        overlayProps: { backgroundOpacity: 0.5 },
        transitionProps: { duration: 120 },
        attributes: { header: { role: 'presentation' } }, // outside of <main> a header would be the page's, of which there is one
      },
    },
    Tooltip: { defaultProps: { openDelay: 400, transitionProps: { duration: 80 } } },
    Menu: { defaultProps: { transitionProps: { duration: 80 }, position: 'bottom-end' } },
  },
})

const VARIABLES = {
  '--mantine-color-body': 'var(--paper)',
  '--mantine-color-text': 'var(--ink)',
  '--mantine-color-bright': 'var(--ink)',
  '--mantine-color-dimmed': 'var(--ink-soft)',
  '--mantine-color-placeholder': 'var(--ink-soft)',
  '--mantine-color-default': 'var(--card)',
  '--mantine-color-default-hover': 'var(--raised)',
  '--mantine-color-default-color': 'var(--ink)',
  '--mantine-color-default-border': 'var(--line)',
  '--mantine-color-anchor': 'var(--lamp)',
  '--mantine-color-error': 'var(--stop)',
  '--mantine-primary-color-contrast': 'var(--lamp-ink)',
}

export const cssVariablesResolver: CSSVariablesResolver = () => ({ variables: {}, light: VARIABLES, dark: VARIABLES })
