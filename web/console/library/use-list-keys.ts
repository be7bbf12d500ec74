import { type KeyboardEvent, type MouseEvent, useRef, useState } from 'react'
import type { Selection } from './use-selection.ts'
import type { VideoRows } from './use-video-rows.ts'

type ListKeysOptions = {
  rows: VideoRows
  selection: Selection
  columns: number
  onDelete(): void
  scrollTo(index: number): void
}

/** Of the page keys: about a screen. */
const LINES_PER_SCREEN = 8

/**
 * Movement in the list: one video is in the order of Tab, arrows move from it, Space selects, Shift extends the selection, Enter opens
 * as on every link, Delete deletes what is selected.
 */
export function useListKeys({ rows, selection, columns, onDelete, scrollTo }: ListKeysOptions) {
  const [active, setActive] = useState(0)
  const anchor = useRef(0)
  const focusNext = useRef(false)
  const last = Math.max(0, (rows.count ?? 1) - 1)

  function moveTo(index: number): number {
    const next = Math.min(Math.max(index, 0), last)
    focusNext.current = true
    setActive(next)
    scrollTo(next)
    return next
  }

  async function selectFromAnchor(index: number) {
    selection.add(await rows.readRange(Math.min(anchor.current, index), Math.max(anchor.current, index)))
  }

  function toggle(index: number, isRange: boolean) {
    const video = rows.rowAt(index)
    setActive(index)
    if (isRange) return void selectFromAnchor(index)
    anchor.current = index
    if (video) selection.toggle(video)
  }

  function onKeyDown(event: KeyboardEvent) {
    if (event.key === 'Escape' && selection.size > 0) return selection.clear()
    if (event.key === 'Delete' && selection.size > 0) return onDelete()
    const move = MOVES[event.key]?.({ active, columns, last })
    if (move !== undefined) {
      event.preventDefault()
      if (!event.shiftKey) anchor.current = move
      const reached = moveTo(move)
      if (event.shiftKey) void selectFromAnchor(reached)
      return
    }
    const isOnTitle = event.target instanceof HTMLElement && event.target.dataset.video !== undefined
    if (event.key !== ' ' || !isOnTitle) return // on its box Space is a click already
    event.preventDefault()
    toggle(active, event.shiftKey)
  }

  /** For a video: its title takes the focus when the keys have moved to it, as soon as it exists. */
  function itemProps(index: number) {
    const isActive = index === Math.min(active, last)
    return {
      tabIndex: isActive ? 0 : -1,
      focusRef: (title: HTMLElement | null) => {
        if (!isActive || !focusNext.current || !title) return
        focusNext.current = false
        title.focus({ preventScroll: true })
      },
      onFocus: () => setActive(index),
      onToggle: (event: MouseEvent) => toggle(index, event.shiftKey),
    }
  }

  return { onKeyDown, itemProps }
}

const MOVES: Readonly<Record<string, (at: { active: number; columns: number; last: number }) => number | undefined>> = {
  ArrowDown: ({ active, columns, last }) => (active + columns > last ? active : active + columns),
  ArrowUp: ({ active, columns }) => (active - columns < 0 ? active : active - columns),
  ArrowRight: ({ active, columns }) => (columns > 1 ? active + 1 : undefined),
  ArrowLeft: ({ active, columns }) => (columns > 1 ? active - 1 : undefined),
  PageDown: ({ active, columns }) => active + columns * LINES_PER_SCREEN,
  PageUp: ({ active, columns }) => active - columns * LINES_PER_SCREEN,
  Home: () => 0,
  End: ({ last }) => last,
}
