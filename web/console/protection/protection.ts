import { INTERVAL_MS, NEW_WATERMARK, toAnnotation, type Watermark } from './annotation.ts'

export type OtpDefaults = Readonly<Record<string, unknown>>

export type Locations = { mode: 'anywhere' | 'only' | 'except'; countries: string[] }

/** What the form edits, of the options that an account or a video gives to its OTPs. */
export type Protection = {
  site: string
  locations: Locations
  streamLimit: number | ''
  ttlS: number | ''
  watermark: Watermark | null
}

/** @returns undefined where the options say more than the form can: they were set by the API, and are not edited here */
export function readProtection(options: OtpDefaults): Protection | undefined {
  const { whitelisthref, ipGeo, ipGeoRules, streamLimit, ttl, annotate } = options
  const locations = ipGeoRules === undefined ? readLocations(ipGeo) : undefined
  const watermark = readWatermark(annotate)
  if (!locations || watermark === 'other') return undefined
  return {
    site: typeof whitelisthref === 'string' ? whitelisthref : '',
    locations,
    streamLimit: Number(streamLimit ?? 0) || '',
    ttlS: Number(ttl ?? 0) || '',
    watermark,
  }
}

const EDITED = new Set(['whitelisthref', 'ipGeo', 'streamLimit', 'ttl', 'annotate'])

export const NO_PROTECTION: Protection = {
  site: '',
  locations: { mode: 'anywhere', countries: [] },
  streamLimit: '',
  ttlS: '',
  watermark: null,
}

/** The options that the form keeps and does not show. */
export function namesBesidesForm(options: OtpDefaults): string[] {
  return Object.keys(options).filter((name) => !EDITED.has(name))
}

/** @returns undefined: not the JSON of an object */
export function readOptions(json: string): OtpDefaults | undefined {
  try {
    const value: unknown = JSON.parse(json)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** The options of the form, and those that it does not edit. */
export function toOptions({ site, locations, streamLimit, ttlS, watermark }: Protection, before: OtpDefaults): OtpDefaults {
  const others = Object.fromEntries(Object.entries(before).filter(([name]) => !EDITED.has(name)))
  return {
    ...others,
    ...(site.trim() !== '' && { whitelisthref: site.trim() }),
    ...toIpGeo(locations),
    ...(streamLimit !== '' && { streamLimit }),
    ...(ttlS !== '' && { ttl: ttlS }),
    ...(watermark && watermark.text.trim() !== '' && { annotate: [toAnnotation(watermark)] }),
  }
}

/** The option `ipGeo`; nothing while no country is chosen, which the server would read as everywhere. */
export function toIpGeo({ mode, countries }: Locations): { ipGeo?: { allow: string[] } | { block: string[] } } {
  if (mode === 'anywhere' || countries.length === 0) return {}
  return { ipGeo: mode === 'only' ? { allow: countries } : { block: countries } }
}

function readLocations(ipGeo: unknown): Locations | undefined {
  if (ipGeo === undefined) return { mode: 'anywhere', countries: [] }
  if (!isRecord(ipGeo)) return undefined
  const [[list, countries] = [], ...others] = Object.entries(ipGeo)
  if (others.length > 0 || !isCountries(countries)) return undefined
  if (list === 'allow') return { mode: 'only', countries }
  return list === 'block' ? { mode: 'except', countries } : undefined
}

/** @returns `other` for what the form would not save again as it is, such as a text at another place */
function readWatermark(annotate: unknown): Watermark | null | 'other' {
  if (annotate === undefined) return null
  const [one, ...others]: unknown[] = Array.isArray(annotate) ? annotate : [annotate]
  if (!isRecord(one) || others.length > 0) return 'other'
  const { type, text, color, alpha, size } = one
  if (typeof text !== 'string') return 'other'
  const watermark = {
    text,
    color: typeof color === 'string' && /^0x[0-9a-f]{6}$/i.test(color) ? `#${color.slice(2).toLowerCase()}` : NEW_WATERMARK.color,
    alpha: Number(alpha),
    size: Number(size),
    moves: type === 'rtext',
  }
  return isSame(one, toAnnotation(watermark)) ? watermark : 'other'
}

function isSame(stored: Record<string, unknown>, annotation: Record<string, unknown>): boolean {
  const full: Record<string, unknown> = stored.type === 'rtext' ? { interval: INTERVAL_MS, ...stored } : stored
  const names = [...Object.keys(full), ...Object.keys(annotation)]
  return names.every((name) => String(full[name]).toLowerCase() === String(annotation[name]).toLowerCase())
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isCountries(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((code) => typeof code === 'string' && /^[A-Z]{2}$/.test(code))
}

/** Codes that have a name but are no country of ISO 3166-1. */
const NO_COUNTRIES = new Set(
  'AC AN BU CP CQ CS DD DG DY EA EU EZ FX HV IC NH NT QO RH SU TA TP UK UN VD XA XB YD YU ZR ZZ'.split(' '),
)
const LETTERS = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ']

/** All countries by their name in the reader's language. */
export function listCountries(): { value: string; label: string }[] {
  const names = new Intl.DisplayNames(undefined, { type: 'region', fallback: 'none' })
  const codes = LETTERS.flatMap((first) => LETTERS.map((second) => first + second)).filter((code) => !NO_COUNTRIES.has(code))
  return codes
    .flatMap((value) => {
      const label = names.of(value)
      return label === undefined ? [] : [{ value, label }]
    })
    .toSorted((a, b) => a.label.localeCompare(b.label))
}
