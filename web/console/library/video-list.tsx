import { useElementSize } from '@mantine/hooks'
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useLayoutEffect, useRef, useState } from 'react'
import { useMay } from '../sign-in/queries.ts'
import { useListKeys } from './use-list-keys.ts'
import type { Selection } from './use-selection.ts'
import type { VideoRows } from './use-video-rows.ts'
import { LoadingItem, VideoCard, VideoRow } from './video-item.tsx'
import styles from './video-list.module.css'

type VideoListProps = {
  rows: VideoRows
  selection: Selection
  view: 'table' | 'cards'
  onDelete(): void
  onSelectAll(): void
}

const ROW_HEIGHT_PX = 73
const CARD_MIN_WIDTH_PX = 236
const CARD_TEXT_HEIGHT_PX = 64
const GAP_PX = 16

/** The videos, of which only those on the screen and a few around them are in the page; moved through by keyboard, too. */
export function VideoList({ rows, selection, view, onDelete, onSelectAll }: VideoListProps) {
  const { ref: sizeRef, width } = useElementSize()
  const list = useRef<HTMLUListElement>(null)
  const maySelect = useMay('editor')
  const [topPx, setTopPx] = useState(0)
  // What is above the list, and so its place on the page, changes with filters and notices.
  useLayoutEffect(() => setTopPx(list.current?.offsetTop ?? 0))

  const count = rows.count ?? 12 // as many placeholders as fill a screen
  const columns = view === 'cards' ? Math.max(2, Math.floor((width + GAP_PX) / (CARD_MIN_WIDTH_PX + GAP_PX))) : 1
  const cardWidthPx = (width - (columns - 1) * GAP_PX) / columns
  const lineHeightPx = view === 'cards' ? Math.round((cardWidthPx * 9) / 16) + CARD_TEXT_HEIGHT_PX + GAP_PX : ROW_HEIGHT_PX
  const lines = useWindowVirtualizer({
    count: Math.ceil(count / columns),
    estimateSize: () => lineHeightPx,
    overscan: 6,
    scrollMargin: topPx,
  })
  // biome-ignore lint/correctness/useExhaustiveDependencies: the virtualizer is the same object, whose measurements are out of date
  useLayoutEffect(() => lines.measure(), [lineHeightPx])

  const visible = lines.getVirtualItems()
  const firstIndex = (visible[0]?.index ?? 0) * columns
  const lastIndex = Math.min(count, ((visible.at(-1)?.index ?? 0) + 1) * columns) - 1
  const { show } = rows
  useEffect(() => {
    // Pages that are only scrolled past are not read.
    const settled = setTimeout(() => show(firstIndex, lastIndex), lines.isScrolling ? 80 : 0)
    return () => clearTimeout(settled)
  }, [show, firstIndex, lastIndex, lines.isScrolling])

  const { active, listeners } = useListKeys({
    list,
    rows,
    selection,
    columns,
    onDelete,
    onSelectAll,
    scrollTo: (index) => lines.scrollToIndex(Math.floor(index / columns)),
  })
  const Item = view === 'cards' ? VideoCard : VideoRow
  const indexes = Array.from({ length: Math.max(0, lastIndex - firstIndex + 1) }, (_, offset) => firstIndex + offset)
  const placeOf = (index: number) => {
    const leftPx = (index % columns) * (cardWidthPx + GAP_PX)
    const fromTopPx = Math.floor(index / columns) * lineHeightPx
    return { width: view === 'cards' ? cardWidthPx : undefined, transform: `translate(${leftPx}px, ${fromTopPx}px)` }
  }
  return (
    <div ref={sizeRef}>
      <ul
        ref={list}
        aria-label="Videos"
        className={view === 'cards' ? styles.cards : styles.table}
        style={{ height: lines.getTotalSize() }}
        {...listeners}
      >
        {indexes.map((index) => {
          const video = rows.rowAt(index)
          return (
            <li
              key={video?.id ?? index}
              className={styles.item}
              data-index={index}
              style={placeOf(index)}
              aria-setsize={rows.isCounted ? rows.count : -1}
              aria-posinset={index + 1}
              aria-busy={video === undefined}
            >
              {video ? (
                <Item
                  video={video}
                  views={rows.viewsAt(index)}
                  isSelected={selection.has(video.id)}
                  isSelecting={selection.size > 0}
                  maySelect={maySelect}
                  tabIndex={index === active ? 0 : -1}
                />
              ) : (
                <LoadingItem view={view} />
              )}
            </li>
          )
        })}
      </ul>
    </div>
  )
}
