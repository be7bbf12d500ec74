import { NEW_WATERMARK, toAnnotation, type Watermark } from './annotation.ts'
import type { OtpDefaults } from './queries.ts'

export type Places = { mode: 'anywhere' | 'only' | 'except'; countries: string[] }

/** What the form edits, of the options that an account or a video gives to its OTPs. */
export type Protection = {
  site: string
  places: Places
  streamLimit: number | ''
  ttlS: number | ''
  watermark: Watermark | undefined
}

/** @returns undefined where the options say more than the form can: they were set by the API, and are not edited here */
export function readProtection(options: OtpDefaults): Protection | undefined {
  const { whitelisthref, ipGeo, ipGeoRules, streamLimit, ttl, annotate } = options
  const places = ipGeoRules === undefined ? readPlaces(ipGeo) : undefined
  const watermark = readWatermark(annotate)
  if (!places || watermark === 'several') return undefined
  return {
    site: typeof whitelisthref === 'string' ? whitelisthref : '',
    places,
    streamLimit: Number(streamLimit ?? 0) || '',
    ttlS: Number(ttl ?? 0) || '',
    watermark,
  }
}

/** The options of the form, and those that it does not edit. */
export function toOptions({ site, places, streamLimit, ttlS, watermark }: Protection, before: OtpDefaults): OtpDefaults {
  const { whitelisthref: _, ipGeo: __, streamLimit: ___, annotate: ____, ttl: _____, ...others } = before
  return {
    ...others,
    ...(site.trim() !== '' && { whitelisthref: site.trim() }),
    ...(places.mode === 'only' && { ipGeo: { allow: places.countries } }),
    ...(places.mode === 'except' && places.countries.length > 0 && { ipGeo: { block: places.countries } }),
    ...(streamLimit !== '' && { streamLimit }),
    ...(ttlS !== '' && { ttl: ttlS }),
    ...(watermark && watermark.text.trim() !== '' && { annotate: [toAnnotation(watermark)] }),
  }
}

function readPlaces(ipGeo: unknown): Places | undefined {
  if (ipGeo === undefined) return { mode: 'anywhere', countries: [] }
  if (!isRecord(ipGeo)) return undefined
  const [[list, countries] = [], ...others] = Object.entries(ipGeo)
  if (others.length > 0 || !isCountries(countries)) return undefined
  if (list === 'allow') return { mode: 'only', countries }
  return list === 'block' ? { mode: 'except', countries } : undefined
}

function readWatermark(annotate: unknown): Watermark | undefined | 'several' {
  if (annotate === undefined) return undefined
  const [one, ...others]: unknown[] = Array.isArray(annotate) ? annotate : [annotate]
  if (!isRecord(one) || others.length > 0) return 'several'
  const { type, text, color, alpha, size } = one
  if ((type !== 'rtext' && type !== 'text') || typeof text !== 'string') return 'several'
  return {
    text,
    color: typeof color === 'string' && /^0x[0-9a-f]{6}$/i.test(color) ? `#${color.slice(2).toLowerCase()}` : NEW_WATERMARK.color,
    alpha: Number(alpha ?? 1),
    size: Number(size ?? NEW_WATERMARK.size),
    moves: type === 'rtext',
  }
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
