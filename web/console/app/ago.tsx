import { formatAgo, formatMoment } from '../units.ts'

/** A time of the API as how long ago it was, with the exact one on hover. */
export function Ago({ at }: { at: string }) {
  const atS = Date.parse(at) / 1000
  return (
    <time dateTime={at} title={formatMoment(atS)}>
      {formatAgo(atS)}
    </time>
  )
}
