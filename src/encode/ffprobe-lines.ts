import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import type { FrameRate } from './frame-rate.ts'

// What ffprobe writes with `-of compact`: a section in each line.

/** Values as ffprobe writes them; without those that it does not know. */
export type Entries = { [name: string]: string | undefined }

export async function readLines(bytes: Readable, keep: (line: string) => void) {
  for await (const line of createInterface({ input: bytes })) keep(line)
}

/** Reads a line such as `stream|index=0|codec_name=h264|disposition:attached_pic=0|side_data|rotation=90`. Within texts | is escaped. */
export function entriesOf(line: string): Entries {
  const entries: Entries = {}
  for (const field of line.match(/(?:\\.|[^\\|])+/g) ?? []) {
    const at = field.indexOf('=')
    if (at > 0 && !field.endsWith('=N/A')) entries[field.slice(0, at)] = field.slice(at + 1)
  }
  return entries
}

/** ffprobe writes numbers as text, and `N/A` where it has none. */
export function number(text: string | undefined): number | undefined {
  const value = text === undefined || text === '' ? Number.NaN : Number(text)
  return Number.isFinite(value) ? value : undefined
}

export function ratio(text: string | undefined): number | undefined {
  const rate = fraction(text)
  return rate && rate.rateNum / rate.rateDen
}

export function fraction(text: string | undefined): FrameRate | undefined {
  const [rateNum = Number.NaN, rateDen = Number.NaN] = (text ?? '').split('/').map(Number)
  return rateNum > 0 && rateDen > 0 ? { rateNum, rateDen } : undefined
}
