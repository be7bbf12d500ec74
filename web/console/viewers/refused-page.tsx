import { Button } from '@mantine/core'
import { useSuspenseInfiniteQuery } from '@tanstack/react-query'
import { csvUrl } from '../api.ts'
import { VideoLink } from '../catalogue/video-link.tsx'
import { Ago } from '../ui/ago.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { Page } from '../ui/page.tsx'
import { describeDevice } from './device.ts'
import { type Refusal, refusalsQuery } from './queries.ts'
import { ViewerLink } from './viewer-link.tsx'
import { ViewerParts } from './viewer-parts.tsx'

/** Viewers whom the player refused, with the reason. */
export function RefusedPage() {
  const { data, hasNextPage, isFetchingNextPage, fetchNextPage } = useSuspenseInfiniteQuery(refusalsQuery)
  return (
    <Page title="Viewers">
      <ViewerParts />
      <DataTable
        label="Refused viewers"
        csv={csvUrl('refusals')}
        columns={COLUMNS}
        rows={data.pages.flatMap(({ rows }) => rows)}
        keyOf={({ at, video, userId, address, reason }) => `${at} ${video} ${userId} ${address} ${reason}`}
        empty={
          <p>
            No one was refused in the last week. A used link, another site, a country that is not allowed or one screen too many
            is listed here.
          </p>
        }
      />
      {hasNextPage && (
        <div>
          <Button variant="default" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            Show older ones
          </Button>
        </div>
      )}
    </Page>
  )
}

const REASONS: Readonly<Record<string, string>> = {
  'otp-used': 'The link was already used',
  'otp-expired': 'The link has expired',
  'otp-unknown': 'The link is not known, or its key was revoked',
  'site-not-allowed': 'The site is not allowed',
  'place-not-allowed': 'The location is not allowed',
  'video-gone': 'The video was deleted',
  'unsupported-browser': 'The browser cannot decode the video',
  'session-ended': 'The session had ended',
  'stream-limit': 'The viewer was already watching on as many screens as allowed',
  'key-pace': 'The player asked for keys faster than the video is watched',
}

const COLUMNS: Column<Refusal>[] = [
  {
    name: 'Why',
    kind: 'title',
    cell: ({ reason, message, count }) => (
      <span title={message}>
        {REASONS[reason] ?? reason}
        {count > 1 && `, ${count} times`}
      </span>
    ),
  },
  { name: 'Viewer', cell: ({ userId, viewer }) => <ViewerLink userId={userId} viewer={viewer} /> },
  { name: 'Video', cell: ({ video, title }) => <VideoLink id={video} title={title} /> },
  { name: 'Site', cell: ({ site }) => site ?? undefined },
  { name: 'Rule', cell: ({ rule }) => (rule === null ? undefined : <code>{rule}</code>) },
  { name: 'Address', cell: ({ address }) => address },
  { name: 'Device', cell: ({ userAgent }) => <span title={userAgent}>{describeDevice(userAgent)}</span> },
  { name: 'When', cell: ({ at }) => <Ago at={at} /> },
]
