import styles from './bar-chart.module.css'

export type Bar = { name: string; value: number }

type BarChartProps = { label: string; bars: readonly Bar[]; format(value: number): string; nameOf?: string; valueName: string }

/** Values over time or along a video, as bars, and the same as a table for those who cannot see them. */
export function BarChart({ label, bars, format, nameOf = 'Day', valueName }: BarChartProps) {
  const most = Math.max(...bars.map(({ value }) => value), 0)
  return (
    <figure className={styles.chart}>
      <figcaption>
        {label} <span>most: {format(most)}</span>
      </figcaption>
      <div className={styles.bars} aria-hidden="true">
        {bars.map(({ name, value }) => (
          <div key={name} className={styles.slot} title={`${name}: ${format(value)}`}>
            <div
              className={styles.bar}
              style={{ height: `${(100 * value) / Math.max(most, 1)}%` }}
              data-empty={value === 0 || undefined}
            />
          </div>
        ))}
      </div>
      <div className={styles.ends} aria-hidden="true">
        <span>{bars.at(0)?.name}</span>
        <span>{bars.at(-1)?.name}</span>
      </div>
      <details className={styles.table}>
        <summary>{label} as a table</summary>
        <table>
          <thead>
            <tr>
              <th scope="col">{nameOf}</th>
              <th scope="col">{valueName}</th>
            </tr>
          </thead>
          <tbody>
            {bars.map(({ name, value }) => (
              <tr key={name}>
                <td>{name}</td>
                <td>{format(value)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </figure>
  )
}
