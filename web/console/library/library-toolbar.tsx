import { ActionIcon, Kbd, SegmentedControl, TextInput, VisuallyHidden } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { type KeyboardEvent, useEffect, useRef } from 'react'
import { filterOf, listOf, videoCountQuery, videosPageQuery } from '../catalogue/queries.ts'
import { EXACTLY, type LibrarySearch, STATE_FILTERS, type StateFilter } from '../catalogue/search.ts'
import { STATES } from '../catalogue/status.ts'
import { trashQuery } from '../trash/queries.ts'
import { CardsIcon, CloseIcon, RowsIcon, SearchIcon } from '../ui/icons.tsx'
import { formatCount } from '../units.ts'
import styles from './library-toolbar.module.css'

const route = getRouteApi('/signed-in/videos')

/** A change of the address, in the place of the one before: "back" leads out of the search, not through its letters. */
export function useChangeSearch() {
  const navigate = route.useNavigate()
  return (changes: Partial<LibrarySearch>) =>
    void navigate({ search: (before) => ({ ...before, ...changes }), replace: true, resetScroll: false })
}

export function SearchBox() {
  const { q = '' } = route.useSearch()
  const change = useChangeSearch()
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => {
    const focusBySlash = (event: globalThis.KeyboardEvent) => {
      const isTyping =
        event.target instanceof HTMLElement && event.target.closest('input, textarea, select, [contenteditable]') !== null
      const isAsked = (event.key === '/' && !isTyping) || (event.key === 'k' && (event.metaKey || event.ctrlKey))
      if (!isAsked || document.querySelector('[role="dialog"]')) return
      event.preventDefault()
      input.current?.select()
      input.current?.focus()
    }
    document.addEventListener('keydown', focusBySlash)
    return () => document.removeEventListener('keydown', focusBySlash)
  }, [])
  const clearByEscape = (event: KeyboardEvent) => {
    if (event.key === 'Escape') change({ q: undefined })
  }
  return (
    <TextInput
      ref={input}
      type="search"
      className={styles.search}
      aria-label="Search videos by title or id"
      aria-keyshortcuts="/"
      placeholder="Search title or id"
      leftSection={<SearchIcon size={16} />}
      rightSection={
        q === '' ? (
          <Kbd size="xs" aria-hidden="true" className={styles.key}>
            /
          </Kbd>
        ) : (
          <ActionIcon
            variant="subtle"
            color="gray"
            size="sm"
            aria-label="Clear the search"
            onClick={() => change({ q: undefined })}
          >
            <CloseIcon size={14} />
          </ActionIcon>
        )
      }
      value={q}
      onChange={({ target }) => change({ q: target.value || undefined })}
      onKeyDown={clearByEscape}
    />
  )
}

/** The numbers wait for a pause in typing: the server searches one text after the other, and the rows of the next one come first. */
const TYPING_PAUSE_MS = 300

/** All, ready, processing, failed …, each with its number where that asks for attention. */
export function StateLinks() {
  const { state, ...search } = route.useSearch()
  const list = useQuery(videosPageQuery(listOf({ ...search, state }), 1))
  const [pausedAt] = useDebouncedValue(search.q, TYPING_PAUSE_MS)
  const isCounted = !list.isPending && pausedAt === search.q
  return (
    <nav aria-label="States" className={styles.states}>
      <StateLink search={search} isCurrent={state === undefined} isCounted={isCounted} />
      {STATE_FILTERS.map((filter) => (
        <StateLink key={filter} search={search} filter={filter} isCurrent={state === filter} isCounted={isCounted} />
      ))}
      <TrashLink />
    </nav>
  )
}

function TrashLink() {
  const { data } = useQuery(trashQuery)
  if (!data || data.count === 0) return null
  return (
    <Link to="/trash" className={styles.state}>
      Trash <span className={styles.count}>{formatCount(data.count)}</span>
    </Link>
  )
}

type StateLinkProps = { search: LibrarySearch; filter?: StateFilter; isCurrent: boolean; isCounted: boolean }

function StateLink({ search, filter, isCurrent, isCounted }: StateLinkProps) {
  const { data: count } = useQuery({ ...videoCountQuery(filterOf({ ...search, state: filter })), enabled: isCounted })
  if (filter !== undefined && filter !== 'ready' && count === 0 && !isCurrent) return null
  return (
    <Link
      to="/videos"
      search={{ ...search, state: filter }}
      replace
      resetScroll={false}
      className={styles.state}
      activeOptions={EXACTLY}
    >
      {filter ? STATES[filter].label : 'All'} {count !== undefined && <span className={styles.count}>{formatCount(count)}</span>}
    </Link>
  )
}

export function ViewSwitch({ view, onChange }: { view: 'table' | 'cards'; onChange(view: 'table' | 'cards'): void }) {
  return (
    <SegmentedControl
      aria-label="View"
      className={styles.views}
      value={view}
      onChange={(next) => onChange(next === 'cards' ? 'cards' : 'table')}
      data={[
        { value: 'table', label: <ViewLabel name="Table" Icon={RowsIcon} /> },
        { value: 'cards', label: <ViewLabel name="Cards" Icon={CardsIcon} /> },
      ]}
    />
  )
}

function ViewLabel({ name, Icon }: { name: string; Icon: typeof RowsIcon }) {
  return (
    <span className={styles.view} title={name}>
      <Icon size={16} />
      <VisuallyHidden>{name}</VisuallyHidden>
    </span>
  )
}
