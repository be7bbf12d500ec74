/** A time on the wire: ISO 8601 in UTC, with milliseconds. */
export function isoTime(atS: number): string {
  return new Date(atS * 1000).toISOString()
}

export function isoTimeOrNull(atS: number | null): string | null {
  return atS === null ? null : isoTime(atS)
}
