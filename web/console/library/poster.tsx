import { useState } from 'react'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { posterUrl } from '../posters.ts'
import { VideosIcon } from '../ui/icons.tsx'
import styles from './poster.module.css'

/** A still of a video, as decoration next to its title. */
export function Poster({ video, widthPx }: { video: Pick<VideoBody, 'posters'>; widthPx: number }) {
  const [isBroken, setBroken] = useState(false)
  const url = posterUrl(video, widthPx * Math.min(2, Math.ceil(window.devicePixelRatio)))
  return (
    <div className={styles.poster}>
      {url && !isBroken ? (
        <img src={url} alt="" loading="lazy" decoding="async" onError={() => setBroken(true)} />
      ) : (
        <VideosIcon size={22} />
      )}
    </div>
  )
}
