import { Area, Bar, CartesianGrid, ComposedChart, Tooltip, type TooltipContentProps, XAxis, YAxis } from 'recharts'
import styles from './chart.module.css'

/** `null`: not known. */
export type Point = { name: string; value: number | null }

export type DrawingProps = {
  label: string
  points: readonly Point[]
  format(value: number): string
  valueName: string
  /** An area has no gaps: for what is known at every point. */
  shape?: 'bars' | 'area'
}

const TICK = { fill: 'var(--ink-soft)', fontSize: 12 }
const MARGIN = { top: 8, right: 4, bottom: 0, left: 0 }
const AXIS_WIDTH_PX = 64

/** Points drawn by Recharts, whose arrow keys move from one to the next. Nothing moves by itself. */
export function Drawing({ label, points, format, valueName, shape = 'bars' }: DrawingProps) {
  return (
    <ComposedChart responsive className={styles.plot} data={[...points]} margin={MARGIN} title={`${label}. Arrow keys read it.`}>
      <CartesianGrid vertical={false} stroke="var(--line)" />
      <XAxis
        dataKey="name"
        tick={TICK}
        stroke="var(--edge)"
        tickLine={false}
        interval="equidistantPreserveStart"
        minTickGap={24}
      />
      <YAxis
        tick={TICK}
        width={AXIS_WIDTH_PX}
        axisLine={false}
        tickLine={false}
        tickCount={4}
        allowDecimals={false}
        domain={[0, points.some(({ value }) => value) ? 'auto' : 1]}
        tickFormatter={format}
      />
      <Tooltip
        cursor={{ stroke: 'var(--edge)' }}
        content={(tooltip) => <Reading {...tooltip} format={format} valueName={valueName} />}
        isAnimationActive={false}
      />
      {shape === 'bars' ? (
        <Bar dataKey="value" fill="var(--lamp)" maxBarSize={48} radius={[2, 2, 0, 0]} isAnimationActive={false} />
      ) : (
        <Area
          dataKey="value"
          type="step"
          fill="var(--lamp-faint)"
          fillOpacity={1}
          stroke="var(--lamp)"
          strokeWidth={2}
          isAnimationActive={false}
        />
      )}
    </ComposedChart>
  )
}

type ReadingProps = Pick<TooltipContentProps, 'active' | 'payload' | 'label'> & Pick<DrawingProps, 'format' | 'valueName'>

/** The point under the pointer, or that the arrow keys have reached. */
function Reading({ active, payload, label, format, valueName }: ReadingProps) {
  const value = payload[0]?.value
  return (
    <div className={styles.reading} role="status" hidden={!active}>
      {active && (
        <>
          <b>{label}</b> {valueName}: {typeof value === 'number' ? format(value) : 'not measured'}
        </>
      )}
    </div>
  )
}
