import { Badge, Table, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { FailureNotice } from '../app/failure.tsx'
import { SearchIcon } from '../app/icons.tsx'
import { Page } from '../app/page.tsx'
import { formatAgo, formatBytes, formatDuration, formatExactTime } from '../units.ts'
import { videosPageQuery } from './queries.ts'
import { lookOf } from './status.ts'

const route = getRouteApi('/signed-in/videos')

export function LibraryPage() {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const { data, error, refetch } = useQuery(videosPageQuery(search, 1))
  return (
    <Page
      title="Videos"
      actions={
        <TextInput
          aria-label="Search videos"
          placeholder="Search title or id"
          leftSection={<SearchIcon size={16} />}
          value={search.q ?? ''}
          onChange={({ target }) => navigate({ search: { ...search, q: target.value || undefined }, replace: true })}
        />
      }
    >
      {error && <FailureNotice error={error} onRetry={() => refetch()} />}
      <Table>
        <Table.Thead>
          <Table.Tr>
            {['Title', 'State', 'Length', 'Size', 'Added'].map((name) => (
              <Table.Th key={name}>{name}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {data?.rows.map((video) => (
            <Table.Tr key={video.id}>
              <Table.Td>{video.title}</Table.Td>
              <Table.Td>
                <Badge variant="light" color={lookOf(video.status).color}>
                  {lookOf(video.status).label}
                </Badge>
              </Table.Td>
              <Table.Td>{formatDuration(video.length)}</Table.Td>
              <Table.Td>{formatBytes(video.totalSizeBytes)}</Table.Td>
              <Table.Td title={formatExactTime(video.upload_time)}>{formatAgo(video.upload_time)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Page>
  )
}
