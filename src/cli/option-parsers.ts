import { InvalidArgumentError, Option } from 'commander'

export function jsonOption(): Option {
  return new Option('--json', 'print one JSON value and nothing else')
}

export function integer(min: number, max: number) {
  return (text: string): number => {
    if (!/^\d{1,6}$/.test(text) || Number(text) < min || Number(text) > max)
      throw new InvalidArgumentError(`Expected an integer from ${min} to ${max}.`)
    return Number(text)
  }
}

export function onOrOff(text: string): boolean {
  if (text !== 'on' && text !== 'off') throw new InvalidArgumentError('Expected on or off.')
  return text === 'on'
}

const SECONDS = { d: 24 * 3600, h: 3600, m: 60 } as const

/** `90d`, `24h`, `30m` in seconds. */
export function durationS(text: string): number {
  const [, count, unit] = /^(\d{1,5})([dhm])$/.exec(text) ?? []
  if (unit !== 'd' && unit !== 'h' && unit !== 'm') throw new InvalidArgumentError('Expected a duration such as 90d, 24h or 30m.')
  return Number(count) * SECONDS[unit]
}

/** Seconds from now to the end of a duration, or to the beginning of a day (UTC). */
export function secondsUntil(text: string): number {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return Math.max(1, durationS(text))
  const lifeS = Math.floor((Date.parse(text) - Date.now()) / 1000)
  if (!(lifeS > 0)) throw new InvalidArgumentError('Expected a day in the future such as 2027-03-31, or a duration such as 90d.')
  return lifeS
}

const BYTES: Readonly<Record<string, number>> = { '': 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12 }

/** `50GB`, `1.5 TB` or a number of bytes, in steps of a thousand; or `none`. Null would be an option without a value to commander. */
export function sizeOrNone(text: string): number | 'none' {
  if (text === 'none') return text
  const [, count, prefix = ''] = /^(\d{1,15}(?:\.\d{1,3})?) ?(?:([kmgt]?)b)?$/i.exec(text) ?? []
  const sizeBytes = Math.round(Number(count) * (BYTES[prefix.toLowerCase()] ?? 1))
  if (sizeBytes >= 1 && Number.isSafeInteger(sizeBytes)) return sizeBytes
  throw new InvalidArgumentError('Expected a size such as 500MB, 50GB or 1.5TB, or none.')
}

/** As `sizeOrNone`, but always a size. */
export function cacheSize(text: string): number {
  const size = sizeOrNone(text)
  if (size === 'none') throw new InvalidArgumentError('Expected a size such as 20GB.')
  return size
}

/** `video`, `audio` or `video,audio`. */
export function chunkKinds(text: string): ('video' | 'audio')[] {
  const kinds = (['video', 'audio'] as const).filter((kind) => text.split(',').includes(kind))
  if (kinds.length !== text.split(',').length) throw new InvalidArgumentError('Expected video, audio or video,audio.')
  return kinds
}
