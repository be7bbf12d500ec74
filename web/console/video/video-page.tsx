import { useSuspenseQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { Suspense } from 'react'
import { Page } from '../app/page.tsx'
import partStyles from '../app/part-links.module.css'
import { EXACTLY } from '../library/library-search.ts'
import { CaptionsTab } from './captions-tab.tsx'
import { DetailsTab } from './details-tab.tsx'
import { FilesTab } from './files-tab.tsx'
import { HistoryTab } from './history-tab.tsx'
import { PlayerFrame } from './player-frame.tsx'
import { ProtectionTab } from './protection-tab.tsx'
import { videoQuery } from './queries.ts'
import { StatisticsTab } from './statistics-tab.tsx'
import type { VideoTab } from './tabs.ts'
import styles from './video-page.module.css'
import { VideoState } from './video-state.tsx'

const route = getRouteApi('/signed-in/videos/$videoId')

const TABS: readonly { tab: VideoTab | undefined; label: string; Content: typeof DetailsTab }[] = [
  { tab: undefined, label: 'Details', Content: DetailsTab },
  { tab: 'captions', label: 'Captions', Content: CaptionsTab },
  { tab: 'protection', label: 'Protection', Content: ProtectionTab },
  { tab: 'files', label: 'Renditions', Content: FilesTab },
  { tab: 'statistics', label: 'Statistics', Content: StatisticsTab },
  { tab: 'history', label: 'History', Content: HistoryTab },
]

export function VideoPage() {
  const { videoId } = route.useParams()
  const { tab: current } = route.useSearch()
  const { data: video } = useSuspenseQuery(videoQuery(videoId))
  const Content = TABS.find(({ tab }) => tab === current)?.Content ?? DetailsTab
  return (
    <Page title={video.title} above={<Link to="/videos">← Videos</Link>}>
      <div className={styles.column}>
        {video.status === 'ready' ? <PlayerFrame videoId={videoId} title={video.title} /> : <VideoState video={video} />}
        <nav aria-label="About the video" className={partStyles.parts}>
          {TABS.map(({ tab, label }) => (
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
        </nav>
        <div className={styles.tab}>
          <Suspense>
            <Content key={video.id} video={video} />
          </Suspense>
        </div>
      </div>
    </Page>
  )
}
