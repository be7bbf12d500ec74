import { formatDuration } from '../units.ts'
import type { Viewing } from './queries.ts'
import styles from './watched-bar.module.css'

/** The watched parts of a video, in order from its beginning to its end. */
export function WatchedBar({ viewing: { intervals, lengthS } }: { viewing: Viewing }) {
  const endS = Math.max(lengthS ?? 0, ...intervals.map(([, toS = 0]) => toS), 1)
  const parts = intervals.map(([fromS = 0, toS = 0]) => `${formatDuration(fromS)} to ${formatDuration(toS)}`)
  return (
    <svg
      className={styles.bar}
      role="img"
      aria-label={parts.join(', ') || 'nothing yet'}
      viewBox={`0 0 ${endS} 1`}
      preserveAspectRatio="none"
    >
      <title>{parts.join(', ')}</title>
      {intervals.map(([fromS = 0, toS = 0]) => (
        <rect key={fromS} x={fromS} y={0} width={Math.max(toS - fromS, endS / 200)} height={1} />
      ))}
    </svg>
  )
}
