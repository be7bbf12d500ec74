import { useQuery } from '@tanstack/react-query'
import { FailureNotice } from '../ui/failure.tsx'
import { installationUrl } from '../urls.ts'
import styles from './player-frame.module.css'
import { previewQuery } from './queries.ts'

type PlayerFrameProps = {
  videoId: string
  title: string
  /** Those of the player, as `optionsQuery` writes them. Others load the player again. */
  options?: string
  /** Players that are on a page together have an OTP each. */
  purpose?: string
}

/** The video as viewers get it, in the console. Once it is played, it counts as a session like theirs. */
export function PlayerFrame({ videoId, title, options = '', purpose }: PlayerFrameProps) {
  const { data: query, error, refetch } = useQuery(previewQuery(videoId, purpose))
  if (error) return <FailureNotice error={error} onRetry={() => refetch()} />
  const whenPlayed = options.includes('&autoplay=true') ? '' : '&litemode=true' // opens no session before
  return (
    <div className={styles.frame}>
      {query && (
        <iframe
          key={options} // another address in the same frame would be a step of the browser's history
          title={title}
          src={`${installationUrl('player/').href}${query}${options}${whenPlayed}`}
          allow="encrypted-media; fullscreen; autoplay; picture-in-picture; screen-wake-lock"
        />
      )}
    </div>
  )
}
