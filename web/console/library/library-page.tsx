import { Button } from '@mantine/core'
import { readLocalStorageValue } from '@mantine/hooks'
import { getRouteApi } from '@tanstack/react-router'
import { lazy, Suspense, useState } from 'react'
import { filterOf, videosCsv } from '../catalogue/queries.ts'
import { isFiltered, type LibrarySearch } from '../catalogue/search.ts'
import { useMay } from '../sign-in/queries.ts'
import { FullStorageNotice } from '../system/storage.tsx'
import { CsvLink } from '../ui/csv-link.tsx'
import { FailureNotice } from '../ui/failure.tsx'
import { Page } from '../ui/page.tsx'
import { AddVideos } from '../upload/add-videos.tsx'
import { BulkActions } from './bulk-actions.tsx'
import { FolderPath, FolderStrip } from './folders.tsx'
import styles from './library-page.module.css'
import { SearchBox, StateLinks, useChangeSearch, ViewSwitch } from './library-toolbar.tsx'
import { ListHead, selectAll } from './list-head.tsx'
import { type BulkAction, useSelection } from './use-selection.ts'
import { useVideoRows } from './use-video-rows.ts'
import { VideoList } from './video-list.tsx'

const route = getRouteApi('/signed-in/videos')
// Its select is as large as the rest of the page.
const TagFilter = lazy(() => import('./tag-filter.tsx').then(({ TagFilter }) => ({ default: TagFilter })))
// Seen once.
const EmptyLibrary = lazy(() => import('./empty-library.tsx').then(({ EmptyLibrary }) => ({ default: EmptyLibrary })))

const VIEW_KEY = 'reelgate-library-view'

// Made once, so that React does not draw them again with the rows: they follow the address by themselves.
const ACTIONS = (
  <>
    <SearchBox />
    <AddVideos />
  </>
)
const FILTERS = (
  <>
    <StateLinks />
    <Suspense>
      <TagFilter />
    </Suspense>
  </>
)

export function LibraryPage() {
  const search = route.useSearch()
  const change = useChangeSearch()
  const rows = useVideoRows(search)
  const maySelect = useMay('editor')
  const selection = useSelection(maySelect)
  const [bulkAction, setBulkAction] = useState<BulkAction>()
  const view = search.view ?? (readLocalStorageValue({ key: VIEW_KEY }) === 'cards' ? 'cards' : 'table')

  function setView(next: 'table' | 'cards') {
    localStorage.setItem(VIEW_KEY, JSON.stringify(next)) // for the next visit; the address says it for this one
    change({ view: next })
  }

  const isNew = rows.count === 0 && !isFiltered(search) && search.folder === undefined
  if (isNew)
    return (
      <Page title="Videos">
        <FullStorageNotice />
        <Suspense>
          <EmptyLibrary />
        </Suspense>
      </Page>
    )
  return (
    <Page title="Videos" actions={ACTIONS}>
      <FullStorageNotice />
      {search.folder !== undefined && <FolderPath folderId={search.folder} />}
      <FolderStrip folderId={search.folder} />
      <div className={styles.filters}>
        {FILTERS}
        <CsvLink of="These videos" href={videosCsv(filterOf(search))}>
          CSV
        </CsvLink>
        <ViewSwitch view={view} onChange={setView} />
      </div>
      {rows.error && <FailureNotice error={rows.error} onRetry={rows.retry} />}
      {rows.count === 0 ? (
        <NoVideos search={search} />
      ) : (
        <div>
          <ListHead
            rows={rows}
            selection={selection}
            maySelect={maySelect}
            view={view}
            order={search.sort}
            onOrder={(sort) => change({ sort })}
          />
          <VideoList
            rows={rows}
            selection={selection}
            view={view}
            onDelete={() => setBulkAction('delete')}
            onSelectAll={() => void selectAll(rows, selection)}
          />
        </div>
      )}
      <BulkActions selection={selection} open={bulkAction} onOpen={setBulkAction} />
    </Page>
  )
}

function NoVideos({ search }: { search: LibrarySearch }) {
  const change = useChangeSearch()
  if (isFiltered(search))
    return (
      <div className={styles.none}>
        <p>No video matches{search.q === undefined ? ' these filters' : ` “${search.q}”`}.</p>
        <Button variant="default" onClick={() => change({ q: undefined, tags: undefined, state: undefined })}>
          Show all videos
        </Button>
      </div>
    )
  return (
    <div className={styles.none}>
      <p>This folder is empty. Drop videos anywhere on this page to upload them into it.</p>
    </div>
  )
}
