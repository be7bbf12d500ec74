import { formatAgo, formatMoment } from '../units.ts'
import { useMinute } from './use-minute.ts'

/** A time of the API as how long ago it was, with the exact one on hover. */
export function Ago({ at }: { at: string }) {
  useMinute()
  const atS = Date.parse(at) / 1000
  return (
    <time dateTime={at} title={formatMoment(atS)}>
      {formatAgo(atS)}
    </time>
  )
}
