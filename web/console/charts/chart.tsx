import { lazy, Suspense } from 'react'
import styles from './chart.module.css'
import type { DrawingProps, Point } from './drawing.tsx'

// The library that draws is larger than most pages: it is loaded when a chart is first shown.
const Drawing = lazy(async () => ({ default: (await import('./drawing.tsx')).Drawing }))

type ChartProps = DrawingProps & { pointName?: string }

/** Values over time or along a video: drawn, and as a table for those who cannot see the drawing. */
export function Chart({ pointName = 'Day', ...drawing }: ChartProps) {
  const { label, points, format, valueName } = drawing
  return (
    <figure className={styles.chart}>
      <figcaption>
        {label} <span>most: {format(Math.max(...points.map(({ value }) => value ?? 0), 0))}</span>
      </figcaption>
      <div className={styles.drawing}>
        <Suspense>
          <Drawing {...drawing} />
        </Suspense>
      </div>
      <details className={styles.table}>
        <summary>{label} as a table</summary>
        <table>
          <thead>
            <tr>
              <th scope="col">{pointName}</th>
              <th scope="col">{valueName}</th>
            </tr>
          </thead>
          <tbody>
            {points.map(({ name, value }: Point) => (
              <tr key={name}>
                <td>{name}</td>
                <td>{value === null ? 'not measured' : format(value)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </figure>
  )
}
