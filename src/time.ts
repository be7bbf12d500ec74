export const DAY_S = 24 * 3600

/** A day in UTC, as `YYYY-MM-DD`. @param atS seconds since 1970 */
export function utcDay(atS: number): string {
  return new Date(atS * 1000).toISOString().slice(0, 10)
}

/** Whether a text is a day of the calendar, as `utcDay` writes it. */
export function isDay(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return false
  const day = new Date(`${text}T00:00:00Z`)
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text)
}
