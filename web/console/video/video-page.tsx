import { useSuspenseQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { Page } from '../app/page.tsx'
import { PlayerFrame } from './player-frame.tsx'
import { videoQuery } from './queries.ts'
import { SiteCodeTabs } from './site-code-tabs.tsx'
import styles from './video-page.module.css'
import { VideoState } from './video-state.tsx'

const route = getRouteApi('/signed-in/videos/$videoId')

export function VideoPage() {
  const { videoId } = route.useParams()
  const { data: video } = useSuspenseQuery(videoQuery(videoId))
  return (
    <Page title={video.title} above={<Link to="/videos">← Videos</Link>}>
      <div className={styles.column}>
        {video.status === 'ready' ? <PlayerFrame videoId={videoId} title={video.title} /> : <VideoState video={video} />}
        <section aria-labelledby="site-code" className={styles.section}>
          <h2 id="site-code">Put it on your site</h2>
          <SiteCodeTabs videoId={videoId} />
        </section>
      </div>
    </Page>
  )
}
