import { useQueryClient, useSuspenseQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { type ComponentType, lazy, Suspense, useEffect, useRef } from 'react'
import type { OneVideoBody, VideoBody } from '../../../src/http/api/video-body.ts'
import { EXACTLY } from '../catalogue/search.ts'
import { Page } from '../ui/page.tsx'
import partStyles from '../ui/part-links.module.css'
import { PartRow } from '../ui/part-links.tsx'
import { PlayerFrame } from './player-frame.tsx'
import { previewQuery, storyboardQuery, videoQuery } from './queries.ts'
import type { VideoTab } from './tabs.ts'
import { useMayEdit } from './use-may-edit.ts'
import styles from './video-page.module.css'
import { VideoState } from './video-state.tsx'

const route = getRouteApi('/signed-in/videos/$videoId')

// A tab is loaded when it is opened, so that the player is there first.
const DetailsTab = lazy(async () => ({ default: (await import('./details-tab.tsx')).DetailsTab }))
const CaptionsTab = lazy(async () => ({ default: (await import('./captions-tab.tsx')).CaptionsTab }))
const AudioTab = lazy(async () => ({ default: (await import('./audio-tab.tsx')).AudioTab }))
const ChaptersTab = lazy(async () => ({ default: (await import('./chapters-tab.tsx')).ChaptersTab }))
const TrimTab = lazy(async () => ({ default: (await import('./trim-tab.tsx')).TrimTab }))
const ReplacementNotice = lazy(async () => ({ default: (await import('./replacement-notice.tsx')).ReplacementNotice }))
const ProtectionTab = lazy(async () => ({ default: (await import('./protection-tab.tsx')).ProtectionTab }))
const FilesTab = lazy(async () => ({ default: (await import('./files-tab.tsx')).FilesTab }))
const StatisticsTab = lazy(async () => ({ default: (await import('./statistics-tab.tsx')).StatisticsTab }))
const HistoryTab = lazy(async () => ({ default: (await import('./history-tab.tsx')).HistoryTab }))

const TABS: readonly { tab: VideoTab | undefined; label: string; Content: ComponentType<{ video: VideoBody }> }[] = [
  { tab: undefined, label: 'Details', Content: DetailsTab },
  { tab: 'audio', label: 'Audio', Content: AudioTab },
  { tab: 'captions', label: 'Captions', Content: CaptionsTab },
  { tab: 'chapters', label: 'Chapters', Content: ChaptersTab },
  { tab: 'trim', label: 'Trim and replace', Content: TrimTab },
  { tab: 'protection', label: 'Protection', Content: ProtectionTab },
  { tab: 'files', label: 'Renditions', Content: FilesTab },
  { tab: 'statistics', label: 'Statistics', Content: StatisticsTab },
  { tab: 'history', label: 'History', Content: HistoryTab },
]

export function VideoPage() {
  const { videoId } = route.useParams()
  const { tab: current } = route.useSearch()
  const { data: video } = useSuspenseQuery(videoQuery(videoId))
  const mayEdit = useMayEdit(videoId)
  const Content = TABS.find(({ tab }) => tab === current)?.Content ?? DetailsTab
  return (
    <Page title={video.title} above={<Link to="/videos">← Videos</Link>}>
      <div className={styles.column}>
        {video.status === 'ready' ? <Player key={videoId} video={video} /> : <VideoState video={video} />}
        <Suspense>{video.replacement && <ReplacementNotice video={video} />}</Suspense>
        <PartRow label="About the video">
          {TABS.filter(({ tab }) => tab !== 'trim' || mayEdit).map(({ tab, label }) => (
            <Link
              key={label}
              to="/videos/$videoId"
              params={{ videoId }}
              search={{ tab }}
              replace
              resetScroll={false}
              className={partStyles.part}
              activeOptions={EXACTLY}
            >
              {label}
            </Link>
          ))}
        </PartRow>
        <div className={styles.tab}>
          <Suspense>
            <Content key={video.id} video={video} />
          </Suspense>
        </div>
      </div>
    </Page>
  )
}

/** Loaded again when the video plays another file or another part of it, as are its pictures: an open player would go on with the former one. */
function Player({ video: { id, title, length, kept } }: { video: OneVideoBody }) {
  const queries = useQueryClient()
  const exchange = kept && JSON.stringify([length, kept[0]])
  const seen = useRef(exchange)
  useEffect(() => {
    if (exchange !== undefined && exchange !== seen.current)
      for (const { queryKey } of [previewQuery(id), storyboardQuery(id)]) void queries.resetQueries({ queryKey })
    seen.current = exchange
  }, [queries, id, exchange])
  return <PlayerFrame videoId={id} title={`Player: ${title}`} />
}
