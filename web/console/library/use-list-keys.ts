import { type FocusEvent, type KeyboardEvent, type MouseEvent, type RefObject, useLayoutEffect, useRef, useState } from 'react'
import type { Selection } from './use-selection.ts'
import type { VideoRows } from './use-video-rows.ts'

type ListKeysOptions = {
  /** Its items say their place in the list: `data-index`. */
  list: RefObject<HTMLElement | null>
  rows: VideoRows
  selection: Selection
  columns: number
  onDelete(): void
  onSelectAll(): void
  scrollTo(index: number): void
}

/** Of the page keys: about a screen. */
const LINES_PER_SCREEN = 8

/**
 * Movement in the list: one video is in the order of Tab, arrows move from it, Space selects, Shift extends the selection, Enter opens
 * as on every link, Ctrl+A selects all, Delete deletes what is selected.
 */
export function useListKeys({ list, rows, selection, columns, onDelete, onSelectAll, scrollTo }: ListKeysOptions) {
  const [chosen, setActive] = useState(0)
  const anchor = useRef(0)
  const focusNext = useRef(false)
  const last = Math.max(0, (rows.count ?? 1) - 1)
  const active = Math.min(chosen, last)

  // The title to which the keys have moved takes the focus as soon as it is in the page.
  useLayoutEffect(() => {
    if (!focusNext.current) return
    const title = list.current?.querySelector<HTMLElement>(`[data-index="${active}"] [data-video]`)
    if (!title) return
    focusNext.current = false
    title.focus({ preventScroll: true })
  })

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
    if (event.key === 'a' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault()
      return onSelectAll()
    }
    const move = MOVES[event.key]?.({ active, columns, last })
    if (move !== undefined) {
      event.preventDefault()
      if (!event.shiftKey) anchor.current = move
      const reached = moveTo(move)
      if (event.shiftKey) void selectFromAnchor(reached)
      return
    }
    if (event.key !== ' ' || !isTitle(event.target)) return // on its box Space is a click already
    event.preventDefault()
    toggle(active, event.shiftKey)
  }

  function onFocus({ target }: FocusEvent) {
    const index = isTitle(target) ? indexOf(target) : undefined
    if (index !== undefined) setActive(index)
  }

  function onClick({ target, shiftKey }: MouseEvent) {
    const index = target instanceof HTMLInputElement ? indexOf(target) : undefined
    if (index !== undefined) toggle(index, shiftKey)
  }

  return { active, listeners: { onKeyDown, onFocus, onClick } }
}

function isTitle(target: EventTarget): target is HTMLElement {
  return target instanceof HTMLElement && target.dataset.video !== undefined
}

/** The place in the list of the video to which an element belongs. */
function indexOf(element: HTMLElement): number | undefined {
  const index = element.closest<HTMLElement>('[data-index]')?.dataset.index
  return index === undefined ? undefined : Number(index)
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
