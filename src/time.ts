import { Failure } from './errors.ts'

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

/**
 * The days of a period, both its ends included.
 * @param from @param to as `utcDay` writes them
 * @throws Failure `invalid` for what is no day, and for more than `maxDays`
 */
export function listDays({ from, to }: { from: string; to: string }, maxDays: number): string[] {
  if (!isDay(from) || !isDay(to)) throw new Failure('invalid', 'from and to are days of the calendar, as in 2026-02-28.')
  const [firstS, lastS] = [Date.parse(from) / 1000, Date.parse(to) / 1000]
  const count = (lastS - firstS) / DAY_S + 1
  if (count < 1) throw new Failure('invalid', 'from is after to.')
  if (count > maxDays) throw new Failure('invalid', `Ask for at most ${maxDays} days: older ones are not kept.`)
  return Array.from({ length: count }, (_, n) => utcDay(firstS + n * DAY_S))
}
