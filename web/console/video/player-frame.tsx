import { useQuery } from '@tanstack/react-query'
import { FailureNotice } from '../app/failure.tsx'
import { installationUrl } from '../app/place.ts'
import styles from './player-frame.module.css'
import { previewQuery } from './queries.ts'

/** The video as viewers get it, in the console. It counts as a session like theirs. */
export function PlayerFrame({ videoId, title }: { videoId: string; title: string }) {
  const { data: query, error, refetch } = useQuery(previewQuery(videoId))
  if (error) return <FailureNotice error={error} onRetry={() => refetch()} />
  return (
    <div className={styles.frame}>
      {query && (
        <iframe
          title={`Player: ${title}`}
          src={`${installationUrl('player/').href}${query}`}
          allow="encrypted-media; fullscreen; autoplay; picture-in-picture"
        />
      )}
    </div>
  )
}
