import { NativeSelect } from '@mantine/core'
import type { Order } from '../catalogue/search.ts'
import { ChevronDownIcon } from '../ui/icons.tsx'
import { formatCount } from '../units.ts'
import styles from './list-head.module.css'
import { MAX_SELECTED, type Selection } from './use-selection.ts'
import type { VideoRows } from './use-video-rows.ts'
import itemStyles from './video-item.module.css'

type ListHeadProps = {
  rows: VideoRows
  selection: Selection
  maySelect: boolean
  view: 'table' | 'cards'
  order: Order | undefined
  onOrder(order: Order | undefined): void
}

/** Above the list: the box that selects all of it, and its order; in a table by the heads of its columns. */
export function ListHead({ rows, selection, maySelect, view, order, onOrder }: ListHeadProps) {
  return (
    <div className={styles.head} data-view={view}>
      {maySelect ? <SelectAll rows={rows} selection={selection} /> : <span />}
      <NativeSelect
        className={styles.select}
        aria-label="Order"
        size="xs"
        data={ORDER_OPTIONS}
        value={order ?? ''}
        onChange={({ target }) => onOrder(ORDER_OPTIONS.find(({ value }) => value === target.value)?.order)}
      />
      {view === 'table' &&
        COLUMNS.map(({ label, orders, isNumber }) => (
          <ColumnHead key={label} label={label} orders={orders} isNumber={isNumber} order={order} onOrder={onOrder} />
        ))}
    </div>
  )
}

const ORDER_OPTIONS: readonly { value: string; label: string; order: Order | undefined }[] = [
  { value: '', label: 'Newest first', order: undefined },
  ...(
    [
      ['upload_time', 'Oldest first'],
      ['title', 'Title, A to Z'],
      ['-title', 'Title, Z to A'],
      ['-length', 'Longest first'],
      ['length', 'Shortest first'],
      ['-size', 'Largest first'],
      ['size', 'Smallest first'],
      ['-views', 'Most views first'],
      ['views', 'Fewest views first'],
    ] as const
  ).map(([order, label]) => ({ value: order, label, order })),
]

type Column = {
  label: string
  /** Its first order, and that of the second press; none: it has no order. */
  orders?: readonly [first: Order | undefined, second: Order | undefined]
  isNumber?: boolean
}

const COLUMNS: readonly Column[] = [
  { label: 'Title', orders: ['title', '-title'] },
  { label: 'State' },
  { label: 'Length', orders: ['-length', 'length'], isNumber: true },
  { label: 'Size', orders: ['-size', 'size'], isNumber: true },
  { label: 'Views', orders: ['-views', 'views'], isNumber: true },
  { label: 'Added', orders: [undefined, 'upload_time'], isNumber: true },
]

type ColumnHeadProps = Column & { order: Order | undefined; onOrder(order: Order | undefined): void }

function ColumnHead({ label, orders, isNumber, order, onOrder }: ColumnHeadProps) {
  const className = isNumber ? styles.number : styles.column
  if (!orders) return <span className={className}>{label}</span>
  const isCurrent = orders.includes(order)
  const next = orders[0] === order ? orders[1] : orders[0]
  const isAscending = isCurrent && !(order ?? '-').startsWith('-')
  return (
    <button
      type="button"
      className={className}
      data-column={label}
      aria-pressed={isCurrent}
      title={ORDER_OPTIONS.find((option) => option.order === next)?.label}
      onClick={() => onOrder(next)}
    >
      {label}
      {isCurrent && (
        <span className={styles.arrow} data-ascending={isAscending || undefined}>
          <ChevronDownIcon size={14} />
        </span>
      )}
      {isCurrent && <span className="visually-hidden">, {ORDER_OPTIONS.find((option) => option.order === order)?.label}</span>}
    </button>
  )
}

/** For all videos of the list, also those that have not been read yet. */
function SelectAll({ rows, selection }: Pick<ListHeadProps, 'rows' | 'selection'>) {
  const count = rows.count ?? 0
  const all = Math.min(count, MAX_SELECTED)
  const isAll = all > 0 && selection.size >= all && selection.has(rows.rowAt(0)?.id ?? '')
  const label =
    count > MAX_SELECTED ? `Select the first ${formatCount(MAX_SELECTED)} of ${formatCount(count)} videos` : 'Select all'
  return (
    <input
      type="checkbox"
      className={itemStyles.box}
      aria-label={label}
      title={label}
      checked={isAll}
      ref={(box) => {
        if (box) box.indeterminate = selection.size > 0 && !isAll
      }}
      onChange={() => (isAll ? selection.clear() : void selectAll(rows, selection))}
    />
  )
}

/** Of more than one action can take, the first. */
export async function selectAll(rows: VideoRows, selection: Selection): Promise<void> {
  selection.add(await rows.readRange(0, Math.min(rows.count ?? 0, MAX_SELECTED) - 1))
}
