// Numbers with their units, as the reader's language writes them. Formatters are made once: one takes a tenth of a millisecond, and a
// list writes a hundred texts.

const WHOLE_NUMBER = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 })
const ONE_DECIMAL = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 })
const PERCENT = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 })
const COUNT = new Intl.NumberFormat()
const IN = new Intl.RelativeTimeFormat(undefined, { numeric: 'always' })
const AGO = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' })
const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' })
const MONTH = new Intl.DateTimeFormat(undefined, { month: 'long', year: 'numeric', timeZone: 'UTC' })
const MOMENT = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'long' })

/** Such as `1.9 GB`, in steps of a thousand. */
export function formatBytes(bytes: number): string {
  const step = Math.min(Math.max(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), 0), BYTE_UNITS.length - 1)
  const value = bytes / 1000 ** step
  return `${(step > 1 && value < 100 ? ONE_DECIMAL : WHOLE_NUMBER).format(value)} ${BYTE_UNITS[step]}`
}
const BYTE_UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'] as const

/** Such as `42:10` or `1:02:03`. */
export function formatDuration(seconds: number): string {
  const whole = Math.round(seconds)
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60]
  const twoDigits = (part: number) => String(part).padStart(2, '0')
  return hours > 0 ? `${hours}:${twoDigits(minutes)}:${twoDigits(rest)}` : `${minutes}:${twoDigits(rest)}`
}

/** Such as `0.8 s`. */
export function formatSeconds(seconds: number): string {
  return `${ONE_DECIMAL.format(seconds)} s`
}

/** @param share 0 to 1 */
export function formatPercent(share: number): string {
  return PERCENT.format(share)
}

export function formatCount(count: number): string {
  return COUNT.format(count)
}

export function countVideos(count: number): string {
  return count === 1 ? '1 video' : `${formatCount(count)} videos`
}

export function countViews(count: number): string {
  return count === 1 ? '1 view' : `${formatCount(count)} views`
}

/** Such as `in 6 days`, in whole days or hours. */
export function formatIn(unixS: number, nowS = Date.now() / 1000): string {
  const inS = Math.max(0, unixS - nowS)
  const [unit, unitS] = inS >= 86_400 ? (['day', 86_400] as const) : (['hour', 3600] as const)
  return IN.format(Math.round(inS / unitS), unit)
}

/** Such as `3 minutes ago`, and the date after a week. */
export function formatAgo(unixS: number, nowS = Date.now() / 1000): string {
  const agoS = Math.max(0, nowS - unixS)
  if (agoS > 7 * 86_400) return formatDay(unixS)
  const [unit, unitS] = AGO_UNITS.find(([, atLeastS]) => agoS >= atLeastS) ?? ['second', 1]
  return AGO.format(-Math.floor(agoS / unitS), unit)
}
const AGO_UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const

export function formatDay(unixS: number): string {
  return DAY.format(unixS * 1000)
}

export function formatMonth(unixS: number): string {
  return MONTH.format(unixS * 1000)
}

/** To the second, with the time zone: for a tooltip. */
export function formatMoment(unixS: number): string {
  return MOMENT.format(unixS * 1000)
}

/** Such as `about 4 minutes left`. */
export function formatRemaining(seconds: number): string {
  return `about ${formatAbout(seconds)} left`
}

export function formatEstimate(seconds: number): string {
  return `In about ${formatAbout(seconds)}`
}

function formatAbout(seconds: number): string {
  const [unit, unitS] = REMAINING_UNITS.find(([, atLeastS]) => seconds >= 1.5 * atLeastS) ?? (['second', 1] as const)
  const amount = Math.max(1, Math.round(seconds / unitS))
  return new Intl.NumberFormat(undefined, { style: 'unit', unit, unitDisplay: 'long' }).format(amount)
}
const REMAINING_UNITS = [
  ['hour', 3600],
  ['minute', 60],
] as const

const MAX_NAMED = 5

/** The first few names, and how many there are besides. */
export function listNames(names: readonly string[]): string {
  const others = names.length - MAX_NAMED
  return `${names.slice(0, MAX_NAMED).join(', ')}${others > 0 ? ` and ${formatCount(others)} more` : ''}`
}
