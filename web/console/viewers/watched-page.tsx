import { SegmentedControl, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { csvUrl } from '../api.ts'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { FailureNotice } from '../ui/failure.tsx'
import { SearchIcon } from '../ui/icons.tsx'
import { Page } from '../ui/page.tsx'
import { formatCount, formatDay, formatDuration } from '../units.ts'
import { lastDays, type Watcher, watchedQuery } from './queries.ts'
import { namesOf, ViewerLink } from './viewer-link.tsx'
import { ViewerParts } from './viewer-parts.tsx'
import styles from './watched-page.module.css'

const route = getRouteApi('/signed-in/viewers/watched')

const MAX_SHOWN = 200

/** Each viewer of the last days, and how much was watched. */
export function WatchedPage() {
  const { days = '7', q = '' } = route.useSearch()
  const navigate = route.useNavigate()
  const { data: viewers, error, refetch } = useQuery(watchedQuery(Number(days)))
  const found = (viewers ?? []).filter(({ userId, viewer }) =>
    namesOf(userId, viewer).some((name) => name.toLowerCase().includes(q.toLowerCase())),
  )
  const change = (changes: { days?: '7' | '30' | '90'; q?: string }) =>
    void navigate({ search: (before) => ({ ...before, ...changes }), replace: true, resetScroll: false })
  return (
    <Page title="Viewers">
      <ViewerParts />
      <div className={styles.filters}>
        <TextInput
          type="search"
          aria-label="Search viewers by name, e-mail address or id"
          placeholder="Search a name, address or id"
          leftSection={<SearchIcon size={16} />}
          value={q}
          onChange={({ target }) => change({ q: target.value || undefined })}
        />
        <SegmentedControl
          aria-label="Days"
          value={days}
          onChange={(next) => change({ days: next === '30' || next === '90' ? next : undefined })}
          data={[
            { value: '7', label: '7 days' },
            { value: '30', label: '30 days' },
            { value: '90', label: '90 days' },
          ]}
        />
      </div>
      {error && <FailureNotice error={error} onRetry={() => refetch()} />}
      {viewers && (
        <DataTable
          label="Who watched"
          csv={csvUrl('watched', lastDays(Number(days)))}
          columns={COLUMNS}
          rows={found.slice(0, MAX_SHOWN)}
          keyOf={({ userId }) => userId}
          empty={
            <p>
              {q === ''
                ? 'No viewer with an id watched anything in these days. Viewers have the userId that your site gives to their OTPs.'
                : `No viewer of these days has “${q}” in the name, address or id.`}
            </p>
          }
        />
      )}
      {found.length > MAX_SHOWN && (
        <p className={styles.more}>And {formatCount(found.length - MAX_SHOWN)} more: search for a name or an id.</p>
      )}
    </Page>
  )
}

const COLUMNS: Column<Watcher>[] = [
  {
    name: 'Viewer',
    kind: 'title',
    cell: ({ userId, viewer }) => <ViewerLink userId={userId} viewer={viewer} />,
  },
  { name: 'Videos', kind: 'number', cell: ({ videos }) => formatCount(videos) },
  { name: 'Watched', kind: 'number', cell: ({ watchedS }) => formatDuration(watchedS) },
  { name: 'Last day', kind: 'number', cell: ({ lastDate }) => formatDay(Date.parse(lastDate) / 1000) },
]
